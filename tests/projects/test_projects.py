"""What a workspace's `offload.toml` says, and that none of its commands counts before a person trusts it (report H27)."""

import asyncio
import json
import os
import stat
from pathlib import Path

import pytest

from offload.domain.check import Check, CheckPlan
from offload.domain.errors import InvalidRequest, StorageFailed
from offload.domain.project import ProjectSettings
from offload.projects import ProjectFiles

CHECKED = 'checks = ["make test"]\n'
RUN = "run `offload trust` to allow it"


class Place:
    """A workspace and a state folder; `files` is made anew as after a restart."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "shop"
        self.root.mkdir()
        self.state = folder / "state"
        self.file = self.root / "offload.toml"
        self.store = self.state / "trusted.json"

    @property
    def files(self) -> ProjectFiles:
        return ProjectFiles(self.state)

    async def settings(self, text: str | None = None) -> ProjectSettings:
        if text is not None:
            self.file.write_text(text)
        return await self.files.settings(self.root)

    async def trusted(self, text: str) -> ProjectSettings:
        self.file.write_text(text)
        return await self.files.trust(self.root, trusted=True)


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


async def test_a_workspace_without_the_file_has_all_defaults(place):
    assert await place.settings() == ProjectSettings()


async def test_a_trusted_file_says_what_is_run_copied_and_never_sent(place):
    text = """
