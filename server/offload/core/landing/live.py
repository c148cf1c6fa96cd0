"""Brings a change set into the user's files where they live: in the editor that has a file open, else on disk.

Everything is worked out first. Then editors are asked, because they may say no; the disk comes last. What was changed before
something failed is put back. It knows nothing of tasks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from offload.core.documents import Document, Documents
from offload.core.ports import BufferChange, DocumentEdit, Editor, EditOutcome, LandingPlan, Workspace
from offload.domain.change import ChangeSet
from offload.domain.errors import ApplyRefused, InvalidRequest, OffloadError

TRIES = 3
NOTHING = "Nothing was written. "

Reasons = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Written:
    """What was done; `buffers` are those of the plan's paths that an editor's document stands for."""

    plan: LandingPlan
    buffers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Holder:
    """The open document that stands for a file, and the editor that can change it."""

    editor: Editor
    document: Document


@dataclass
class _Try:
    """One try: what is planned, and what editors have done of it."""

    root: Path
    label: str
    changes: ChangeSet
    exact: bool
    holders: Mapping[str, _Holder]
    plan: LandingPlan
    done: list[BufferChange] = field(default_factory=list)

    @property
    def by_editor(self) -> Iterable[tuple[Editor, str, list[BufferChange]]]:
        found: dict[str, list[BufferChange]] = {}
        for change in self.plan.buffers:
            found.setdefault(self.holders[change.path].document.editor, []).append(change)
        for editor, changes in found.items():
            yield self.holders[changes[0].path].editor, editor, changes


class _GivenUp(Exception):
    """It cannot be done now, for these reasons by path."""

    def __init__(self, reasons: Reasons) -> None:
        super().__init__()
        self.reasons = tuple(reasons)


class _Moved(_GivenUp):
    """Somebody changed a text meanwhile, so that it is worth another try."""


class LiveFiles:
    def __init__(self, workspace: Workspace, documents: Documents) -> None:
        self._workspace = workspace
        self._documents = documents

    async def land(
        self, root: Path, changes: ChangeSet, label: str, *, editor: str = "", exact: bool = False
    ) -> Written:
        """Merge and write, all or nothing. `label` is what editors show for it; of several that have a file open, `editor` is
        the one that changes it. With `exact` the commits hold bytes as they were on disk. Raises `ApplyRefused`."""
        tries = 0
        while True:
            tries += 1
            try:
                holders = await self._holders(root, changes, editor)
                texts = {path: holder.document.text for path, holder in holders.items()}
                plan = await self._workspace.plan(
                    root, changes, texts, exact=exact, keep_last_end=_keeping_last_end(holders)
                )
                await self._write(_Try(root, label, changes, exact, holders, plan))
                written = set(plan.paths).difference(plan.unchanged, (change.path for change in plan.buffers))
                return Written(plan, tuple(path for path in plan.paths if path in holders and path not in written))
            except _GivenUp as given_up:
                if not isinstance(given_up, _Moved) or tries == TRIES:
                    raise ApplyRefused(f"{NOTHING}{_told(given_up.reasons)}.", given_up.reasons) from None

    async def _holders(self, root: Path, changes: ChangeSet, editor: str) -> dict[str, _Holder]:
        """The documents that are to be changed, by path."""
        touched = _touched(changes)
        holders: dict[str, _Holder] = {}
        reasons: list[tuple[str, str]] = []
        for path, documents in self._documents.below(root).items():
            if path in touched:
                found = await self._holder(root, path, documents, editor)
                if isinstance(found, str):
                    reasons.append((path, found))
                elif found is not None:
                    holders[path] = found
        if reasons:
            raise _GivenUp(reasons)
        return holders

    async def _holder(self, root: Path, path: str, documents: Sequence[Document], editor: str) -> _Holder | str | None:
        """Who is to change the file: None stands for the disk, words say why nobody can."""
        last = documents[-1]
        for other in documents:
            if other.text != last.text:
                return (
                    f"is open in {self._name(other)} and in {self._name(last)} with different texts; "
                    "save it in one and load it again in the other"
                )
        able: list[_Holder] = []
        for document in documents:
            can = self._documents.editor(document.editor)
            if can is not None and can.can_edit:
                able.append(_Holder(can, document))
        if able:
            return next((each for each in able if each.document.editor == editor), able[-1])
        if last.text == await self._saved(root, path):
            return None
        return f"has unsaved text in {self._name(last)}; save it first"

    async def _saved(self, root: Path, path: str) -> str | None:
        try:
            return await self._workspace.read_live(root, path)
        except InvalidRequest:  # Not on disk yet, or not readable as text.
            return None

    def _name(self, document: Document) -> str:
        editor = self._documents.editor(document.editor)
        return editor.name if editor is not None else "an editor"

    async def _write(self, attempt: _Try) -> None:
        """Editors first, then the disk; what fails in between leaves nothing behind."""
        try:
            for editor, editor_id, changes in attempt.by_editor:
                await self._edit(attempt, editor, editor_id, changes)
            await self._look_at_the_rest(attempt)
            await self._workspace.write(attempt.root, attempt.plan)
        except _GivenUp as given_up:
            await self._put_back(attempt, _told(given_up.reasons))
            raise
        except OffloadError as error:
            await self._put_back(attempt, str(error).removeprefix(NOTHING).removesuffix("."))
            raise

    async def _look_at_the_rest(self, attempt: _Try) -> None:
        """An editor may take its time, and somebody may have opened what is to be written to disk and typed in it."""
        rest = _touched(attempt.changes).difference(attempt.holders)
        for path, documents in self._documents.below(attempt.root).items():
            if path in rest and await self._holder(attempt.root, path, documents, "") is not None:
                raise _Moved([(path, f"is being changed in {self._name(documents[-1])}; try again")])

    async def _edit(self, attempt: _Try, editor: Editor, editor_id: str, changes: Sequence[BufferChange]) -> None:
        """Let an editor change its documents, all at once."""
        moved = _Moved([(each.path, f"is being changed in {editor.name}; try again") for each in changes])
        edits = self._edits(attempt, editor_id, changes)
        if len(edits) < len(changes):
            raise moved
        outcome = await editor.edit(attempt.label, edits)
        if outcome is EditOutcome.REFUSED:
            raise _GivenUp([(each.path, f"{editor.name} did not take the change of it") for each in changes])
        if outcome is EditOutcome.MOVED:
            raise moved
        attempt.done.extend(changes)
        if not await self._arrived(attempt, editor_id, changes):
            raise moved

    def _edits(self, attempt: _Try, editor_id: str, changes: Iterable[BufferChange]) -> list[DocumentEdit]:
        """Those of `changes` whose document holds what they begin with."""
        edits: list[DocumentEdit] = []
        for change in changes:
            document = self._now(attempt, editor_id, change)
            if document is not None and document.text == change.before:
                edits.append(DocumentEdit(document.path, document.version, change.before, change.after))
        return edits

    def _now(self, attempt: _Try, editor_id: str, change: BufferChange) -> Document | None:
        """The document as it is now."""
        return self._documents.of(editor_id, attempt.holders[change.path].document.path)

    async def _arrived(self, attempt: _Try, editor_id: str, changes: Sequence[BufferChange]) -> bool:
        """Whether the documents hold what their editor says that they do, if not with more that was typed since."""
        documents = {each.path: self._now(attempt, editor_id, each) for each in changes}
        texts = {path: document.text for path, document in documents.items() if document is not None}
        if texts == {each.path: each.after for each in changes}:
            return True
        if texts.keys() != documents.keys():
            return False
        try:
            plan = await self._workspace.plan(
                attempt.root,
                attempt.changes,
                texts,
                exact=attempt.exact,
                keep_last_end=_keeping_last_end(attempt.holders),
            )
        except ApplyRefused:
            return False
        return texts.keys() <= set(plan.unchanged)

    async def _put_back(self, attempt: _Try, why: str) -> None:
        """Take back what editors have done. Raises `ApplyRefused` naming what stays, and `why` it should not."""
        stuck: list[tuple[str, str]] = []
        for editor, editor_id, changes in attempt.by_editor:
            done = [change for change in changes if change in attempt.done]
            turned = [BufferChange(change.path, change.after, change.before) for change in done]
            if back := self._edits(attempt, editor_id, turned):
                await editor.edit(f"{attempt.label}: taken back", back)
            for change in done:
                document = self._now(attempt, editor_id, change)
                if document is not None and document.text != change.before:
                    stuck.append((change.path, f"holds the change in {editor.name} already; undo it there"))
        if stuck:
            raise ApplyRefused(f"It could not be done: {why}. Not all was put back. {_told(stuck)}.", tuple(stuck))


def _touched(changes: ChangeSet) -> frozenset[str]:
    return frozenset(path for file in changes.files for path in (file.path, file.old_path))


def _keeping_last_end(holders: Mapping[str, _Holder]) -> frozenset[str]:
    return frozenset(path for path, holder in holders.items() if holder.editor.keeps_last_end)


def _told(reasons: Reasons) -> str:
    return "; ".join(f"{path}: {why}" for path, why in reasons)
