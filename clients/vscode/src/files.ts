// One name for a file, whichever links its path goes through.

import { realpathSync } from "node:fs";

import * as vscode from "vscode";

export function fileOf(uri: vscode.Uri): string {
  if (uri.scheme !== "file") {
    return uri.toString();
  }
  try {
    return realpathSync(uri.fsPath);
  } catch {
    return uri.fsPath; // not saved yet, or gone
  }
}
