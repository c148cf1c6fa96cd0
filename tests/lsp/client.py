"""A raw LSP client for tests: it can send broken frames and wrong params, answer late, with an error, or not at all."""

import asyncio
import json
import socket

from lsprotocol import types

BOUND_S = 60
NO_ANSWER = object()  # a handler returns this to leave the server waiting


class Refused(Exception):
    """Raised by a handler to answer with an error."""

    def __init__(self, code, message):
        super().__init__(message)
        self.error = {"code": code, "message": message}


class Client:
    """One connection. `handlers` answer the server's requests by method (default: null); `log` holds all that the server has
    sent of its own accord, `strays` the answers to nothing that was asked."""

    def __init__(self, reader, writer):
        self.reader = reader
        self.writer = writer
        self.handlers = {}
        self.log = []
        self.strays = []
        self.ended = asyncio.Event()
        self.served = None
        self._answers = {}
        self._last_id = 0
        self._news = asyncio.Condition()
        self._reading = asyncio.create_task(self._read())

    # -- sending -------------------------------------------------------------------------------------------------------

    def send_bytes(self, data):
        self.writer.write(data)

    def send_body(self, body):
        self.send_bytes(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    def send(self, message):
        self.send_body(json.dumps(message).encode())

    def notify(self, method, params=None):
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def start(self, method, params=None):
        """Send a request; its answer is for `answer`."""
        self._last_id += 1
        self.expect(self._last_id)
        self.send({"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params})
        return self._last_id

    def expect(self, message_id):
        self._answers[message_id] = asyncio.get_running_loop().create_future()

    async def answer(self, message_id):
        async with asyncio.timeout(BOUND_S):
            return await self._answers[message_id]

    async def request(self, method, params=None):
        return await self.answer(self.start(method, params))

    async def result(self, method, params=None):
        answer = await self.request(method, params)
        assert "error" not in answer, answer["error"]
        return answer["result"]

    async def error(self, method, params=None):
        answer = await self.request(method, params)
        assert "error" in answer, answer
        return answer["error"]

    async def command(self, name, argument=None):
        return await self.result("workspace/executeCommand", {"command": name, "arguments": [argument]})

    # -- receiving -----------------------------------------------------------------------------------------------------

    def of(self, method):
        """The params of all messages of that method so far."""
        return [message.get("params") for message in self.log if message["method"] == method]

    async def until(self, wanted):
        """Wait for a fact about what was received; `wanted` gives it, or something false while it is not there."""
        async with asyncio.timeout(BOUND_S), self._news:
            await self._news.wait_for(wanted)
            return wanted()

    async def next(self, method, seen=0):
        """The params of the message of that method after the first `seen` ones."""
        await self.until(lambda: len(self.of(method)) > seen)
        return self.of(method)[seen]

    async def _read(self):
        try:
            while True:
                header = await self.reader.readuntil(b"\r\n\r\n")
                message = json.loads(await self.reader.readexactly(int(header.split(b":")[1])))
                self._route(message)
                async with self._news:
                    self._news.notify_all()
        except (asyncio.IncompleteReadError, OSError):
            self.ended.set()

    def _route(self, message):
        if "method" not in message:
            waiting = self._answers.get(message.get("id"))
            if waiting is None:
                self.strays.append(message)
            else:
                waiting.set_result(message)
            return
        self.log.append(message)
        if "id" not in message:
            return
        reply = {"jsonrpc": "2.0", "id": message["id"]}
        handler = self.handlers.get(message["method"], lambda _: None)
        try:
            result = handler(message)
        except Refused as refused:
            self.send(reply | {"error": refused.error})
            return
        if result is not NO_ANSWER:
            self.send(reply | {"result": result})

    # -- whole conversations -------------------------------------------------------------------------------------------

    async def initialize(self, capabilities=None, *, encodings=None, folders=(), root=None, options=None, **more):
        capabilities = dict(capabilities or {})
        if encodings is not None:
            capabilities["general"] = {"positionEncodings": encodings}
        params = {
            "processId": None,
            "rootUri": root,
            "capabilities": capabilities,
            "workspaceFolders": [{"uri": path.as_uri(), "name": path.name} for path in folders],
            "initializationOptions": options,
            **more,
        }
        result = await self.result(types.INITIALIZE, params)
        self.notify(types.INITIALIZED, {})
        return result["capabilities"]

    def open(self, path, text=None, version=1, uri=None):
        uri = uri or path.as_uri()
        text = path.read_text() if text is None else text
        item = {"uri": uri, "languageId": "python", "version": version, "text": text}
        self.notify(types.TEXT_DOCUMENT_DID_OPEN, {"textDocument": item})

    def change(self, path, version, *changes):
        """Each change is a text, or ((line, character), (line, character), text)."""
        events = [
            {"text": change} if isinstance(change, str) else {"range": span(*change[:2]), "text": change[2]}
            for change in changes
        ]
        identifier = {"uri": path.as_uri(), "version": version}
        self.notify(types.TEXT_DOCUMENT_DID_CHANGE, {"textDocument": identifier, "contentChanges": events})

    def close(self, path):
        self.notify(types.TEXT_DOCUMENT_DID_CLOSE, {"textDocument": {"uri": path.as_uri()}})

    async def actions(self, path, start, end=None, only=None):
        """Code actions as (title, command, argument)."""
        context = {"diagnostics": []} | ({} if only is None else {"only": only})
        params = {"textDocument": {"uri": path.as_uri()}, "range": span(start, end or start), "context": context}
        actions = await self.result(types.TEXT_DOCUMENT_CODE_ACTION, params)
        return [(one["title"], one["command"]["command"], one["command"]["arguments"][0]) for one in actions]

    async def lenses(self, path):
        """Code lenses as (line, title, command)."""
        lenses = await self.result(types.TEXT_DOCUMENT_CODE_LENS, {"textDocument": {"uri": path.as_uri()}})
        return [(one["range"]["start"]["line"], one["command"]["title"], one["command"]["command"]) for one in lenses]

    async def disconnect(self):
        """Drop the connection without a word."""
        self._reading.cancel()
        await asyncio.wait({self._reading})
        self.writer.transport.abort()


def span(start, end):
    return {
        "start": {"line": start[0], "character": start[1]},
        "end": {"line": end[0], "character": end[1]},
    }


async def pair():
    """Two connected streams: (our reader, our writer), (their reader, their writer)."""
    ours, theirs = socket.socketpair()
    return await asyncio.open_unix_connection(sock=ours), await asyncio.open_unix_connection(sock=theirs)