setup = "npm ci"
format = "npx prettier --write ."
checks = ["make lint", {name = "tests", command = "npm test", timeout_s = 90, junit = "out/*.xml"}]
check_rounds = 0
carry = [".env.test", "node_modules"]
never_send = ["secrets", "*.pem"]
"""
    plan = CheckPlan(
        Check("format", "npx prettier --write ."),
        (Check("make lint", "make lint"), Check("tests", "npm test", 90, "out/*.xml")),
        0,
    )
    expected = ProjectSettings(
        "npm ci", plan, (".env.test", "node_modules"), ("secrets", "*.pem"), trusted=True, note=""
    )
    assert await place.trusted(text) == expected
    assert await place.settings() == expected


async def test_a_formatter_may_have_a_time_limit_of_its_own(place):
    settings = await place.trusted('format = {command = "gofmt -w .", timeout_s = 5}')
    assert settings.plan == CheckPlan(Check("format", "gofmt -w .", 5.0), (), 2)


async def test_of_a_file_that_nobody_trusts_only_what_is_never_sent_counts(place):
    settings = await place.settings(
        CHECKED + 'setup = "evil"\nformat = "evil"\ncarry = [".env"]\nnever_send = ["keys"]\n'
    )
    note = f"offload.toml asks for commands (setup, format, checks) and files (carry) and is not trusted: {RUN}"
    assert settings == ProjectSettings(never_send=("keys",), note=note)


async def test_files_alone_must_be_trusted_too(place):
    assert await place.settings('carry = [".env"]') == ProjectSettings(
        note=f"offload.toml asks for files (carry) and is not trusted: {RUN}"
    )


async def test_a_file_that_asks_for_nothing_needs_no_trust(place):
    assert await place.settings('never_send = ["keys"]\n') == ProjectSettings(never_send=("keys",))


@pytest.mark.parametrize("change", [CHECKED + "#", CHECKED + 'setup = "evil"', 'checks = ["evil"]'])
async def test_a_file_that_changes_after_it_was_trusted_is_asked_for_again(place, change):
    await place.trusted(CHECKED)
    settings = await place.settings(change)
    assert (settings.plan, settings.setup, settings.trusted) == (CheckPlan(), "", False)
    assert "has changed since it was trusted: run `offload trust` to allow it again" in settings.note
    assert (await place.settings(CHECKED)).trusted
    assert (await place.trusted(change)).trusted
    assert not (await place.settings(CHECKED)).trusted


async def test_the_same_file_in_another_workspace_is_not_trusted(place, tmp_path):
    await place.trusted(CHECKED)
    place.root.rename(tmp_path / "moved")
    moved = await place.files.settings(tmp_path / "moved")
    assert not moved.trusted
    assert "is not trusted" in moved.note


async def test_a_workspace_that_is_reached_by_a_link_is_the_same_workspace(place, tmp_path):
    await place.trusted(CHECKED)
    (tmp_path / "link").symlink_to(place.root)
    assert (await place.files.settings(tmp_path / "link")).trusted


async def test_trust_can_be_taken_back(place):
    await place.trusted(CHECKED)
    settings = await place.files.trust(place.root, trusted=False)
    assert settings == await place.settings()
    assert not settings.trusted
    assert json.loads(place.store.read_text()) == {}


async def test_trust_can_be_taken_back_when_the_file_has_gone(place):
    await place.trusted(CHECKED)
    place.file.unlink()
    assert await place.files.trust(place.root, trusted=False) == ProjectSettings()
    assert not (await place.settings(CHECKED)).trusted


async def test_nothing_can_be_trusted_where_there_is_no_file(place):
    with pytest.raises(
        InvalidRequest, match=r"there is no offload\.toml in .*shop that could be trusted: write one first"
    ):
        await place.files.trust(place.root, trusted=True)
    assert not place.store.exists()


async def test_workspaces_that_are_trusted_at_the_same_time_are_both_trusted(place, tmp_path):
    files = place.files
    roots = [tmp_path / f"w{number}" for number in range(8)]
    for root in roots:
        root.mkdir()
        (root / "offload.toml").write_text(CHECKED)
    await asyncio.gather(*(files.trust(root, trusted=True) for root in roots))
    assert all([(await place.files.settings(root)).trusted for root in roots])


async def test_a_path_that_is_no_text_can_be_trusted(place):
    root = Path(os.fsdecode(os.fsencode(place.root) + b"/\xff"))
    root.mkdir()  # noqa: ASYNC240 - nothing else runs
    (root / "offload.toml").write_text(CHECKED)
    await place.files.trust(root, trusted=True)
    assert (await place.files.settings(root)).trusted


async def test_what_is_trusted_is_kept_in_a_file_of_the_user_alone(place):
    await place.trusted(CHECKED)
    assert stat.S_IMODE(place.store.stat().st_mode) == 0o600
    assert sorted(path.name for path in place.state.iterdir()) == ["trusted.json"]


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"a": 5}', b"\xff", b"null"])
async def test_a_damaged_store_trusts_nothing_and_is_set_aside(place, damage):
    await place.trusted(CHECKED)
    place.store.write_bytes(damage)
    assert not (await place.settings()).trusted
    assert (place.state / "trusted.json.damaged").read_bytes() == damage
    assert (await place.trusted(CHECKED)).trusted


async def test_a_store_that_is_no_file_trusts_nothing(place):
    place.store.mkdir(parents=True)
    assert not (await place.settings(CHECKED)).trusted
    assert (place.state / "trusted.json.damaged").is_dir()


async def test_a_store_that_cannot_even_be_set_aside_trusts_nothing(place):
    place.store.mkdir(parents=True)
    (place.state / "trusted.json.damaged").write_text("an earlier one")
    assert not (await place.settings(CHECKED)).trusted


async def test_trust_that_cannot_be_written_is_told(place):
    place.state.write_text("in the way")
    with pytest.raises(StorageFailed, match=r"trusted\.json cannot be written: .*; nothing was changed"):
        await place.trusted(CHECKED)


WRONG = [
    ('checkz = ["x"]', "checkz is not a key of this file"),
    ('setup = ["x"]', "setup: input should be a valid string"),
    ('setup = " "', "setup: should be a command for the shell"),
    ('setup = "a\\u0000b"', "setup: should be a command for the shell"),
    ("format = 5", "format: should be a command for the shell, or a table"),
    ("format = {timeout_s = 5}", "format.command: field required"),
    ('format = {command = "x", junit = "y"}', "format.junit is not a key of this file"),
    ('checks = "x"', "checks: input should be a valid list"),
    ("checks = [5]", "checks.0: should be a command for the shell, or a table"),
    ('checks = ["a", {command = "b", timeout_s = 0}]', "checks.1.timeout_s: input should be greater than 0"),
    ('checks = [{command = "b", timeout_s = inf}]', "checks.0.timeout_s: input should be less than or equal to 86400"),
    ('checks = [{command = "b", timeout_s = "5"}]', "checks.0.timeout_s: input should be a valid number"),
    ('checks = [{command = "b", junit = "../r.xml"}]', "checks.0.junit: should be a path in the workspace"),
    ('checks = [{command = "b", junit = "/r.xml"}]', "checks.0.junit: should be a path in the workspace"),
    ('checks = [{command = "b", junit = "**r.xml"}]', 'checks.0.junit: "**" should stand alone between two "/"'),
    ('checks = ["a", "a"]', "checks: 'a' is the name of two"),
    ('checks = ["format"]', "checks: 'format' is taken by the formatter"),
    ("check_rounds = 11", "check_rounds: input should be less than or equal to 10"),
    ("check_rounds = -1", "check_rounds: input should be greater than or equal to 0"),
    ("check_rounds = true", "check_rounds: input should be a valid integer"),
    ('carry = "x"', "carry: input should be a valid list"),
    ('carry = ["!x"]', 'carry.0: should be a pattern of paths, without "!"'),
]


@pytest.mark.parametrize(("text", "problem"), WRONG)
async def test_a_file_with_a_mistake_is_not_trusted_and_names_the_key(place, text, problem):
    with pytest.raises(InvalidRequest) as refused:
        await place.trusted(text)
    assert str(refused.value) == f"the file {place.file} cannot be used: {problem}"
    assert not place.store.exists()


@pytest.mark.parametrize(("text", "problem"), WRONG)
async def test_a_mistake_in_a_file_that_nobody_trusts_is_noted_and_stops_nothing(place, text, problem):
    settings = await place.settings(f'never_send = ["keys"]\n{text}')
    note = f"the file {place.file} cannot be used: {problem}; only never_send counts"
    assert settings == ProjectSettings(never_send=("keys",), note=note)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"never_send = 'keys'", "never_send: input should be a valid list"),
        (b"never_send = ['']", 'never_send.0: should be a pattern of paths, without "!"'),
        (b"never_send = ['!keys']", 'never_send.0: should be a pattern of paths, without "!"'),
        (b"never_send = [", "Invalid value"),
        (b"\xff", "can't decode byte 0xff"),
        (b"#" * (256 * 1024 + 1), "it is larger than 256 KiB"),
        (b"a = " + b"[" * 100_000, ""),
    ],
)
async def test_a_file_that_cannot_tell_what_is_never_sent_stops_every_start(place, content, problem):
    """Going on would send what the user wanted to keep."""
    place.file.write_bytes(content)
    for call in (place.settings(), place.files.trust(place.root, trusted=True)):
        with pytest.raises(InvalidRequest) as refused:
            await call
        assert f"the file {place.file} cannot be used: " in str(refused.value)
        assert problem in str(refused.value)


def outside(place):
    elsewhere = place.root.parent / "elsewhere.toml"
    elsewhere.write_text(CHECKED)
    place.file.symlink_to(elsewhere)


def nowhere(place):
    place.file.symlink_to("none.toml")


def circle(place):
    place.file.symlink_to("offload.toml")


def folder(place):
    place.file.mkdir()


def pipe(place):
    os.mkfifo(place.file)


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (outside, "it is a link that leads out of the workspace"),
        (nowhere, "it is a link that leads nowhere"),
        (circle, "loop"),
        (folder, "Is a directory"),
        (pipe, "it is no regular file"),
    ],
)
async def test_what_is_no_file_of_the_workspace_is_refused(place, make, problem):
    make(place)
    with pytest.raises(InvalidRequest) as refused:
        await place.settings()
    assert str(refused.value).startswith(f"the file {place.file} cannot be used: ")
    assert problem in str(refused.value)


async def test_a_link_within_the_workspace_is_followed(place):
    (place.root / "own.toml").write_text(CHECKED)
    place.file.symlink_to("own.toml")
    assert (await place.files.trust(place.root, trusted=True)).trusted
    await place.files.trust(place.root, trusted=False)
    assert not (await place.settings()).trusted


async def test_a_workspace_that_is_no_folder_has_no_settings(place, tmp_path):
    assert await place.files.settings(tmp_path / "none") == ProjectSettings()
