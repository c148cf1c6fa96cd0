"""A language server on stdio that does what a test tells it, for looking at an editor client alone.

It answers every `offload/…` request with what its argument or `test/answer` set for it, else with null; `test/notify` makes
it send a notification and `test/seen` gives the requests it got. Standard library only. It knows nothing about tasks.
"""

import json
import sys
from collections.abc import Iterator
from typing import Any

STDIN, STDOUT = sys.stdin.buffer, sys.stdout.buffer


def messages() -> Iterator[dict[str, Any]]:
    while line := STDIN.readline():
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
            STDIN.readline()
            yield json.loads(STDIN.read(length))


def send(message: dict[str, Any]) -> None:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    STDOUT.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
    STDOUT.flush()


def main() -> None:
    seen: list[dict[str, Any]] = []
    answers: dict[str, dict[str, Any]] = json.loads(sys.argv[1])
    for message in messages():
        method, params = message.get("method", ""), message.get("params")
        if method == "exit":
            return
        if "id" not in message:
            continue
        answer: dict[str, Any] = {"result": None}
        if method == "initialize":
            capabilities = {"textDocumentSync": 1, "codeActionProvider": True}
            answer = {"result": {"capabilities": capabilities, "serverInfo": {"name": "scripted"}}}
        elif method == "test/answer":
            answers[params["method"]] = params["answer"]
        elif method == "test/notify":
            send({"method": params["method"], "params": params["params"]})
        elif method == "test/seen":
            answer = {"result": seen}
        else:
            answer = answers.get(method, answer)
        if not method.startswith("test/"):
            seen.append({"method": method, "params": params})
        send({"id": message["id"], **answer})


main()
