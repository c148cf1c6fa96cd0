"""An OpenCode server that does exactly what a test says, in this process: for all that a real one does only rarely.

It answers the calls that offload makes from plain fields, which the test changes, and sends the events that it is told to. It
does nothing by itself: a prompt is stored as a user message only if `stores_prompts`, and nobody answers it.
"""

import asyncio
import contextlib
import itertools
import json
import re
from urllib.parse import unquote

BOUND_S = 20
AGENT = {
    "name": "build",
    "mode": "primary",
    "description": "Writes code.",
    "permission": [{"permission": "*", "pattern": "*", "action": "allow"}],
}
MODEL = {"id": "worker", "name": "Worker", "variants": {"high": {}}, "cost": {"input": 1, "output": 2}}


DENIED = [{"permission": "*", "pattern": "*", "action": "deny"}]  # of a session that nobody was seen to create


class FakeOpenCode:
    """`calls` are "METHOD /path" in order; `bodies` the last body per call; `directories` what the calls were scoped to, `authorizations`
    who they came from. A new session is in `directory`, if that is set.

    `refusals` maps a call (a regular expression) to a status, to None for a connection that is cut instead of an answer, or to
    "silence" for none at all.
    """

    def __init__(self):
        self.calls = []
        self.bodies = {}
        self.directories = set()
        self.authorizations = set()
        self.directory = ""
        self.refusals = {}
        self.messages = {}
        self.rules = {}  # of the sessions that were created
        self.gives = None  # rules in place of those that are asked for
        self.children = {}
        self.status = {}
        self.permissions = []
        self.questions = []
        self.config = {"model": "fake/worker"}
        self.agents = [AGENT]
        self.providers = [{"id": "fake", "models": {"worker": MODEL}}]
        self.health = {"healthy": True, "version": "1.18.33"}
        self.stores_prompts = True
        self.busy_on_prompt = True
        self.idle_on_abort = True
        self.greets = True
        self.streams = []
        self.opened_streams = 0
        self.url = ""
        self._numbers = itertools.count(1)
        self._changed = asyncio.Condition()
        self._server = None
        self._connections = set()

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *error):
        self._server.close()
        for writer in [*self._connections]:
            writer.transport.abort()
        await self._server.wait_closed()

    # What a test says.

    def user(self, session, message):
        self.messages[session].append({"info": {"id": message, "role": "user", "sessionID": session}, "parts": []})

    def assistant(
        self, session, parent, text="", *, completed=True, finish="stop", error=None, identity=None, tools=(), **info
    ):
        """Store a round, and give its info for an event. `tools` are calls as (name, status, input)."""
        told = {
            "id": identity or f"msg_zz{next(self._numbers):04d}",
            "role": "assistant",
            "sessionID": session,
            "parentID": parent,
            "agent": "build",
            "providerID": "fake",
            "modelID": "worker",
            "cost": 0.5,
            "tokens": {"input": 10, "output": 2, "reasoning": 0, "cache": {"read": 0, "write": 0}},
            "time": {"created": 1, **({"completed": 2} if completed else {})},
            **({"finish": finish} if completed and finish and not error else {}),
            **({"error": error} if error else {}),
            **info,
        }
        parts = [{"id": "prt_1", "type": "text", "text": text}] if text else []
        for tool, status, given in tools:
            parts.append({"id": "prt_2", "type": "tool", "tool": tool, "state": {"status": status, "input": given}})
        stored = self.messages.setdefault(session, [])
        stored[:] = [message for message in stored if message["info"]["id"] != told["id"]]
        stored.append({"info": told, "parts": parts})
        return told

    def emit(self, kind, **properties):
        self.send(b"data: " + json.dumps({"id": "evt_1", "type": kind, "properties": properties}).encode() + b"\n\n")

    def send(self, data):
        """Bytes to every open event stream."""
        for writer in self.streams:
            writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def drop_streams(self):
        for writer in self.streams:
            writer.transport.abort()
        self.streams = []

    def count(self, call):
        return sum(1 for made in self.calls if re.fullmatch(call, made))

    async def until(self, condition):
        async with asyncio.timeout(BOUND_S), self._changed:
            await self._changed.wait_for(condition)

    async def called(self, call, times=1):
        await self.until(lambda: self.count(call) >= times)

    # The server.

    async def _serve(self, reader, writer):
        self._connections.add(writer)
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                method, path, _ = head.split(" ", 2)
                length = re.search(r"content-length: (\d+)", head, re.IGNORECASE)
                body = json.loads(await reader.readexactly(int(length[1]))) if length and int(length[1]) else None
                directory = re.search(r"x-opencode-directory: (.*)\r\n", head, re.IGNORECASE)
                authorization = re.search(r"authorization: (.*)\r\n", head, re.IGNORECASE)
                self.authorizations.add(authorization[1] if authorization else "")
                await self._answer(writer, method, path, body, unquote(directory[1]) if directory else "")
        self._connections.discard(writer)
        writer.close()

    async def _answer(self, writer, method, path, body, directory):
        call = f"{method} {path}"
        if directory:
            self.directories.add(directory)
        if body:
            self.bodies[call] = body
        refusal = next((status for pattern, status in self.refusals.items() if re.fullmatch(pattern, call)), 0)
        if refusal == "silence":
            pass
        elif call == "GET /event" and not refusal and refusal is not None:
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
            self.streams.append(writer)
            self.opened_streams += 1
            if self.greets:
                self.emit("server.connected")
        elif refusal is None:
            self._value(method, path, body)
            await self._note(call)
            writer.transport.abort()
            raise ConnectionError
        else:
            status, value = (refusal, {"name": "Refused"}) if refusal else self._value(method, path, body)
            text = value if isinstance(value, bytes) else b"" if value is None else json.dumps(value).encode()
            writer.write(f"HTTP/1.1 {status} X\r\ncontent-length: {len(text)}\r\n\r\n".encode() + text)
            await writer.drain()
        await self._note(call)

    async def _note(self, call):
        self.calls.append(call)
        await self.poke()

    async def poke(self):
        """Let those who wait `until` something look again."""
        async with self._changed:
            self._changed.notify_all()

    def _value(self, method, path, body):
        """Status and value of the answer."""
        fixed = {
            "GET /global/health": self.health,
            "GET /agent": self.agents,
            "GET /config": self.config,
            "GET /config/providers": {"providers": self.providers},
            "GET /session/status": self.status,
            "GET /permission": self.permissions,
            "GET /question": self.questions,
            "POST /global/dispose": True,
        }
        if (value := fixed.get(f"{method} {path}")) is not None:
            return 200, value
        if f"{method} {path}" == "POST /session":
            session = f"ses_{next(self._numbers)}"
            self.messages[session] = []
            self.rules[session] = self.gives if self.gives is not None else body["permission"]
            return 200, {"id": session, **({"directory": self.directory} if self.directory else {})}
        if asked := re.fullmatch(r"/(permission|question)/(\w+)/(reply|reject)", path):
            listed = self.permissions if asked[1] == "permission" else self.questions
            known = [request for request in listed if request["id"] == asked[2]]
            listed[:] = [request for request in listed if request not in known]
            return (200, True) if known else (404, {"name": "NotFoundError"})
        session, _, rest = path.removeprefix("/session/").partition("/")
        if session not in self.messages:
            return 404, {"name": "NotFoundError"}
        return 200 if rest != "prompt_async" else 204, self._of_session(method, session, rest, body)

    def _of_session(self, method, session, rest, body):
        match method, rest:
            case "GET", "message":
                return self.messages[session]
            case "GET", "children":
                return [{"id": child} for child in self.children.get(session, [])]
            case "GET", "":
                return {"id": session, "directory": "/somewhere", "permission": self.rules.get(session, DENIED)}
            case "DELETE", "":
                return self.messages.pop(session) is not None
            case "POST", "abort":
                if self.idle_on_abort:
                    self.status.pop(session, None)
                return True
            case "POST", "prompt_async":
                if self.stores_prompts:
                    self.user(session, body["messageID"])
                if self.busy_on_prompt:
                    self.status[session] = {"type": "busy"}
        return None
