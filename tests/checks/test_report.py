"""JUnit reports: what they count, and that a hostile one does no harm."""

import os
import sys

import pytest

from offload.checks import ShellChecks
from offload.checks.report import ELEMENT_LIMIT, FILE_LIMIT, FILES_LIMIT, Reports
from offload.domain.check import Check, told
from offload.domain.check import ReportCounts as Counts  # pytest takes what begins with "Test" for tests
from offload.processes import Processes

ONE = '<testsuites><testsuite><testcase classname="shop" name="total"/></testsuite></testsuites>'
TESTS = """
import pytest
def test_good(): pass
def test_bad(): assert 1 == 2
@pytest.mark.skip
def test_later(): pass
@pytest.fixture
def broken(): raise ValueError
def test_error(broken): pass
"""


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "task"
    folder.mkdir()
    return folder


def read(folder, content, name="r.xml", pattern="r.xml"):
    """What is read of a report that is written now."""
    reports = Reports(folder, pattern)
    place = folder / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content if isinstance(content, bytes) else content.encode())
    return reports.read()


async def run(folder, command, junit):
    return await ShellChecks(Processes()).run(folder, Check("tests", command, 60, junit), os.environ)


async def test_the_report_of_a_real_test_run_is_told_in_counts_and_names(folder):
    (folder / "test_shop.py").write_text(TESTS)
    result = await run(
        folder, f'"{sys.executable}" -m pytest -p no:cacheprovider --junitxml=out/r.xml test_shop.py', "out/*.xml"
    )
    assert (result.passed, result.exit_code) == (False, 1)
    assert told(result) == "tests: 1 passed, 2 failed, 1 skipped: test_shop.test_bad, test_shop.test_error"
    assert "1 failed, 1 passed, 1 skipped, 1 error" in result.tail


async def test_a_command_that_hides_its_failures_has_failed(folder):
    report = "<testsuite><testcase name='a'><failure/></testcase></testsuite>"
    result = await run(folder, f'echo "{report}" > r.xml; exit 0', "r.xml")
    assert (result.passed, result.exit_code, result.problem) == (False, 0, "")
    assert told(result) == "tests: 0 passed, 1 failed: a"


async def test_a_command_that_fails_has_failed_whatever_its_report_says(folder):
    result = await run(folder, f"echo '{ONE}' > r.xml; exit 2", "r.xml")
    assert (result.passed, result.exit_code, result.tests) == (False, 2, Counts(1))


@pytest.mark.parametrize(("status", "passed"), [(0, True), (1, False)])
async def test_without_a_readable_report_the_status_decides_and_the_tail_says_why(folder, status, passed):
    result = await run(folder, f"echo ran; echo '<a' > r.xml; exit {status}", "r.xml")
    assert (result.passed, result.exit_code, result.tests, result.problem) == (passed, status, None, "")
    assert result.tail.startswith("ran\nthe report r.xml cannot be read: r.xml: unclosed token")


async def test_a_silent_command_still_says_why_its_report_does_not_count(folder):
    assert (await run(folder, "true", "r.xml")).tail == "the report r.xml cannot be read: this run did not write it"


async def test_a_report_of_an_earlier_run_does_not_count(folder):
    (folder / "r.xml").write_text(ONE)
    result = await run(folder, "true", "*.xml")
    assert (result.passed, result.tests) == (True, None)
    assert result.tail == "the report *.xml cannot be read: this run did not write it"


async def test_a_report_that_is_written_over_an_earlier_one_counts(folder):
    (folder / "r.xml").write_text(ONE)
    assert (await run(folder, f"echo '{ONE}' > r.xml", "r.xml")).tests == Counts(1)


async def test_a_report_that_is_half_written_at_the_time_limit_is_not_looked_at(folder):
    check = Check("tests", f"echo '{ONE}' > r.xml; exec sleep 600", 2, "r.xml")
    result = await ShellChecks(Processes()).run(folder, check, os.environ)
    assert (result.tests, told(result)) == (None, "tests: timed out after 2 s")


def test_suites_in_suites_and_one_suite_alone_are_counted(folder):
    inner = '<testsuite><testcase name="a"/><testsuite><testcase name="b"><skipped/></testcase></testsuite></testsuite>'
    assert read(folder, f"<testsuites>{inner}{inner}</testsuites>") == (Counts(2, 0, 2), "")
    assert read(folder, inner) == (Counts(1, 0, 1), "")
    assert read(folder, "<testsuites/>") == (Counts(), "")


