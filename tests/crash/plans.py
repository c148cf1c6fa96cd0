"""What a seed of the crash matrix says: what is delegated, how the server misbehaves, what becomes of the results, and at which
labelled moments who is killed. The same seed says the same."""

import random
from dataclasses import dataclass

from tests.crash.acting import TROUBLES

HUB_LABELS = (
    *(
        f"journal {event}: {when}"
        for event in (
            "Created",
            "Snapshotted",
            "Admitted",
            "SessionOpened",
            "TurnSeen",
            "Asked",
            "AskClosed",
            "UsageSeen",
        )
        for when in ("before", "after")
    ),
    *(
        f"journal {event}: {when}"
        for event in ("TurnEnded", "ChecksEnded", "Landed", "Undone", "Integrated", "WorkLost")
        for when in ("before", "after")
    ),
    *(
        f"{step}: {when}"
        for step in ("snapshot", "open_folder", "collect", "check", "merge", "apply")
        for when in ("before", "after")
    ),
)
SERVER_LABELS = (
    "session create: before",
    "session create: after",
    "prompt sent: before",
    "prompt sent: after",
    "prompt stored",
    "turn seen",
    "file written",
    "ask open",
    "answer: before",
    "answer: after",
    "finished",
    "idle",
)


@dataclass(frozen=True)
class Kill:
    label: str
    count: int  # the how-many-eth time that the label is passed
    victims: tuple[str, ...]


@dataclass
class Plan:
    """What the seed says. `then` is what becomes of results besides being applied: "integrate" before, "undo" in between."""

    briefs: list[str]
    kills: list[Kill]
    trouble: str
    cancel_at: str
    then: str


def plan(seed):
    chance = random.Random(seed)
    briefs = []
    for number in range(chance.choice([1, 1, 2])):
        steps = [f"::write f{number}.txt {chance.randrange(1000)}"]
        if chance.random() < 0.5:
            steps.append(f"::ask make {number}")
        steps.append(f"::write g{number}.txt {chance.randrange(1000)}")
        briefs.append("\n".join([*steps, f"::say done {number}"]))
    # Every label comes up in turn, so that a run of a few dozen seeds has been at all of them.
    labels = [*HUB_LABELS, *SERVER_LABELS]
    kills = [Kill(labels[seed % len(labels)], chance.choice([1, 1, 1, 2]), _victims(chance))]
    if chance.random() < 0.4:
        kills.append(Kill(chance.choice(labels), chance.choice([1, 2]), _victims(chance)))
    trouble = chance.choice(TROUBLES) if chance.random() < 0.5 else ""
    cancel_at = (
        chance.choice(["turn seen", "ask open", "file written", "check: before"]) if chance.random() < 0.15 else ""
    )
    then = chance.choice(["", "", "undo", "integrate"])
    if "Undone" in kills[0].label:
        then = "undo"
    if "Integrated" in kills[0].label or "merge" in kills[0].label:
        then = "integrate"
    return Plan(briefs, kills, trouble, cancel_at, then)


def _victims(chance):
    return chance.choice([("hub",), ("hub",), ("server",), ("hub", "server")])
