// A stock vscode-languageserver over stdio, with as little in it as can be.
import { createConnection, ProposedFeatures } from "vscode-languageserver/node.js";

const connection = createConnection(ProposedFeatures.all, process.stdin, process.stdout);
connection.onInitialize(() => ({ capabilities: { codeLensProvider: {} } }));
connection.onCodeLens(() => []);
connection.listen();
