"""An OpenCode-compatible server that acts by itself and misbehaves as told: it plays each prompt as a turn, and dies when it is
killed, with what a real one keeps of a turn then.

It stands in this process, and a small program stands for its process: whoever kills that has killed the server. The steps of a
turn are lines of the prompt:

    ::say WORDS           a round of text
    ::write PATH WORDS    a round that writes a file in the directory
    ::ask COMMAND         a permission that the turn waits for

What is known afterwards: `sent` counts how often a prompt came for each message id and life of the server, `stored` how often it
was stored in all, `ended` holds the final text of the turns that
came to their end, `playing` the turns that are being worked on.
"""

import asyncio
import collections
import contextlib
import os
import re
import signal
from pathlib import Path

import psutil

from tests.fakes.opencode_server import FakeOpenCode

STEP = re.compile(r"^::(\w+) ?(.*)$", re.MULTILINE)
PROGRAM = """#!/bin/sh
if [ "$1" = --version ]; then echo 1.18.33; exit; fi
echo $$ >"{pid}.part" && mv "{pid}.part" "{pid}"
echo "opencode server listening on {url}"
exec sleep 600
"""
TROUBLES = (
    "late",
    "silent stream",
    "idle too early",
    "busy for ever",
    "dropped stream",
    "half-open connection",
    "giant event",
    "401",
    "500",
    "wrong directory",
)


