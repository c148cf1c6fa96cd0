"""Text as files hold it: encodings, byte order marks and line ends, all of which come back byte for byte."""

from __future__ import annotations

import codecs
import contextlib
import re
from dataclasses import dataclass, replace

LOOKED_AT = 8000
"""How far git looks for a zero before it takes a file for binary."""
MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class Text:
    """`text` has its line ends and no byte order mark; that is `mark`, b"" for none."""

    text: str
    encoding: str = "utf-8"
    mark: bytes = b""

    @property
    def plain(self) -> bytes:
        """As git compares it: in UTF-8, with line feeds alone. Half characters stay as they are."""
        return self.text.replace("\r\n", "\n").replace("\r", "\n").encode("utf-8", "surrogatepass")

    @property
    def kinds(self) -> set[str]:
        """The kinds of line ends in it."""
        crlf = self.text.count("\r\n")
        counts = {"\r\n": crlf, "\r": self.text.count("\r") - crlf, "\n": self.text.count("\n") - crlf}
        return {end for end, count in counts.items() if count}

    @property
    def ends(self) -> list[str]:
        """Each line's end; the last line has "" when it has none."""
        return [*LINE_END.findall(self.text), ""]

    def holding(self, text: str) -> Text:
        """Another text in the same form."""
        return replace(self, text=text)

    def encoded(self) -> bytes:
        """Raises `UnicodeEncodeError` for a character that the encoding lacks."""
        return self.mark + self.text.encode(self.encoding, "surrogatepass")


EMPTY = Text("")


def read(content: bytes) -> Text | None:
    """The text that a file holds, None for a binary one. What is no Unicode is taken for Latin-1, which has a character for
    each byte."""
    marked = [(mark, encoding) for mark, encoding in MARKS if content.startswith(mark)]
    text = Text(content.decode("latin-1"), "latin-1")
    for mark, encoding in (*marked, (b"", "utf-8")):
        with contextlib.suppress(UnicodeDecodeError):
            text = Text(content[len(mark) :].decode(encoding, "surrogatepass"), encoding, mark)
            break
    return None if "\0" in text.text[:LOOKED_AT] else text
