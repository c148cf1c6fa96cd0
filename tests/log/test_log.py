import json
import logging
import stat
from logging.handlers import RotatingFileHandler

import pytest

from offload import log


@pytest.fixture
def lines(tmp_path):
    """Sets the log up as the hub does and gives what was written since, parsed."""
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    root.handlers[:] = []  # pytest's own must not be closed by `force`
    path = tmp_path / "hub.log"
    log.set_up("info", str(path))
    yield lambda: [json.loads(line) for line in path.read_text().splitlines()]
    for handler in root.handlers:
        handler.close()
    root.handlers[:] = before
    root.setLevel(level)


def test_a_record_is_one_line_with_its_extra_fields(lines):
    logging.getLogger("offload.hub").info("front %s", "connected", extra={"front": "lsp-1", "path": {1}})
    (line,) = lines()
    assert line.pop("at").endswith("Z")
    assert line == {
        "level": "info",
        "logger": "offload.hub",
        "message": "front connected",
        "front": "lsp-1",
        "path": "{1}",
    }


def test_a_traceback_stays_in_its_line_and_keeps_its_end(lines):
    try:
        {}["x" * log.TEXT_LIMIT]
    except KeyError:
        logging.getLogger("offload").exception("failed\nbadly")
    (line,) = lines()
    assert line["message"] == "failed\nbadly"
    assert line["error"].endswith("xxx'")
    assert len(line["error"]) == log.TEXT_LIMIT


def test_a_message_has_an_end(lines):
    logging.getLogger("offload").info("x" * 1_000_000)
    assert len(lines()[0]["message"]) == log.TEXT_LIMIT


@pytest.mark.parametrize("value", ["x" * 10_000_000, ["x" * 100] * 100_000, {"key": {1}, "other": "x" * 10**6}])
def test_a_field_has_an_end(lines, tmp_path, value):
    """One giant line would make the file longer than it may be, whatever its limit."""
    logging.getLogger("offload").info("giant", extra={"said": value, "other": 1})
    (line,) = lines()
    assert (len(line["said"]), line["other"]) == (log.TEXT_LIMIT, 1)
    assert (tmp_path / "hub.log").stat().st_size < 2 * log.TEXT_LIMIT


def test_half_a_character_is_no_problem(lines):
    # Past the other handlers: those of a test run cannot pass such text on.
    (handler,) = [one for one in logging.getLogger().handlers if isinstance(one, RotatingFileHandler)]
    handler.handle(logging.makeLogRecord({"msg": "from a model: \ud83d"}))
    assert lines()[0]["message"] == "from a model: \ud83d"


@pytest.mark.parametrize("name", ["pygls", "pygls.protocol"])
def test_a_library_that_logs_payloads_when_it_fails_is_not_heard(lines, name):
    logging.getLogger(name).error("payload")
    logging.getLogger("offload").warning("trouble")
    assert [line["message"] for line in lines()] == ["trouble"]


@pytest.mark.parametrize("name", ["httpx", "mcp.server", "asyncio"])
def test_what_goes_over_the_wire_is_not_logged(lines, name):
    """httpx logs every URL at INFO."""
    logging.getLogger(name).info("payload")
    logging.getLogger(name).warning("trouble")
    assert [line["message"] for line in lines()] == ["trouble"]


def test_below_the_level_nothing_is_logged(lines):
    logging.getLogger("offload").debug("a prompt")
    assert lines() == []


def test_the_file_is_for_its_owner_only(lines, tmp_path):
    assert stat.S_IMODE((tmp_path / "hub.log").stat().st_mode) == 0o600


def test_the_files_together_have_a_limit(lines, tmp_path):
    text = "x" * (log.TEXT_LIMIT - 1000)
    for _ in range(2 * (log.OLD_FILES + 2) * log.FILE_LIMIT // log.TEXT_LIMIT):
        logging.getLogger("offload").info(text)
    files = list(tmp_path.iterdir())
    assert len(files) == 1 + log.OLD_FILES
    assert sum(file.stat().st_size for file in files) <= (1 + log.OLD_FILES) * log.FILE_LIMIT
