"""Where the provider's key and the server's password must not be: command lines, the log, the journal, the tasks' folders."""

from pathlib import Path

from tests.e2e.stage import BOUND_S, KEY, brief, write


def test_keys_and_passwords_come_where_they_belong_and_nowhere_else(stage, project, model):
    """The log is at debug, which says most; the server's own file is for its owner alone."""
    gate = model.gate("secrets")
    task = stage.json("start-task", brief(write("a.txt", "a\n"), "::gate secrets Done."), cwd=project)
    assert gate.reached.wait(BOUND_S)
    assert model.requests[-1]["authorization"] == f"Bearer {KEY}", "it did come to the provider"
    servers = stage.opencode()
    secrets = [KEY.encode(), *(server["password"].encode() for server in servers)]
    assert len(secrets) > 1

    told = [
        path for path in Path("/proc").glob("[0-9]*/cmdline") if any(secret in contents(path) for secret in secrets)
    ]
    assert not told
    gate.opened.set()
    stage.json("wait", task["task_id"])

    files = [path for path in stage.state.rglob("*") if path.is_file() and not path.is_symlink()]
    assert {"hub.log", "journal.sqlite3", "a.txt"} <= {path.name for path in files}
    holding = [path for path in files if any(secret in contents(path) for secret in secrets)]
    assert {path.name for path in holding} <= {"server.json"}, holding
    assert {path.stat().st_mode & 0o777 for path in holding} == {0o600}
    assert stage.state.stat().st_mode & 0o777 == 0o700
    seen = stage.run("show-task", task["task_id"], "--json").stdout + stage.run("hub", "status", "--json").stdout
    assert not [secret for secret in secrets if secret.decode() in seen]


def contents(path):
    """Nothing of what has gone in the meantime."""
    try:
        return path.read_bytes()
    except OSError:
        return b""
