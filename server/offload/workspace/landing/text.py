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
        text = self.text
        if "\r" in text:  # asked first, because most have none and this is quick
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        return text.encode("utf-8", "surrogatepass")

    @property
    def kinds(self) -> set[str]:
        """The kinds of line ends in it."""
        if "\r" not in self.text:
            return {"\n"} if "\n" in self.text else set()
        crlf = self.text.count("\r\n")
        counts = {"\r\n": crlf, "\r": self.text.count("\r") - crlf, "\n": self.text.count("\n") - crlf}
        return {end for end, count in counts.items() if count}

    @property
    def ends(self) -> list[str]:
        """Each line's end; the last line has "" when it has none."""
        return [*LINE_END.findall(self.text), ""]

    @property
    def last_end(self) -> str:
        return next((end for end in ("\r\n", "\n", "\r") if self.text.endswith(end)), "")

    @property
    def said(self) -> str:
        """The encoding, "" where there is nothing to tell one from another."""
        return "" if not self.mark and self.text.isascii() else self.encoding

    def holding(self, text: str) -> Text:
        """Another text in the same form."""
        return replace(self, text=text)

    def ending_as(self, other: Text) -> Text:
        """The same text, with a line end at its very end if, and only if, the other one has one there."""
        return self.holding(self.text.removesuffix(self.last_end) + other.last_end)

    def encoded(self) -> bytes:
        """Raises `UnicodeEncodeError` for a character that the encoding lacks."""
        content = self.text.encode(self.encoding, "surrogatepass")
        return self.mark + content if self.mark else content


EMPTY = Text("")


def form_of(base: Text, live: Text, result: Text) -> Text:
    """In which form a merged text is written: as the live one is, unless only the worker changed that."""
    said, mine, made = base.said, live.said, result.said
    encoding = made if made and mine in ("", said) else mine or said or "utf-8"
    if encoding != "utf-8":
        return next(text for text in (result, live, base) if text.encoding == encoding)
    mark = result.mark if live.mark == base.mark else live.mark
    return Text("", mark=mark if mark == codecs.BOM_UTF8 else b"")


def read(content: bytes) -> Text | None:
    """The text that a file holds, None for a binary one. What is no Unicode is taken for Latin-1, which has a character for
    each byte."""
    marked = [(mark, encoding) for mark, encoding in MARKS if content.startswith(mark)]
    for mark, encoding in (*marked, (b"", "utf-8")):
        with contextlib.suppress(UnicodeDecodeError):
            text = Text(content[len(mark) :].decode(encoding, "surrogatepass"), encoding, mark)
            break
    else:
        text = Text(content.decode("latin-1"), "latin-1")
    return None if "\0" in text.text[:LOOKED_AT] else text
