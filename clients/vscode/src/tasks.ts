// The tasks that the server told of, latest state each. Knows no editor and asks the server nothing.

import type { TaskView } from "./protocol";

export class Tasks {
  private readonly known = new Map<string, TaskView>();

  /** Keeps a task's state unless a later one is known already: the answer to a request can come after a notification. */
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
