"""A language model that does what the prompt says: OpenAI's chat completions on a free loopback port.

In the last user message that holds any, every line that begins with `::` is one step; step k answers the k-th round of that turn.
Past the last step the answer is "All done.".

    ::text WORDS             plain text, one chunk per word
    ::reason WORDS           reasoning, then the text "after reasoning"
    ::tool NAME {json}       one tool call
    ::tools [[NAME, {..}]]   several tool calls in one round
    ::echo                   length and beginning of the last tool result
    ::gate NAME WORDS        "so far ", then nothing until the test opens the gate, then WORDS
    ::big KB                 KB chunks of 1 KB
    ::error CODE [COUNT]     an HTTP error, COUNT times (default always), then the text "Recovered."
    ::drop                   part of a stream, then the connection is cut
"""

import collections
import json
import re
import select
import socket
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

STEP = re.compile(r"^[ \t]*::(\w+)[ \t]*(.*)$", re.MULTILINE)


class ClientGone(Exception):
    """The client closed its connection in the middle of an answer."""


@dataclass
class ModelGate:
    """`reached` is set when a round stands before it."""

    reached: threading.Event = field(default_factory=threading.Event)
    opened: threading.Event = field(default_factory=threading.Event)


def flatten(content):
    if isinstance(content, list):
        return "\n".join(flatten(item) for item in content)
    return content.get("text", "") if isinstance(content, dict) else content or ""


class FakeModel(ThreadingHTTPServer):
    """`requests` holds what was asked for (model, effort, offered tools, by whose key) in order."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.requests = []
        self.errors = collections.Counter()
        self._gates = {}
        self._lock = threading.Lock()

    def gate(self, name):
        with self._lock:
            return self._gates.setdefault(name, ModelGate())

    def opencode_config(self):
        """What OpenCode has to know to use this model and no other."""
        limit = {"context": 200_000, "output": 8_000}
        cost = {"input": 1, "output": 2, "cache_read": 0.1, "cache_write": 0}
        return {
            "model": "fake/worker",
            "small_model": "fake/other",
            "enabled_providers": ["fake"],
            "provider": {
                "fake": {
                    "npm": "@ai-sdk/openai-compatible",
                    "name": "Fake",
                    "options": {"baseURL": f"{self.url}/v1", "apiKey": "not-a-real-key"},
                    "models": {
                        "worker": {"name": "Worker", "limit": limit, "cost": cost, "reasoning": True},
                        "other": {"name": "Other", "limit": limit},
                    },
                }
            },
        }


@contextmanager
def running():
    with FakeModel() as model:
        thread = threading.Thread(target=model.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield model
        finally:
            model.shutdown()
            thread.join()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        messages = body["messages"]
        users = [index for index, message in enumerate(messages) if message["role"] == "user"]
        scripted = [index for index in users if STEP.search(flatten(messages[index]["content"]))]
        at = (scripted or users)[-1]
        prompt, after = flatten(messages[at]["content"]), messages[at + 1 :]
        rounds = sum(1 for message in after if message["role"] == "assistant" and message.get("tool_calls"))
        results = [flatten(message["content"]) for message in after if message["role"] == "tool"]
        steps = STEP.findall(prompt)
        tools = [tool["function"]["name"] for tool in body.get("tools", [])]
        if not tools:
            step, argument = "text", "A title"
        elif rounds < len(steps):
            step, argument = steps[rounds]
        else:
            step, argument = "text", "All done." if steps else "Hello from the fake model."
        self.server.requests.append(
            {
                "model": body["model"],
                "effort": body.get("reasoning_effort"),
                "tools": tools,
                "prompt": prompt,
                "authorization": self.headers["authorization"],
            }
        )
        if step == "error":
            code, _, count = argument.partition(" ")
            self.server.errors[prompt] += 1
            if not count or self.server.errors[prompt] <= int(count):
                self.refuse(int(code))
                return
            step, argument = "text", "Recovered."
        self.base = {"id": f"chatcmpl-{len(self.server.requests)}", "object": "chat.completion.chunk", "created": 1}
        self.close_connection = True
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        try:
            self.delta({"role": "assistant", "content": ""})
            reason = self.play(step, argument, results)
            self.delta({}, reason)
            self.wfile.write(b"data: [DONE]\n\n")
        except (ClientGone, BrokenPipeError, ConnectionResetError):
            pass

    def refuse(self, code):
        data = json.dumps({"error": {"message": f"scripted {code}", "type": "fake", "code": code}}).encode()
        self.send_response(code)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        if code == 429:
            self.send_header("retry-after", "1")
        self.end_headers()
        self.wfile.write(data)

    def delta(self, delta, reason=None):
        chunk = {**self.base, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
        if reason:
            cached = {"cached_tokens": 40}
            chunk["usage"] = {
                "prompt_tokens": 100,
                "completion_tokens": 5,
                "total_tokens": 105,
                "prompt_tokens_details": cached,
            }
        self.wfile.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
        self.wfile.flush()

    def say(self, text):
        self.delta({"content": text})

    def play(self, step, argument, results):
        match step:
            case "tool" | "tools":
                name, _, arguments = argument.partition(" ")
                calls = json.loads(argument) if step == "tools" else [[name, json.loads(arguments)]]
                for index, (tool, given) in enumerate(calls):
                    function = {"name": tool, "arguments": json.dumps(given)}
                    identity = f"call_{self.base['id']}_{index}"
                    call = {"index": index, "id": identity, "type": "function", "function": function}
                    self.delta({"tool_calls": [call]})
                return "tool_calls"
            case "reason":
                self.delta({"reasoning_content": argument})
                self.say("after reasoning")
            case "echo":
                self.say(f"{len(results[-1])} characters: {results[-1][:300]}" if results else "no tool result")
            case "gate":
                name, _, words = argument.partition(" ")
                self.say("so far ")
                self.wait_at(self.server.gate(name))
                self.say(words)
            case "big":
                for _ in range(int(argument)):
                    self.say("x" * 1024)
            case "drop":
                self.say("partial ")
                self.connection.shutdown(socket.SHUT_RDWR)
                raise ClientGone
            case _:
                for word in re.findall(r"\S+\s*", argument):
                    self.say(word)
        return "stop"

    def wait_at(self, gate):
        """Until the gate is open or the client goes away."""
        gate.reached.set()
        while not gate.opened.wait(0.02):
            readable, _, _ = select.select([self.connection], [], [], 0)
            if readable and not self.connection.recv(1, socket.MSG_PEEK):
                raise ClientGone