class ActingOpenCode(FakeOpenCode):
    """`hit` is called with each labelled moment; `trouble` is one of TROUBLES, or "" for a server that is well."""

    def __init__(self, folder, hit, trouble=""):
        super().__init__()
        self.busy_on_prompt = self.stores_prompts = False
        self.sent = collections.Counter()
        self._begun = set()  # the sessions that were sent a prompt
        self.stored = collections.Counter()
        self.ended = {}
        self.playing = {}
        self.crashes = 0
        self.hub_is_dead = False
        self.program = folder / "opencode"
        self._pid = folder / "pid"
        self._down = 0
        self._hit = hit
        self._trouble = trouble
        self._left = 3  # how often a trouble comes that a server gets over
        self._permits = {}
        self._players = set()

    async def __aenter__(self):
        await super().__aenter__()
        self.program.write_text(PROGRAM.format(pid=self._pid, url=self.url))
        self.program.chmod(0o755)
        return self

    async def __aexit__(self, *error):
        self.crash()
        await asyncio.gather(*self._players, return_exceptions=True)
        await super().__aexit__(*error)

    # How it dies.

    def process(self):
        return int(self._pid.read_text()) if self._pid.exists() else 0

    def crash(self):
        """kill -9: what is stored stays, what is going on is gone and nobody finishes it."""
        self._down = self.process()
        if self._down:
            self.crashes += 1
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._down, signal.SIGKILL)
        self._forget()
        self.cut()

    def _forget(self):
        for player in self.playing.values():
            player.cancel()
        self.playing.clear()
        self.status.clear()
        self.permissions.clear()
        self._permits.clear()

    def cut(self):
        """Every connection ends, as those of a killed hub do."""
        for writer in [*self._connections]:
            writer.transport.abort()
        self.streams = []

    @property
    def up(self):
        pid = self.process()
        if not pid or pid == self._down:
            return False
        try:
            return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False

    # What it answers.

    async def _answer(self, writer, method, path, body, directory):
        if self.hub_is_dead or not self.up:
            writer.transport.abort()
            raise ConnectionError
        before, after = await self._labels(method, path, before=True), None
        if await self._is_troubled(writer, method, path):
            return
        if before and (self.hub_is_dead or not self.up):
            writer.transport.abort()
            raise ConnectionError
        self._directory = directory
        await super()._answer(writer, method, path, body, directory)
        after = await self._labels(method, path, before=False)
        if after and (self.hub_is_dead or not self.up):
            raise ConnectionError

    async def _labels(self, method, path, *, before):
        """The moments around a call; before one it has no effect yet, after one it may be unknown whether it had."""
        when = "before" if before else "after"
        if (method, path) == ("POST", "/session"):
            await self._hit(f"session create: {when}")
        elif path.endswith("/prompt_async"):
            await self._hit(f"prompt sent: {when}")
        elif path.startswith("/permission/"):
            await self._hit(f"answer: {when}")
        elif path.endswith("/abort"):
            await self._hit(f"abort: {when}")
        else:
            return False
        return True

    async def _is_troubled(self, writer, method, path):
        """Play the server's trouble, of a call that no turn was begun by; True when that was the whole answer."""
        if method != "GET" or path in ("/global/health", "/event") or self._left == 0 or not self.sent:
            return False
        if (of := re.match(r"/session/(ses_\w+)", path)) and of[1] not in self._begun:
            return False  # what is asked before a prompt is sent begins the turn of another task
        if self._trouble == "late":
            self._left -= 1
            await asyncio.sleep(0.05)
        elif self._trouble in ("401", "500"):
            self._left -= 1
            writer.write(f"HTTP/1.1 {self._trouble} X\r\ncontent-length: 2\r\n\r\n{{}}".encode())
            return True
        elif self._trouble == "half-open connection":
            self._left = 0
            return True  # the connection stays, and nothing ever comes
        return False

    def _value(self, method, path, body):
        if f"{method} {path}" == "POST /global/dispose":
            for session in [*self.playing]:
                self._abort(session)
            return 200, True
        if asked := re.fullmatch(r"/permission/(\w+)/reply", path):
            permit = self._permits.get(asked[1])
            if permit is not None and not permit.done():
                permit.set_result(body["reply"])
        if self._trouble == "wrong directory" and (method, path) == ("GET", "/permission"):
            strange = {"id": "per_strange", "sessionID": "ses_strange", "permission": "bash", "patterns": ["rm"]}
            return 200, [*self.permissions, {**strange, "metadata": {}}]
        return super()._value(method, path, body)

    def _of_session(self, method, session, rest, body):
        if (method, rest) == ("POST", "abort"):
            self._abort(session)
            return True
        if (method, rest) == ("POST", "prompt_async"):
            self.sent[body["messageID"], self.crashes] += 1
            self._begun.add(session)
            work = self._play(session, self._directory, body["messageID"], body["parts"][0]["text"])
            player = self.playing[session] = asyncio.create_task(work)
            self._players.add(player)
            player.add_done_callback(self._players.discard)
            return None
        return super()._of_session(method, session, rest, body)

    def _abort(self, session):
        player = self.playing.pop(session, None)
        self.status.pop(session, None)
        self.permissions[:] = [each for each in self.permissions if each["sessionID"] != session]
        if player is not None:
            player.cancel()
            for message in self.messages[session]:
                info = message["info"]
                if info["role"] == "assistant" and not info["time"].get("completed"):
                    info["time"]["completed"] = 2
                    info["error"] = {"name": "MessageAbortedError", "data": {}}

    # What it does.

    async def _play(self, session, directory, prompt, text):
        if self._trouble == "late":
            await asyncio.sleep(0.1)  # taken, and not stored yet
        self.user(session, prompt)
        self.stored[prompt] += 1
        self.status[session] = {"type": "busy"}
        self._told("message.updated", session, info={"id": prompt, "role": "user", "sessionID": session})
        await self._hit("prompt stored")
        said = ""
        for number, (step, argument) in enumerate(STEP.findall(text)):
            info = self.assistant(session, prompt, completed=False, identity=f"msg_z{prompt[4:]}{number:02d}")
            self._told("message.updated", session, info=info)
            await self._hit("turn seen")
            match step:
                case "say":
                    said = argument
                case "write":
                    path, _, words = argument.partition(" ")
                    Path(directory, path).write_text(words)  # noqa: ASYNC240 - a few bytes
                    await self._hit("file written")
                case "ask":
                    await self._ask(session, argument)
            finish = {"finish": "tool-calls"} if step != "say" else {}
            if self._trouble == "dropped stream":
                self.drop_streams()
            if self._trouble == "giant event":
                self._told("message.part.delta", session, partID="prt_strange", field="text", delta="x" * 300_000)
            if self._trouble == "idle too early" and step == "say":
                self.status.pop(session)
                self._told("session.idle", session)
                await asyncio.sleep(0.05)
            done = self.assistant(session, prompt, said if step == "say" else "", identity=info["id"], **finish)
            self._told("message.updated", session, info=done)
        self.ended[prompt] = said
        await self._hit("finished")
        if self._trouble != "busy for ever":
            self.status.pop(session, None)
        self.playing.pop(session, None)
        self._told("session.idle", session)
        await self._hit("idle")

    async def _ask(self, session, command):
        request = {"id": f"per_{next(self._numbers)}", "sessionID": session, "permission": "bash"}
        request |= {"patterns": [command], "metadata": {"command": command}}
        permit = self._permits[request["id"]] = asyncio.get_running_loop().create_future()
        self.permissions.append(request)
        self._told("permission.asked", session, **{key: value for key, value in request.items() if key != "sessionID"})
        await self._hit("ask open")
        await permit

    def _told(self, kind, session, **properties):
        if self._trouble != "silent stream":
            self.emit(kind, sessionID=session, **properties)
