from tests.contracts import locks


def test_no_lock_names_a_host():
    """A lock must install from whatever index or mirror the user has set up."""
    assert list(locks.named_hosts()) == []


def test_the_locks_hold_every_requirement_of_the_project():
    assert list(locks.unmet_requirements()) == []


def test_the_pinned_opencode_is_locked():
    assert locks.ROOT / "tests/opencode/package-lock.json" in locks.npm_locks()
