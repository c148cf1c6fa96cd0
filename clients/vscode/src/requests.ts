// The server's own requests, with the types that are generated from its operations table.

import type { LanguageClient } from "vscode-languageclient/node";

import type {
  ApplyTaskParams,
  IntegrateTasksParams,
  Notifications,
  RejectTaskParams,
  Requests,
  RunChecksParams,
  UndoApplyParams,
} from "./protocol";

interface ServerCommands {
  "offload.apply": ApplyTaskParams;
  "offload.check": RunChecksParams;
  "offload.integrate": IntegrateTasksParams;
  "offload.reject": RejectTaskParams;
  "offload.undo": UndoApplyParams;
}

export const TASK_CHANGED = "offload/taskChanged" satisfies keyof Notifications;

export function ask<Method extends keyof Requests>(
  client: LanguageClient,
  method: Method,
  params: Requests[Method]["params"],
): Promise<Requests[Method]["result"]> {
  return client.sendRequest(method, params);
}

/** Runs one of the server's commands. What came of it, a refusal included, the server itself says to the user. */
export async function command<Name extends keyof ServerCommands>(
  client: LanguageClient,
  name: Name,
  argument: ServerCommands[Name],
): Promise<void> {
  await client.sendRequest("workspace/executeCommand", { command: name, arguments: [argument] }).catch(() => undefined);
}
