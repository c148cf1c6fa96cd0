// A block's place moves with the text, as an extmark does in Neovim.

import assert from "node:assert/strict";
import test from "node:test";

import { Places, shift } from "../../../clients/vscode/src/places";
import { task } from "./task";

// What is done, the replaced range (first line, last line, column where it ends), line breaks put there, the block
// after it.
const CASES: [string, [number, number, number], number, [number, number]][] = [
  ["lines above are added", [2, 2, 0], 3, [13, 17]],
  ["lines above are removed", [2, 5, 0], 0, [7, 11]],
  ["a line is put before its first", [10, 10, 0], 1, [11, 15]],
  ["the line above is removed whole", [9, 10, 0], 0, [9, 13]],
  ["a word above changes", [4, 4, 7], 0, [10, 14]],
  ["its first line is broken", [10, 10, 4], 1, [10, 15]],
  ["lines inside are added", [12, 12, 0], 2, [10, 16]],
  ["lines inside are removed", [11, 13, 0], 0, [10, 12]],
  ["text across its start is removed", [8, 12, 3], 0, [8, 10]],
  ["all of it and more is removed", [8, 20, 0], 0, [8, 8]],
  ["lines below are added", [15, 15, 0], 9, [10, 14]],
];

for (const [what, [first, last, endColumn], addedLines, becomes] of CASES) {
  test(`a block on lines 10 to 14 when ${what}`, () => {
    const after = shift({ first: 10, last: 14 }, { first, last, endColumn, addedLines });
    assert.deepEqual([after.first, after.last], becomes);
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
