// What each command does: choose a task or a block, ask the server once, show the answer.

import * as vscode from "vscode";
import type { LanguageClient } from "vscode-languageclient/node";

import { fileOf } from "./files";
import type { Patches } from "./patches";
import type { Places } from "./places";
import type { AskView, StartTaskParams, TaskView } from "./protocol";
import { ask, command } from "./requests";
import { rests, status } from "./status";
import type { Tasks } from "./tasks";

// The server's own commands are offload.*, and the language client registers them: ours have another beginning.
export const COMMANDS = {
  "offloadClient.tests": (run: Commands) => run.start("tests"),
  "offloadClient.docs": (run: Commands) => run.start("docs"),
  "offloadClient.instruct": (run: Commands) => run.instruct(),
  "offloadClient.continue": (run: Commands) => run.continue(),
  "offloadClient.cancel": (run: Commands) => run.cancel(),
  "offloadClient.answer": (run: Commands) => run.answer(),
  "offloadClient.diff": (run: Commands) => run.diff(),
  "offloadClient.apply": (run: Commands) => run.apply(),
  "offloadClient.undo": (run: Commands) => run.undo(),
  "offloadClient.reject": (run: Commands) => run.reject(),
  "offloadClient.check": (run: Commands) => run.check(),
  "offloadClient.integrate": (run: Commands) => run.integrate(),
  "offloadClient.close": (run: Commands) => run.close(),
  "offloadClient.tasks": (run: Commands) => run.list(),
} as const;

/** The part of a code action that says which block the server would delegate. */
interface Action {
  command?: { command: string; arguments?: StartTaskParams[] };
}

export class Commands {
  constructor(
    private readonly client: LanguageClient,
    private readonly tasks: Tasks,
    private readonly places: Places,
    private readonly patches: Patches,
  ) {}

