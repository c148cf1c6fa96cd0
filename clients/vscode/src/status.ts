// How a task is said in a few words beside its block. The Neovim client says the same: both are held to one table,
// tests/clients/status_cases.json. Knows tasks as they come over the wire, no editor.

import type { ActivityView, ChangesView, TaskView } from "./protocol";

/** How much a status wants to be looked at; each has a colour. */
export type Level = "live" | "waiting" | "ready" | "failed" | "quiet";

export interface Said {
  text: string;
  level: Level;
}

// Longer texts are cut: a mark shares its line with code.
const LIMIT = 100;

const RESTING: ReadonlySet<string> = new Set(["ready", "failed", "cancelled", "interrupted"]);

const ACTIVITY: Readonly<Record<string, string>> = {
  thinking: "thinking",
  writing: "writing",
  retrying: "retrying",
  stalled: "no sign of life",
};

/** Whether nothing happens to the task by itself any more. */
export function rests(task: TaskView): boolean {
  return RESTING.has(task.phase);
}

/** Where the task stands, in one line. */
export function status(task: TaskView): Said {
  const { text, level } = said(task);
  return { text: oneLine(text), level };
}

/** What stands at the end of the block's first line. */
export function mark(task: TaskView): Said {
  const { text, level } = status(task);
  return { text: `◀ ${task.recipe === "instruction" ? "task" : task.recipe} ${text}`, level };
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
  const turn = task.turns.at(-1);
  if (task.phase === "working") {
    return working(task);
  }
  if (task.phase === "queued" && task.place != null) {
    return { text: task.place === 1 ? "queued, next" : `queued, place ${task.place}`, level: "live" };
  }
  if (!rests(task)) {
    return { text: task.phase, level: "live" };
  }
  const landing = task.landings.at(-1);
  if (landing && landing.turn_id === turn?.turn_id) {
    return { text: "applied", level: "quiet" };
  }
  if (task.phase === "cancelled") {
    return { text: "cancelled", level: "quiet" };
  }
  if (turn?.failure) {
    return { text: `${task.phase}: ${turn.failure.message}`, level: "failed" };
  }
  if (turn?.needs_review) {
    return { text: `needs review: ${turn.needs_review}`, level: "waiting" };
  }
  return { text: `${task.phase}: ${changed(turn?.changes)}`, level: "ready" };
}

function working(task: TaskView): Said {
  const [ask] = task.asks;
  if (ask) {
    return { text: `waiting for you: ${ask.subject} ${ask.detail}`, level: "waiting" };
  }
  return { text: task.activity ? `working: ${doing(task.activity)}` : "working", level: "live" };
}

function doing(activity: ActivityView): string {
  return activity.label || ACTIVITY[activity.kind] || `running ${activity.tool}`;
}

function changed(changes: ChangesView | null | undefined): string {
  const count = changes ? changes.files.length + (changes.files_left_out ?? 0) : 0;
  if (!changes || count === 0) {
    return "no changes";
  }
  return `${count} file${count === 1 ? "" : "s"}, +${changes.added_lines} -${changes.removed_lines}`;
}

function oneLine(text: string): string {
  const characters = Array.from(text.trim().replace(/\s+/g, " "));
  return characters.length <= LIMIT ? characters.join("") : `${characters.slice(0, LIMIT - 1).join("")}…`;
}
