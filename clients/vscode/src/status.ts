// How a task is said in a few words beside its block: the same words as the server's own lenses and the Neovim client,
// which a table of cases holds together (tests/clients/status_cases.json). Knows tasks as they come over the wire, no
// editor.

import type { AskView, ChangesView, Checked, Phase, ReviewState, TaskView } from "./protocol";

/** How much a status wants to be looked at; each has a colour. */
export type Level = "live" | "waiting" | "ready" | "failed" | "quiet";

export interface Said {
  text: string;
  level: Level;
}

// Longer texts are cut: a mark shares its line with code.
const LIMIT = 100;

// Own words are the name of their task; these must leave room for its status.
const NAME_LIMIT = 40;

// Which of several tasks at one place is shown.
const ORDER: Readonly<Record<Level, number>> = { waiting: 1, live: 2, ready: 3, failed: 4, quiet: 5 };

const RESTING: ReadonlySet<Phase> = new Set(["ready", "failed", "cancelled", "interrupted"]);

const PLAIN: Readonly<Partial<Record<Phase, string>>> = {
  checking: "checking the result",
  cancelling: "stopping",
};

/** The phases in which something goes on that can be told. */
const DOING: ReadonlySet<Phase> = new Set<Phase>(["starting", "working", "checking"]);

const CHECKED: Readonly<Record<Checked, string>> = {
  not_checked: "not checked",
  passed: "checked",
  failed: "checks fail",
};

/** Whether nothing happens to the task by itself any more. */
export function rests(task: TaskView): boolean {
  return RESTING.has(task.phase);
}

/** Where the task stands, in one line. */
export function status(task: TaskView): Said {
  const { text, level } = said(task);
  return { text: oneLine(text, LIMIT), level };
}

/** What stands at the end of the block's first line. */
export function mark(task: TaskView): Said {
  const { text, level } = status(task);
  const name = task.recipe === "instruction" ? `${oneLine(task.title, NAME_LIMIT)} —` : task.recipe;
  return { text: `◀ ${name} ${text}`, level };
}

/**
 * What stands at the end of a line at which several tasks' blocks begin: the status of one, a live one if there is one,
 * and how many more there are. The tasks are given newest first.
 */
export function lineMark(tasks: readonly [TaskView, ...TaskView[]]): Said {
  const first = tasks.reduce((best, task) => (rank(task) < rank(best) ? task : best));
  const { text, level } = mark(first);
  return { text: tasks.length > 1 ? `${text}  +${tasks.length - 1}` : text, level };
}

// The lowest comes first.
function rank(task: TaskView): number {
  return ORDER[said(task).level] + (rests(task) && task.asks.length === 0 ? 10 : 0);
}

/** What the status bar says of all tasks together. */
export function summary(tasks: readonly TaskView[]): string {
  const waiting = tasks.filter((task) => task.asks.length > 0).length;
  if (waiting > 0) {
    return `$(bell) offload: ${waiting} waiting for you`;
  }
  const live = tasks.filter((task) => !rests(task)).length;
  return live > 0 ? `$(sync~spin) offload: ${live}` : "$(check) offload";
}

function said(task: TaskView): Said {
  const [ask] = task.asks;
  if (ask) {
    return asked(ask);
  }
  if (!rests(task)) {
    return live(task);
  }
  if (task.phase === "ready") {
    return ready(task);
  }
  const failure = task.turns.at(-1)?.failure;
  const text = failure ? `${task.phase}: ${failure.message}` : task.phase;
  return { text, level: task.phase === "cancelled" ? "quiet" : "failed" };
}

function asked({ subject, detail }: AskView): Said {
  return { text: `waits for you: ${subject}: ${detail}`, level: "waiting" };
}

function live(task: TaskView): Said {
  let text = PLAIN[task.phase] ?? task.phase;
  if (task.place != null) {
    text += `, place ${task.place}`;
  } else if (DOING.has(task.phase) && task.activity) {
    text += `: ${task.activity.label || task.activity.kind}`;
  }
  return { text, level: "live" };
}

function ready(task: TaskView): Said {
  const turn = task.turns.at(-1);
  const word = became(turn?.changes);
  let text = `${word}: ${summaryOf(turn?.changes)}`;
  if (turn?.changes?.files.length) {
    text += `, ${CHECKED[turn.checked ?? "not_checked"]}`;
  }
  if (turn?.needs_review) {
    return { text: `${text}, needs a look: ${turn.needs_review}`, level: "waiting" };
  }
  return { text, level: word === "applied" || word === "rejected" ? "quiet" : "ready" };
}

// What has become of a result: of each of its hunks, or of a file that has none.
function became(changes: ChangesView | null | undefined): string {
  const found = new Set<ReviewState>(
    changes?.files.flatMap((file) => (file.hunks?.length ? file.hunks.map(({ state }) => state) : [file.state])),
  );
  if (found.has("applied")) {
    return found.has("pending") ? "partly applied" : "applied";
  }
  return found.has("rejected") && !found.has("pending") ? "rejected" : "ready";
}

function summaryOf(changes: ChangesView | null | undefined): string {
  const count = changes ? changes.files.length + (changes.files_left_out ?? 0) : 0;
  if (!changes || count === 0) {
    return "no change";
  }
  return `${count} file${count === 1 ? "" : "s"} +${changes.added_lines} -${changes.removed_lines}`;
}

// What a worker said must not reach the screen raw: control characters become a visible sign.
function oneLine(text: string, limit: number): string {
  const line = text.trim().replace(/\s+/g, " ").replace(/\p{Cc}/gu, "\u{FFFD}");
  const characters = Array.from(line);
  return characters.length <= limit ? line : `${characters.slice(0, limit - 1).join("")}…`;
}
