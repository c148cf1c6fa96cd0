// The task of the table of status texts, with some fields changed in it and in its last turn.

import type { TaskView } from "../../../clients/vscode/src/protocol";
import table from "../status_cases.json";

export function task(changed: Partial<TaskView> = {}, turn: object = {}): TaskView {
  return { ...table.base, turns: [{ ...table.turn, ...turn }], ...changed } as TaskView;
}
