// A block's place moves with the text, as an extmark does in Neovim.

import assert from "node:assert/strict";
import test from "node:test";

import { Places, shift } from "../../../clients/vscode/src/places";
import { task } from "./task";

const SPAN = { first: 10, last: 14 };
const CASES = [
  { edit: "lines above are added", first: 2, last: 2, endColumn: 0, addedLines: 3, becomes: { first: 13, last: 17 } },
  { edit: "lines above are removed", first: 2, last: 5, endColumn: 0, addedLines: 0, becomes: { first: 7, last: 11 } },
  { edit: "a line is put before its first", first: 10, last: 10, endColumn: 0, addedLines: 1, becomes: { first: 11, last: 15 } },
  { edit: "the line above is removed whole", first: 9, last: 10, endColumn: 0, addedLines: 0, becomes: { first: 9, last: 13 } },
  { edit: "a word above changes", first: 4, last: 4, endColumn: 7, addedLines: 0, becomes: SPAN },
  { edit: "its first line is broken", first: 10, last: 10, endColumn: 4, addedLines: 1, becomes: { first: 10, last: 15 } },
  { edit: "lines inside are added", first: 12, last: 12, endColumn: 0, addedLines: 2, becomes: { first: 10, last: 16 } },
  { edit: "lines inside are removed", first: 11, last: 13, endColumn: 0, addedLines: 0, becomes: { first: 10, last: 12 } },
  { edit: "text across its start is removed", first: 8, last: 12, endColumn: 3, addedLines: 0, becomes: { first: 8, last: 10 } },
  { edit: "all of it and more is removed", first: 8, last: 20, endColumn: 0, addedLines: 0, becomes: { first: 8, last: 8 } },
  { edit: "lines below are added", first: 15, last: 15, endColumn: 0, addedLines: 9, becomes: SPAN },
];

for (const { edit, becomes, ...change } of CASES) {
  test(`a block when ${edit}`, () => {
    assert.deepEqual(shift(SPAN, change), becomes);
  });
}

function places(): Places {
  return new Places((workspace, path) => `${workspace}/${path}`);
}

const FILE = "/home/ada/shop/shop/cart.py";

test("a new task stands at its anchor, 0-based", () => {
  const made = places();
  made.put(task());
  assert.deepEqual(made.of("task_1"), { file: FILE, span: { first: 2, last: 5 } });
});

test("a task keeps the place that edits gave it when its state changes", () => {
  const made = places();
  made.put(task());
  made.edit(FILE, { first: 0, last: 0, endColumn: 0, addedLines: 4 });
  made.edit("/home/ada/shop/other.py", { first: 0, last: 0, endColumn: 0, addedLines: 4 });
  made.put(task({ phase: "ready" }));
  assert.deepEqual(made.of("task_1")?.span, { first: 6, last: 9 });
});

test("a closed task and one without a block have no place", () => {
  const made = places();
  made.put(task());
  made.put(task({ closed: true }));
  made.put(task({ task_id: "task_2", anchor: null }));
  assert.equal(made.of("task_1"), undefined);
  assert.equal(made.of("task_2"), undefined);
});

test("a block holds its own lines in its own file", () => {
  const made = places();
  made.put(task());
  assert.deepEqual(
    [1, 2, 5, 6].map((line) => made.holds("task_1", FILE, line)),
    [false, true, true, false],
  );
  assert.equal(made.holds("task_1", "/home/ada/shop/other.py", 2), false);
  assert.equal(made.holds("task_2", FILE, 2), false);
});
