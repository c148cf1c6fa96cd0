// The tasks that the server told of, latest state each. Knows no editor and asks the server nothing.

import { isAbsolute, relative } from "node:path";

import type { TaskView } from "./protocol";

/** Whether the task's workspace is one of the folders, or one holds the other: the server tells of such tasks only. */
export function concerns(task: TaskView, folders: readonly string[]): boolean {
  return folders.some((folder) => holds(folder, task.workspace) || holds(task.workspace, folder));
}

function holds(outer: string, inner: string): boolean {
  const way = relative(outer, inner);
  return way !== ".." && !way.startsWith("../") && !isAbsolute(way);
}

export class Tasks {
  private readonly known = new Map<string, TaskView>();

  /** Keeps a task's state unless a later one is known: the answer to a request can come after a notification. */
  put(task: TaskView): boolean {
    const before = this.known.get(task.task_id);
    if (before && before.revision > task.revision) {
      return false;
    }
    this.known.set(task.task_id, task);
    return true;
  }

  /** Tasks that are not closed, newest first. */
  open(): TaskView[] {
    return [...this.known.values()]
      .filter((task) => !task.closed)
      .sort((one, other) => other.created_at - one.created_at);
  }
}
