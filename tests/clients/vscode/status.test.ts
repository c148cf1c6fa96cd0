// The status texts are those of the table that the Neovim plugin is held to as well.

import assert from "node:assert/strict";
import test from "node:test";

import type { TaskView } from "../../../clients/vscode/src/protocol";
import { lineMark, mark, status, summary } from "../../../clients/vscode/src/status";
import table from "../status_cases.json";
import { task } from "./task";

for (const { mark: text, level, task: changed, turn } of table.cases) {
  test(`a status reads as in the table: ${text}`, () => {
    assert.deepEqual(mark(task(changed as Partial<TaskView>, turn as object)), { text, level });
  });
}

test("of several tasks at one line a live one is shown, one that waits first, and how many more there are", () => {
  const ask = { ask_id: "a", kind: "question" as const, subject: "Style", detail: "Which?", choices: [] };
  const review = task({ phase: "ready" }, { needs_review: "a check failed" });
  const failed = task({ phase: "failed" });
  assert.equal(lineMark([failed]).text, "◀ tests failed");
  assert.equal(lineMark([failed, task({ phase: "cancelled" })]).text, "◀ tests failed  +1");
  assert.equal(lineMark([review, failed, task()]).text, "◀ tests working  +2");
  assert.equal(lineMark([task(), task({ phase: "queued" })]).text, "◀ tests working  +1");
  assert.deepEqual(lineMark([task(), task({ asks: [ask] })]), {
    text: "◀ tests waits for you: Style: Which?  +1",
    level: "waiting",
  });
});

test("a status is the mark without the recipe", () => {
  assert.equal(status(task({ phase: "checking" })).text, "checking the result");
});

test("the status bar counts what runs, and says first who waits", () => {
  const ask = { ask_id: "a", kind: "question" as const, subject: "Style", detail: "Which?", choices: [] };
  assert.equal(summary([]), "$(check) offload");
  assert.equal(summary([task({ phase: "ready" })]), "$(check) offload");
  assert.equal(summary([task(), task({ phase: "queued" }), task({ phase: "failed" })]), "$(sync~spin) offload: 2");
  assert.equal(summary([task(), task({ asks: [ask] })]), "$(bell) offload: 1 waiting for you");
});
