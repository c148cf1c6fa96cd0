"""The scripted language model that ships with offload: OpenAI's chat completions on a free loopback port, without key or network.

It streams what `script` decides in small pieces at the pace of a quick model, so that progress can be watched.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any

from offload.demo.script import Call, Say, next_move, read_conversation

PROVIDER = "scripted"
MODEL = "demo"
PIECE = 16  # characters, about four tokens


def opencode_config(url: str) -> dict[str, Any]:
    """What OpenCode has to know to use the model, and no other."""
    model = {"name": "Scripted demo model", "limit": {"context": 200_000, "output": 16_000}}
    return {
        "model": f"{PROVIDER}/{MODEL}",
        "small_model": f"{PROVIDER}/{MODEL}",
        "enabled_providers": [PROVIDER],
        "share": "disabled",
        "autoupdate": False,
        "provider": {
            PROVIDER: {
                "npm": "@ai-sdk/openai-compatible",
                "name": "Scripted demo model",
                "options": {"baseURL": f"{url}/v1", "apiKey": "none"},
                "models": {MODEL: model},
            }
        },
    }


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, pace_s: float) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.pace_s = pace_s
        self.numbers = count(1)


@contextmanager
def scripted_model(pace_s: float) -> Iterator[str]:
    """Serve the model from a thread; gives its URL. `pace_s` is the pause between two pieces of an answer."""
    with _Server(pace_s) as server:
        thread = threading.Thread(target=server.serve_forever, name="scripted-model")
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the base class names it so
        """Standard error belongs to the demo's screen."""

    def do_GET(self) -> None:
        model = {"id": MODEL, "object": "model", "created": 0, "owned_by": "offload"}
        self._answer(200, {"object": "list", "data": [model]})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        if self.path != "/v1/chat/completions":
            self._answer(404, _error("only /v1/chat/completions is served here"))
            return
        try:
            request = json.loads(body)
            move = _move(request)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            self._answer(400, _error(f"this is not a chat completions request: {error!r}"))
            return
        number = next(self.server.numbers)
        usage = _usage(len(body), move)
        if not request.get("stream"):
            message, reason = _message(move, number)
            choice = {"index": 0, "message": message, "finish_reason": reason}
            head = _head(request, number, "chat.completion")
            self._answer(200, {**head, "choices": [choice], "usage": usage})
            return
        try:
            self._stream(_head(request, number, "chat.completion.chunk"), move, number, usage)
        except (BrokenPipeError, ConnectionResetError):  # the agent was stopped in the middle of an answer
            self.close_connection = True

    def _answer(self, status: int, value: Mapping[str, Any]) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, head: dict[str, Any], move: Say | Call, number: int, usage: dict[str, int]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        for delta in _deltas(move, number):
            self._event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
            time.sleep(self.server.pace_s)  # the pace of a quick model, so that there is progress to be watched
        _, reason = _message(move, number)
        last = {"index": 0, "delta": {}, "finish_reason": reason}
        self._event({**head, "choices": [last], "usage": usage})
        self.wfile.write(b"data: [DONE]\n\n")

    def _event(self, value: Mapping[str, Any]) -> None:
        self.wfile.write(b"data: " + json.dumps(value).encode() + b"\n\n")
        self.wfile.flush()


def _move(request: Mapping[str, Any]) -> Say | Call:
    if not request.get("tools"):  # an agent asks for titles and summaries without offering tools
        return Say("Tests for a block")
    return next_move(read_conversation(request["messages"]))


def _head(request: Mapping[str, Any], number: int, kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{number}",
        "object": kind,
        "created": int(time.time()),
        "model": request.get("model", MODEL),
    }


def _message(move: Say | Call, number: int) -> tuple[dict[str, Any], str]:
    """The whole message and its finish reason."""
    if isinstance(move, Say):
        return {"role": "assistant", "content": move.text}, "stop"
    function = {"name": move.tool, "arguments": json.dumps(move.arguments)}
    call = {"id": f"call_{number}", "type": "function", "function": function}
    return {"role": "assistant", "content": move.words, "tool_calls": [call]}, "tool_calls"


def _deltas(move: Say | Call, number: int) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": ""}
    for piece in _pieces(move.text if isinstance(move, Say) else move.words):
        yield {"content": piece}
    if isinstance(move, Call):
        function = {"name": move.tool, "arguments": ""}
        yield {"tool_calls": [{"index": 0, "id": f"call_{number}", "type": "function", "function": function}]}
        for piece in _pieces(json.dumps(move.arguments)):
            yield {"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}


def _pieces(text: str) -> Iterator[str]:
    return (text[start : start + PIECE] for start in range(0, len(text), PIECE))


def _usage(request_bytes: int, move: Say | Call) -> dict[str, int]:
    """Four characters are counted as one token, the usual rule of thumb."""
    written = len(json.dumps(_message(move, 0)[0]))
    prompt, completion = request_bytes // 4, written // 4
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def _error(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error"}}
