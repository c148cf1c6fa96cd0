// Where each task's block is now. Lines in messages are those of the task's start, so blocks are moved here with every
// edit, by task id. Knows files as strings and no editor.

import type { TaskView } from "./protocol";

/** Lines of a block, 0-based, both included. */
export interface Span {
  first: number;
  last: number;
}

/** One replaced range: its first and last line, the column where it ends, and the line breaks that were put there. */
export interface Edit {
  first: number;
  last: number;
  endColumn: number;
  addedLines: number;
}

/** The block after an edit. Above: moved. Inside: stretched. Across its start: it begins where the edit began. */
export function shift(span: Span, edit: Edit): Span {
  const moved = edit.addedLines - (edit.last - edit.first);
  if (edit.first > span.last) {
    return span;
  }
  if (edit.last < span.first || (edit.last === span.first && edit.endColumn === 0)) {
    return { first: span.first + moved, last: span.last + moved };
  }
  const first = Math.min(span.first, edit.first);
  return { first, last: Math.max(first, span.last + moved) };
}

export class Places {
  private readonly places = new Map<string, { file: string; span: Span }>();

  /** `fileOf` makes one name of every way to write a file's path. */
  constructor(private readonly fileOf: (workspace: string, path: string) => string) {}

  /** Places a task that is new at its anchor and forgets one that is closed; one that has a place keeps it. */
  put(task: TaskView): void {
    if (task.closed) {
      this.places.delete(task.task_id);
    } else if (task.anchor && !this.places.has(task.task_id)) {
      this.places.set(task.task_id, {
        file: this.fileOf(task.workspace, task.anchor.path),
        span: { first: task.anchor.first_line - 1, last: task.anchor.last_line - 1 },
      });
    }
  }

  /** Moves the blocks of a file with an edit. */
  edit(file: string, edit: Edit): void {
    for (const place of this.places.values()) {
      if (place.file === file) {
        place.span = shift(place.span, edit);
      }
    }
  }

  /** Where a task's block is, undefined for a task without one. */
  of(taskId: string): { file: string; span: Span } | undefined {
    return this.places.get(taskId);
  }

  /** Whether a task's block holds the line. */
  holds(taskId: string, file: string, line: number): boolean {
    const place = this.places.get(taskId);
    return place !== undefined && place.file === file && place.span.first <= line && line <= place.span.last;
  }
}
