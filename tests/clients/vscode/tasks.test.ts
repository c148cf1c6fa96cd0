// What the extension keeps of the tasks that the server tells of.

import assert from "node:assert/strict";
import test from "node:test";

import { Tasks, concerns } from "../../../clients/vscode/src/tasks";
import { task } from "./task";

test("an older state that comes late changes nothing", () => {
  const tasks = new Tasks();
  assert.equal(tasks.put(task({ revision: 2, phase: "checking" })), true);
  assert.equal(tasks.put(task({ revision: 1, phase: "starting" })), false);
  assert.deepEqual(
    tasks.open().map(({ phase }) => phase),
    ["checking"],
  );
});

test("the same revision is taken: place and text change without an event", () => {
  const tasks = new Tasks();
  tasks.put(task({ phase: "queued", place: 2 }));
  tasks.put(task({ phase: "queued", place: 1 }));
  assert.equal(tasks.open()[0]?.place, 1);
});

test("open tasks come newest first, closed ones not at all", () => {
  const tasks = new Tasks();
  tasks.put(task({ task_id: "old", created_at: 1 }));
  tasks.put(task({ task_id: "new", created_at: 3 }));
  tasks.put(task({ task_id: "closed", created_at: 2, closed: true }));
  assert.deepEqual(
    tasks.open().map(({ task_id }) => task_id),
    ["new", "old"],
  );
});

test("a task concerns a window with its workspace, a folder above it or one inside", () => {
  const made = task({ workspace: "/home/ada/shop" });
  for (const folder of ["/home/ada/shop", "/home/ada", "/home/ada/shop/web"]) {
    assert.equal(concerns(made, ["/srv", folder]), true, folder);
  }
  assert.equal(concerns(made, ["/home/ada/shop2", "/home/ada/other"]), false);
  assert.equal(concerns(made, []), false);
});
