"""Which files a person trusts, by path and content, in a file of the state folder."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from offload.domain.errors import StorageFailed

log = logging.getLogger(__name__)

_DIGESTS = TypeAdapter(dict[str, str])


class Trusted:
    """By their URIs, because a path may hold bytes that are no text. Looked at anew each time, so that removing the file takes
    all trust back. A file that cannot be read trusts nothing.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def digest(self, place: Path) -> str:
        """That of the content that is trusted at this place, "" for none."""
        return self._read().get(place.as_uri(), "")

    def set(self, place: Path, digest: str) -> None:
        """Trust this content at this place, and no other; "" takes trust back. Raises `StorageFailed`."""
        digests = self._read() | {place.as_uri(): digest}
        text = json.dumps({path: kept for path, kept in sorted(digests.items()) if kept}, indent=1)
        beside = self._path.with_name(f"{self._path.name}.new")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            beside.unlink(missing_ok=True)
            descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "w", encoding="ascii") as file:
                file.write(text)
                file.flush()
                os.fsync(descriptor)
            beside.replace(self._path)
        except OSError as error:
            raise StorageFailed(f"{self._path} cannot be written: {error.strerror}; nothing was changed") from error

    def _read(self) -> dict[str, str]:
        try:
            return _DIGESTS.validate_json(self._path.read_bytes(), strict=True)
        except FileNotFoundError:
            return {}
        except ValidationError:
            return self._set_aside("it is damaged")
        except OSError as error:
            return self._set_aside(error.strerror or str(error))

    def _set_aside(self, reason: str) -> dict[str, str]:
        log.warning("what is trusted cannot be read, so nothing is", extra={"path": str(self._path), "reason": reason})
        try:
            self._path.replace(self._path.with_name(f"{self._path.name}.damaged"))
        except OSError:
            log.warning("it cannot be set aside either", extra={"path": str(self._path)})
        return {}
