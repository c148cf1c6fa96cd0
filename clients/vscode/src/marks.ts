// Draws the status of tasks at the end of their block's first line, one per line, in every visible editor.

import * as vscode from "vscode";

import { fileOf } from "./files";
import type { Places } from "./places";
import type { TaskView } from "./protocol";
import { type Level, lineMark } from "./status";
import type { Tasks } from "./tasks";

const COLOURS: Readonly<Record<Level, string>> = {
  live: "editorInfo.foreground",
  waiting: "editorWarning.foreground",
  ready: "testing.iconPassed",
  failed: "editorError.foreground",
  quiet: "editorCodeLens.foreground",
};

export class Marks implements vscode.Disposable {
  private readonly decoration = vscode.window.createTextEditorDecorationType({ after: { margin: "0 0 0 2em" } });

  constructor(
    private readonly tasks: Tasks,
    private readonly places: Places,
  ) {}

  draw(): void {
    for (const editor of vscode.window.visibleTextEditors) {
      editor.setDecorations(this.decoration, this.of(editor.document));
    }
  }

  dispose(): void {
    this.decoration.dispose();
  }

  private of(document: vscode.TextDocument): vscode.DecorationOptions[] {
    const file = fileOf(document.uri);
    const lines = new Map<number, [TaskView, ...TaskView[]]>();
    for (const task of this.tasks.open()) {
      const place = this.places.of(task.task_id);
      if (place?.file === file) {
        const line = Math.min(place.span.first, document.lineCount - 1);
        const here = lines.get(line);
        if (here) {
          here.push(task);
        } else {
          lines.set(line, [task]);
        }
      }
    }
    return [...lines].map(([line, here]) => {
      const end = document.lineAt(line).range.end;
      const { text, level } = lineMark(here);
      const after = { contentText: text, color: new vscode.ThemeColor(COLOURS[level]) };
      return { range: new vscode.Range(end, end), renderOptions: { after } };
    });
  }
}
