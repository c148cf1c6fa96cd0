// Shows patches as documents that cannot be edited and need not be saved.

import * as vscode from "vscode";

export const SCHEME = "offload-patch";

export class Patches implements vscode.TextDocumentContentProvider {
  private readonly texts = new Map<string, string>();
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.path) ?? "";
  }

  async show(taskId: string, patch: string): Promise<void> {
    const uri = vscode.Uri.from({ scheme: SCHEME, path: `/${taskId}.diff` });
    this.texts.set(uri.path, patch);
    this.changed.fire(uri);
    await vscode.window.showTextDocument(await vscode.workspace.openTextDocument(uri), { preview: true });
  }
}