  /** Delegates the selected lines, else the block at the cursor as the server's own code action names it. */
  async start(recipe: string, brief = ""): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    const place = editor && (await this.place(editor));
    if (!place) {
      void vscode.window.showWarningMessage("No block at the cursor; select the lines to delegate.");
      return;
    }
    await ask(this.client, "offload/startTask", { ...place, recipe, brief });
  }

  async instruct(): Promise<void> {
    const brief = await vscode.window.showInputBox({ prompt: "What is to be done with this block?" });
    if (brief) {
      await this.start("instruction", brief);
    }
  }

  async continue(): Promise<void> {
    const task = await this.choose(rests, "No finished task is open.");
    const brief = task && (await vscode.window.showInputBox({ prompt: `Follow-up to: ${task.title}` }));
    if (brief) {
      await ask(this.client, "offload/continueTask", { task_id: task.task_id, brief });
    }
  }

  async cancel(): Promise<void> {
    const task = await this.choose((each) => !rests(each), "No task runs.");
    if (task) {
      await ask(this.client, "offload/cancelTask", { task_id: task.task_id });
    }
  }

  async close(): Promise<void> {
    const task = await this.choose(rests, "No finished task is open.");
    if (task) {
      await ask(this.client, "offload/closeTask", { task_id: task.task_id });
    }
  }

  /** Answers a worker's oldest open ask. */
  async answer(): Promise<void> {
    const task = await this.choose((each) => each.asks.length > 0, "No worker asks anything.");
    const open = task?.asks[0];
    const choice = open && (await chosen(open));
    if (choice) {
      await ask(this.client, "offload/answerTask", { task_id: task.task_id, ask_id: open.ask_id, choice });
    }
  }

  async diff(): Promise<void> {
    const task = await this.choose(hasChanges, "No task has changes to show.");
    if (task) {
      const { patch } = await ask(this.client, "offload/getChanges", { task_id: task.task_id });
      await this.patches.show(task.task_id, patch);
    }
  }

  async apply(): Promise<void> {
    const task = await this.choose(hasChanges, "No task has changes to apply.");
    if (task) {
      await command(this.client, "offload.apply", { task_id: task.task_id });
    }
  }

  async undo(): Promise<void> {
    const task = await this.choose(wasApplied, "No apply can be undone.");
    if (task) {
      await command(this.client, "offload.undo", { task_id: task.task_id });
    }
  }

  /** Rejects what is not applied of a task's changes, and has its worker do them anew if that is wanted. */
  async reject(): Promise<void> {
    const task = await this.choose(hasChanges, "No task has changes to reject.");
    const prompt = "Why are these changes not wanted?";
    const reason = task && (await vscode.window.showInputBox({ prompt, title: task.title }));
    if (task === undefined || reason === undefined) {
      return;
    }
    const back = "Reject, and send back to the worker";
    const choice = await vscode.window.showQuickPick(["Reject", back], { placeHolder: task.title });
    if (choice) {
      await command(this.client, "offload.reject", { task_id: task.task_id, reason, send_back: choice === back });
    }
  }

  async check(): Promise<void> {
    const task = await this.choose(hasChanges, "No task has changes to check.");
    if (task) {
      await command(this.client, "offload.check", { task_id: task.task_id });
    }
  }

  /** Makes one result of those that are picked. */
  async integrate(): Promise<void> {
    const fitting = this.tasks.open().filter((task) => hasChanges(task) && !task.integration);
    const picked = await vscode.window.showQuickPick(fitting.map(item), {
      placeHolder: "Which results shall become one?",
      canPickMany: true,
    });
    if (picked?.length) {
      await command(this.client, "offload.integrate", { task_ids: picked.map(({ task }) => task.task_id) });
    }
  }

  /** Lists the open tasks and goes to the block of the one that is chosen. */
  async list(): Promise<void> {
    const task = await pick(this.tasks.open(), "No task is open.");
    const place = task && this.places.of(task.task_id);
    if (place) {
      const line = new vscode.Range(place.span.first, 0, place.span.first, 0);
      await vscode.window.showTextDocument(vscode.Uri.file(place.file), { selection: line });
    }
  }

  private async place({ document, selection }: vscode.TextEditor): Promise<StartTaskParams | undefined> {
    if (!selection.isEmpty) {
      // A selection of whole lines ends at the beginning of the line after them.
      const last = selection.end.character === 0 ? selection.end.line - 1 : selection.end.line;
      return { file: document.uri.fsPath, lines: `${selection.start.line + 1}-${last + 1}` };
    }
    const actions = await this.client.sendRequest<Action[] | null>("textDocument/codeAction", {
      textDocument: { uri: this.client.code2ProtocolConverter.asUri(document.uri) },
      range: this.client.code2ProtocolConverter.asRange(selection),
      context: { diagnostics: [] },
    });
    return actions?.find(({ command }) => command?.command === "offload.start")?.command?.arguments?.[0];
  }

  /** The only fitting task at the cursor without a question, else the one that is picked from a list. */
  private async choose(fits: (task: TaskView) => boolean, nothing: string): Promise<TaskView | undefined> {
    const fitting = this.tasks.open().filter(fits);
    const editor = vscode.window.activeTextEditor;
    const here = editor
      ? fitting.filter((task) =>
          this.places.holds(task.task_id, fileOf(editor.document.uri), editor.selection.active.line),
        )
      : [];
    return here.length === 1 ? here[0] : pick(here.length > 0 ? here : fitting, nothing);
  }
}

// Each turn's change set holds all since the start, so the newest one counts, though a later turn may have ended
// without.
function hasChanges(task: TaskView): boolean {
  const newest = task.turns.findLast((turn) => turn.changes != null)?.changes;
  return rests(task) && (newest?.files.length ?? 0) > 0;
}

function wasApplied(task: TaskView): boolean {
  return rests(task) && task.landings.some(({ undone_at }) => undone_at === null);
}

async function pick(tasks: TaskView[], nothing: string): Promise<TaskView | undefined> {
  if (tasks.length === 0) {
    void vscode.window.showInformationMessage(nothing);
    return undefined;
  }
  return (await vscode.window.showQuickPick(tasks.map(item), { placeHolder: "Which task?" }))?.task;
}

interface Item extends vscode.QuickPickItem {
  task: TaskView;
}

function item(task: TaskView): Item {
  const detail = (task.warnings ?? []).map((warning) => `$(warning) ${warning}`).join("; ");
  return { label: task.title, description: status(task).text, ...(detail && { detail }), task };
}

async function chosen(ask: AskView): Promise<string | undefined> {
  const placeHolder = `${ask.subject}: ${ask.detail}`;
  return ask.choices.length > 0
    ? vscode.window.showQuickPick(ask.choices, { placeHolder })
    : vscode.window.showInputBox({ prompt: placeHolder });
}
