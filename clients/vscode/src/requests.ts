// The server's own requests, with the types that are generated from its operations table.

import type { LanguageClient } from "vscode-languageclient/node";

import type { Notifications, Requests } from "./protocol";

export const TASK_CHANGED = "offload/taskChanged" satisfies keyof Notifications;

export function ask<Method extends keyof Requests>(
  client: LanguageClient,
  method: Method,
  params: Requests[Method]["params"],
): Promise<Requests[Method]["result"]> {
  return client.sendRequest(method, params);
}
