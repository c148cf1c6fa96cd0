// Draws each task's status at the end of its block's first line, in every visible editor.

import * as vscode from "vscode";

import { fileOf } from "./files";
import type { Places } from "./places";
import { type Level, mark } from "./status";
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
    return this.tasks.open().flatMap((task) => {
      const place = this.places.of(task.task_id);
      if (!place || place.file !== file) {
        return [];
      }
      const line = document.lineAt(Math.min(place.span.first, document.lineCount - 1));
      const { text, level } = mark(task);
      const after = { contentText: text, color: new vscode.ThemeColor(COLOURS[level]) };
      return [{ range: new vscode.Range(line.range.end, line.range.end), renderOptions: { after } }];
    });
  }
}
