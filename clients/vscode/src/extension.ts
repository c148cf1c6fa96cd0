// Starts the language server, keeps what it tells of tasks, and ties marks, status bar and commands to it.

import * as vscode from "vscode";
import { LanguageClient, TransportKind } from "vscode-languageclient/node";

import { COMMANDS, Commands } from "./commands";
import { fileOf } from "./files";
import { Marks } from "./marks";
import { Patches, SCHEME } from "./patches";
import { Places } from "./places";
import type { TaskView } from "./protocol";
import { ask, TASK_CHANGED } from "./requests";
import { summary } from "./status";
import { Tasks, concerns } from "./tasks";

const LANGUAGES = [
  "go",
  "java",
  "javascript",
  "javascriptreact",
  "lua",
  "python",
  "rust",
  "typescript",
  "typescriptreact",
];

let client: LanguageClient | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const [command = "offload", ...args] = vscode.workspace.getConfiguration("offload").get<string[]>("command", []);
  client = new LanguageClient(
    "offload",
    "Offload",
    { command, args, transport: TransportKind.stdio },
    {
      documentSelector: LANGUAGES.map((language) => ({ language, scheme: "file" })),
      // This client draws the marks itself, so the server sends no code lenses for them: one mark per line.
      initializationOptions: { offload: { marks: "client" } },
    },
  );

  const tasks = new Tasks();
  const places = new Places((workspace, path) => fileOf(vscode.Uri.joinPath(vscode.Uri.file(workspace), path)));
  const marks = new Marks(tasks, places);
  const patches = new Patches();
  const statusBar = vscode.window.createStatusBarItem(vscode.StatusBarAlignment.Left);
  statusBar.command = "offloadClient.tasks";

  const draw = (): void => {
    statusBar.text = summary(tasks.open());
    marks.draw();
  };
  const take = (task: TaskView): void => {
    if (tasks.put(task)) {
      places.put(task);
      draw();
    }
  };
  client.onNotification(TASK_CHANGED, take);

  const commands = new Commands(client, tasks, places, patches);
  context.subscriptions.push(
    marks,
    statusBar,
    vscode.workspace.registerTextDocumentContentProvider(SCHEME, patches),
    vscode.window.onDidChangeVisibleTextEditors(draw),
    vscode.workspace.onDidChangeTextDocument(({ document, contentChanges }) => {
      const file = fileOf(document.uri);
      for (const { range, text } of contentChanges) {
        const addedLines = text.split(/\r\n|\r|\n/).length - 1;
        const edit = { first: range.start.line, last: range.end.line, endColumn: range.end.character, addedLines };
        places.edit(file, edit);
      }
      marks.draw();
    }),
    ...Object.entries(COMMANDS).map(([name, run]) =>
      vscode.commands.registerCommand(name, () =>
        run(commands).catch((problem: Error) => vscode.window.showErrorMessage(`Offload: ${problem.message}`)),
      ),
    ),
  );

  try {
    await client.start();
    // Tasks from before this window came are not told of by themselves.
    const folders = (vscode.workspace.workspaceFolders ?? []).map(({ uri }) => fileOf(uri));
    const { tasks: before } = await ask(client, "offload/showTasks", {});
    before.filter((task) => concerns(task, folders)).forEach(take);
  } catch (problem) {
    const reason = problem instanceof Error ? problem.message : String(problem);
    void vscode.window.showErrorMessage(`Offload could not be started (${reason}). See the setting offload.command.`);
    return;
  }
  draw();
  statusBar.show();
}

export function deactivate(): Promise<void> | undefined {
  return client?.stop();
}
