"""The documents of a test's editor, as it shows them: they take edits of the server by the letter of the protocol."""

from types import SimpleNamespace

from offload.domain.text import Encoding
from offload.lsp.text_buffer import TextBuffer
from tests.lsp.client import NO_ANSWER


class Screen:
    """`take` is a handler of `workspace/applyEdit`; `requests` holds what came."""

    def __init__(self, client, encoding=Encoding.UTF_16):
        self.client = client
        self.requests = []
        self._encoding = encoding
        self._buffers = {}
        client.handlers["workspace/applyEdit"] = self.take

    def show(self, path, text, version=1):
        self._buffers[path.as_uri()] = (path, TextBuffer(text, version, self._encoding))
        self.client.open(path, text, version)

    def text(self, path):
        return self._buffers[path.as_uri()][1].text

    def type(self, path, text, *, tell=True):
        """The user puts a line at the top."""
        _, buffer = self._buffers[path.as_uri()]
        at = SimpleNamespace(line=0, character=0)
        buffer.apply(SimpleNamespace(start=at, end=at), text)
        buffer.version += 1
        if tell:
            self.client.change(path, buffer.version, ((0, 0), (0, 0), text))

    def take(self, message):
        """Apply what is there for documents as they are, tell of each as a whole, and answer."""
        self.requests.append(message["params"])
        done = [self.apply(*each) for each in self.edits(message)]
        return {"applied": all(done)}

    def edits(self, message):
        """(path, version, edits) of each document of a request, whichever form it has."""
        edit = message["params"]["edit"]
        assert len(edit) == 1, "never both forms"
        changes = edit.get("documentChanges") or [
            {"textDocument": {"uri": uri, "version": None}, "edits": edits} for uri, edits in edit["changes"].items()
        ]
        return [
            (self._buffers[each["textDocument"]["uri"]][0], each["textDocument"]["version"], each["edits"])
            for each in changes
        ]

    def apply(self, path, version, edits, *, tell=True):
        """Whether the document was still as the edits were made for."""
        _, buffer = self._buffers[path.as_uri()]
        if version not in (None, buffer.version):
            return False
        events = []
        for edit in sorted(edits, key=lambda edit: edit["range"]["start"]["line"], reverse=True):
            start, end = (SimpleNamespace(**edit["range"][side]) for side in ("start", "end"))
            buffer.apply(SimpleNamespace(start=start, end=end), edit["newText"])
            sides = ((side.line, side.character) for side in (start, end))
            events.append((*sides, edit["newText"]))
        buffer.version += 1
        if tell:
            self.client.change(path, buffer.version, *events)
        return True

    def tell(self, path):
        """Tell of the whole text as it is."""
        _, buffer = self._buffers[path.as_uri()]
        self.client.change(path, buffer.version, buffer.text)

    def answer(self, message, result):
        """Answer before anything else is said."""
        self.client.send({"jsonrpc": "2.0", "id": message["id"], "result": result})
        return NO_ANSWER
