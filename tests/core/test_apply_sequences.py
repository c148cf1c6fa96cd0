"""Any series of applies, undos, follow-ups and edits of the user's own, by the real git, keeps what each of them promised."""

import contextlib
import os
import random

import pytest

from offload.domain.errors import ApplyRefused
from offload.domain.review import ReviewState, review, standing
from offload.processes import Processes
from offload.workspace import GitWorkspaces
from tests.core.results import LINES, apply, editor, follow_up, on_disk, result, undo
from tests.fakes.house import open_house

PLACES = (3, 11, 19, 27, 35)  # lines of the task's, far enough from each other to be hunks of their own
OWN = (7, 23, 40)  # lines of the user's, which no task changes
FILES = ("a.txt", "b.txt")
STEPS = ("apply", "apply", "undo", "type", "follow")
SEEDS = (
    1,
    2,
    14,
    90,
    93,
    98,
    109,
    147,
)  # all but the first two once showed that something given was not known any more


def text(lines):
    return "".join(lines.get(number, line) for number, line in enumerate(LINES, 1))


class Play:
    """What the files must hold: the user's own lines, and those that were given of the task's."""

    def __init__(self, house, seed, steps):
        self.steps = steps
        self.house = house
        self.random = random.Random(seed)
        self.own = {path: {} for path in FILES}
        self.wanted = {path: {} for path in FILES}  # the task's lines in its folder
        self.vim = editor(house)
        self.task = None
        self.since = 0  # landings of results that began from the files of before
        self.seen = {path: {} for path in FILES}  # the user's own lines in the task's folder

    def live(self, path):
        target = self.house.root / path
        return self.vim.text(target) if path == self.opened else target.read_text()

    def put(self, path, new):
        if path == self.opened:
            self.vim.type(self.house.root / path, new)
        else:
            (self.house.root / path).write_text(new)

    async def begin(self):
        self.opened = "a.txt" if self.random.random() < 0.5 else ""
        if self.opened:
            self.vim.open(self.house.root / "a.txt", on_disk(self.house))
        self.change()
        self.task = await result(self.house, self.folder())

    def folder(self):
        return {path: text(self.wanted[path] | self.seen[path]) for path in FILES}

    def change(self):
        for path in FILES:
            for place in self.random.sample(PLACES, 3):
                self.wanted[path][place] = f"task {place} {self.random.randrange(1000)}\n"

    async def step(self):
        match self.random.choice(self.steps):
            case "apply":
                units = self.task.turn.changes.units
                some = self.random.sample(units, self.random.randint(1, len(units)))
                self.task, _ = await apply(self.house, self.task, *self.random.choice([some, []]))
            case "undo":
                stand = [each for each in self.task.landings[self.since :] if each.undone_at is None]
                if stand:
                    chosen = self.random.choice(stand)
                    with contextlib.suppress(ApplyRefused):  # A later apply has changed the same lines since.
                        self.task, _ = await undo(self.house, self.task, chosen.id)
            case "type":
                path, place = self.random.choice(FILES), self.random.choice(OWN)
                before = self.live(path).splitlines(keepends=True)
                self.own[path][place] = f"mine {self.random.randrange(1000)}\n"
                before[place - 1] = self.own[path][place]
                self.put(path, "".join(before))
            case "onto":
                self.change()
                self.seen = {path: dict(own) for path, own in self.own.items()}
                self.since = len(self.task.landings)
                self.task = await follow_up(self.house, self.task, self.folder(), onto="files")
            case "follow":
                self.change()
                self.task = await follow_up(self.house, self.task, self.folder())

    def look(self):
        """The user's own lines are there, every other line is the first one's or one that the task wrote."""
        for path in FILES:
            lines = self.live(path).splitlines(keepends=True)
            assert len(lines) == len(LINES)
            for place in OWN:
                assert lines[place - 1] == self.own[path].get(place, LINES[place - 1])
            for place in PLACES:
                assert lines[place - 1] == LINES[place - 1] or lines[place - 1].startswith(f"task {place} ")


@pytest.fixture
async def played(tmp_path):
    """Begins a task, does so many steps, and applies what is left."""
    root = tmp_path / "project"
    root.mkdir()
    for path in FILES:
        (root / path).write_text(text({}))
    async with (
        GitWorkspaces(tmp_path / "state", Processes(), os.environ | {"HOME": str(tmp_path)}) as workspace,
        open_house(tmp_path, files={}, workspace=workspace) as house,
    ):

        async def play(seed, *steps):
            play = Play(house, seed, STEPS + steps)
            await play.begin()
            for _ in range(12):
                house.clock.advance(1)
                await play.step()
                play.look()
            house.clock.advance(1)
            play.task, _ = await apply(house, play.task)
            states = review(play.task)
            assert {states[unit] for unit in play.task.turn.changes.units} == {ReviewState.APPLIED}
            for path in FILES:
                assert play.live(path) == text(play.wanted[path] | play.own[path])
            return play

        yield play


@pytest.mark.parametrize("seed", SEEDS)
async def test_what_was_given_and_what_the_user_typed_stay_apart(played, seed):
    play = await played(seed)
    for landing in reversed(standing(play.task)):
        await undo(play.house, play.task, landing.id)
        play.look()
    for path in FILES:
        assert play.live(path) == text(play.own[path])


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_a_result_that_is_brought_onto_the_users_files_again_and_again_is_applied_in_full(played, seed):
    play = await played(seed, "onto", "onto")
    assert play.since > 0