def test_reports_of_a_glob_are_added_up(folder):
    reports = Reports(folder, "build/**/TEST-*.xml")
    for name in ("build/a/TEST-1.xml", "build/b/c/TEST-2.xml", "build/b/other.xml", "TEST-3.xml"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(ONE)
    assert reports.read() == (Counts(2), "")


def test_only_some_of_many_failing_tests_are_named(folder):
    cases = "".join(f'<testcase classname="m" name="t{number}"><error/></testcase>' for number in range(60))
    counts, _ = read(folder, f"<testsuite>{cases}</testsuite>")
    assert counts.failed == 60
    assert counts.failing == (*(f"m.t{number}" for number in range(50)), "and 10 more")


@pytest.mark.parametrize(
    ("attributes", "name"),
    [
        ('name="a"', "a"),
        ('classname="m"', "m"),
        ("", "a test without a name"),
        (f'name="{"n" * 500}"', "n" * 299 + "…"),
        ('classname="m" name="&lt;é&#8364;"', "m.<é€"),
    ],
)
def test_a_failing_test_is_named_by_what_there_is(folder, attributes, name):
    counts, _ = read(folder, f"<testsuite><testcase {attributes}><failure>long</failure></testcase></testsuite>")
    assert counts == Counts(0, 1, 0, (name,))


BOMB = '<!DOCTYPE a [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]><testsuite><testcase name="&b;"/></testsuite>'
READS = (
    '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/hostname">]><testsuite><testcase name="a">&x;</testcase></testsuite>'
)
OUTSIDE = '<!DOCTYPE testsuite SYSTEM "http://127.0.0.1:9/x.dtd"><testsuite/>'


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "r.xml: no element found: line 1, column 0"),
        (b"\0", "r.xml: unclosed token: line 1, column 0"),
        (ONE[:-3], "r.xml: unclosed token"),
        ("<html/>", "r.xml: it is not JUnit XML"),
        (BOMB, "r.xml: it declares a document type"),
        (READS, "r.xml: it declares a document type"),
        (OUTSIDE, "r.xml: it declares a document type"),
        ("<testsuite>&x;</testsuite>", "r.xml: undefined entity"),
        ('<?xml version="1.0" encoding="none"?><testsuite/>', "r.xml: unknown encoding: none"),
        ('<?xml version="1.0" encoding="utf-7"?><testsuite/>', "r.xml: multi-byte encodings are not supported"),
        ("<testsuite>" * 101, "or more than 100 in each other"),
        (f"<testsuite>{'<a/>' * ELEMENT_LIMIT}</testsuite>", "r.xml: it has more than 500000 elements"),
        (f"<testsuite>{' ' * FILE_LIMIT}</testsuite>", "r.xml: it is larger than 20 MiB"),
    ],
)
def test_a_broken_or_hostile_report_counts_nothing_and_is_told(folder, content, problem):
    counts, note = read(folder, content)
    assert counts is None
    assert note.startswith("the report r.xml cannot be read: ")
    assert problem in note


def test_deep_nesting_is_no_trouble_and_wide_reports_are_read(folder):
    assert read(folder, "<testsuite>" * 100 + "</testsuite>" * 100) == (Counts(), "")
    cases = "<testcase/>" * 20_000
    assert read(folder, f"<testsuite>{cases}</testsuite>") == (Counts(20_000), "")


@pytest.mark.parametrize("pattern", ["../r.xml", "a/../../r.xml", "/r.xml"])
def test_a_pattern_that_leads_out_of_the_folder_is_refused(folder, pattern):
    (folder.parent / "r.xml").write_text(ONE)
    assert Reports(folder, pattern).read() == (
        None,
        f"the report {pattern} cannot be read: it is not inside of the task folder",
    )


@pytest.mark.parametrize("pattern", ["**r.xml", "a\0b"])
def test_what_is_no_pattern_finds_nothing(folder, pattern):
    assert read(folder, ONE, pattern=pattern) == (
        None,
        f"the report {pattern} cannot be read: this run did not write it",
    )


def test_a_link_is_not_followed(folder):
    secret = folder.parent / "secret.xml"
    secret.write_text(ONE)
    reports = Reports(folder, "*.xml")
    (folder / "r.xml").symlink_to(secret)
    assert reports.read() == (None, "the report *.xml cannot be read: r.xml lies behind a link")


def test_a_linked_folder_is_not_followed(folder):
    (folder.parent / "other").mkdir()
    reports = Reports(folder, "out/*.xml")
    (folder.parent / "other" / "r.xml").write_text(ONE)
    (folder / "out").symlink_to(folder.parent / "other")
    assert reports.read() == (None, "the report out/*.xml cannot be read: out/r.xml lies behind a link")


def test_a_task_folder_behind_a_link_is_no_trouble(folder):
    link = folder.parent / "link"
    link.symlink_to(folder)
    assert read(link, ONE) == (Counts(1), "")


def test_a_pipe_or_a_folder_is_no_report(folder):
    reports = Reports(folder, "*.xml")
    os.mkfifo(folder / "r.xml")
    assert reports.read() == (None, "the report *.xml cannot be read: r.xml: it is no regular file")
    (folder / "r.xml").unlink()
    (folder / "r.xml").mkdir()
    counts, note = reports.read()
    assert counts is None
    assert "r.xml" in note


def test_too_many_files_are_not_read(folder):
    reports = Reports(folder, "*.xml")
    for number in range(FILES_LIMIT + 1):
        (folder / f"{number}.xml").write_text(ONE)
    assert reports.read() == (None, "the report *.xml cannot be read: these are more than 1000 files")


def test_no_pattern_asks_for_no_report(folder):
    assert read(folder, ONE, pattern="") == (None, "")
