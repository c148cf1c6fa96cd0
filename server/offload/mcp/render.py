"""Results made small enough for a model: under 8 kB, trimmed in a fixed order, with a count or an offset for what was left out.

Fields that have their default are left out; a model need not read that nothing is there. Nothing is cut inside a character.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from offload.wire.views import View

LIMIT = 7_900  # bytes of the result as JSON in UTF-8
_COUNTER = 60  # bytes for a count or an offset that a trimmed result gets

Facts = dict[str, Any]


def render(view: View) -> tuple[Facts, str]:
    """The structured content, and the same as text: some hosts show a model only the one, some only the other."""
    facts: Facts = view.model_dump(mode="json", exclude_defaults=True)
    _drop_hunks(facts)
    _first_of_patch(facts)
    _cut_strings(facts, 1000)
    for step in _STEPS:
        excess = len(_text(facts).encode()) - LIMIT
        if excess <= 0:
            break
        step(facts, excess + _COUNTER)
    return facts, _text(facts)


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _drop_hunks(facts: Facts) -> None:
    """Hunks are of use beside the beginning of the patch that shows them; elsewhere a model reads files and counts."""
    if "patch" not in facts or "patch_offset" in facts:
        for file in (facts.get("changes") or {}).get("files", ()):
            file.pop("hunks", None)


def _fewer_hunks(facts: Facts, excess: int, *, keep: int) -> None:
    """From the file with the most hunks first."""
    files = sorted((facts.get("changes") or {}).get("files", ()), key=lambda file: -len(file.get("hunks", ())))
    for file in files:
        if excess <= 0:
            break
        excess -= _leave_out(file, "hunks", "hunks_left_out", excess, keep=keep)


def _first_of_patch(facts: Facts) -> None:
    """A patch may have megabytes; more than the limit is of no use to the steps that follow."""
    patch = facts.get("patch", "")
    if len(patch) > LIMIT:
        _keep(facts, "patch", LIMIT)


def _drop_partial_text(facts: Facts, _: int) -> None:
    for status in (facts, *facts.get("tasks", ())):
        status.pop("partial_text", None)


def _fewer_files(facts: Facts, excess: int, *, keep: int) -> None:
    changes = facts.get("changes")
    if changes:
        _leave_out(changes, "files", "files_left_out", excess, keep=keep)


def _fewer_models(facts: Facts, excess: int) -> None:
    """From the longest list first, so that a worker with few models keeps them."""
    workers = sorted(facts.get("workers", ()), key=lambda worker: -len(worker.get("models", ())))
    for worker in workers:
        excess -= _leave_out(worker, "models", "models_left_out", excess, keep=5)


def _fewer_tasks(facts: Facts, excess: int) -> None:
    """The last ones go first; after a wait, those that still work before those that have something to say."""
    if "done" in facts:
        facts["tasks"].sort(key=lambda status: status["state"] == "working")
    _leave_out(facts, "tasks", "left_out", excess, keep=1)


def _leave_out(holder: Facts, name: str, counter: str, excess: int, *, keep: int) -> int:
    """Keep as many items from the front as leave `excess` bytes less, but at least `keep`; says how many bytes were gained."""
    items = holder.get(name, [])
    size = len(_text(items).encode())
    kept = used = 0
    for item in items:
        longer = used + len(_text(item).encode()) + 1
        if kept >= keep and longer > size - excess:
            break
        kept, used = kept + 1, longer
    if kept < len(items):
        holder[counter] = holder.get(counter, 0) + len(items) - kept
        del items[kept:]
    return size - used


def _shorter(facts: Facts, excess: int, *, name: str) -> None:
    """One character at least stays, so that who reads on by the next offset comes to the end."""
    text = facts.get(name, "")
    kept, gained = len(text), 0
    while kept > 1 and gained < excess:
        kept -= 1
        gained += len(_text(text[kept]).encode()) - len('""')
    if kept < len(text):
        _keep(facts, name, kept)


def _keep(facts: Facts, name: str, kept: int) -> None:
    facts[name] = facts[name][:kept]
    facts[f"next_{name}_offset"] = facts.get(f"{name}_offset", 0) + kept


def _cut_strings(facts: Facts, most: int) -> None:
    """Sentences, commands and names: nobody needs the second thousand characters of one. Ids are never cut."""
    for holder in _dicts(facts):
        for key, value in holder.items():
            if isinstance(value, str) and len(value) > most and not key.endswith("id") and key not in ("text", "patch"):
                holder[key] = value[:most] + "…"


def _last_resort(facts: Facts, _: int, *, most: int, items: int) -> None:
    """Many long questions, agents or recipes at once: the beginning of each, and the first ones."""
    for holder in _dicts(facts):
        for key, value in holder.items():
            if isinstance(value, list):
                holder[key] = [
                    item[:most] + "…" if isinstance(item, str) and len(item) > most else item for item in value[:items]
                ]
    _cut_strings(facts, most)


def _dicts(value: object) -> Iterable[Facts]:
    if isinstance(value, dict):
        yield value
        for item in value.values():
            yield from _dicts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _dicts(item)


_STEPS: tuple[Callable[[Facts, int], None], ...] = (
    _drop_partial_text,
    partial(_fewer_hunks, keep=20),
    partial(_fewer_files, keep=10),
    partial(_fewer_hunks, keep=3),
    _fewer_models,
    _fewer_tasks,
    partial(_shorter, name="text"),
    partial(_shorter, name="patch"),
    partial(_fewer_hunks, keep=0),
    partial(_fewer_files, keep=0),
    partial(_last_resort, most=200, items=20),
    partial(_last_resort, most=100, items=10),
    partial(_last_resort, most=40, items=3),
)
