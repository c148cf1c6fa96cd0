"""What a server is started with. The rules were measured with OpenCode 1.18.33."""

import json
import stat

from offload.workers.opencode.environment import (
    digest,
    instead_of_home,
    prepare,
    relevant,
    server_environment,
    user_config,
    user_folder,
)


def test_what_is_only_of_a_terminal_or_of_another_opencode_is_left_out():
    kept = {
        "PATH": "/bin",
        "ANTHROPIC_API_KEY": "k",
        "DATABASE_URL": "d",
        "OPENCODE_API_KEY": "k",
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
    }
    dropped = {
        "PWD": "/x",
        "TERM": "xterm",
        "TMUX_PANE": "%1",
        "SSH_AUTH_SOCK": "/s",
        "GIT_DIR": "/g",
        "OFFLOAD_WORKER": "w",
        "OPENCODE": "1",
        "OPENCODE_SERVER_PASSWORD": "p",
        "OPENCODE_AUTH_CONTENT": "{}",
        "OPENCODE_PERMISSION": "{}",
        "OPENCODE_CONFIG_CONTENT": "{}",
    }
    assert relevant({**kept, **dropped}) == kept


def test_a_servers_environment_keeps_the_users_home_and_puts_its_own_state_apart(tmp_path):
    whole = server_environment(
        {"HOME": f"{tmp_path}/u", "XDG_DATA_HOME": f"{tmp_path}/theirs", "XDG_CONFIG_HOME": "/config"},
        folder=tmp_path,
        config=tmp_path / "theirs.json",
        content={"model": "fake/worker"},
        password="secret",
        extra={"EXTRA": "1"},
    )
    assert json.loads(whole.pop("OPENCODE_CONFIG_CONTENT")) == {
        "snapshot": False,
        "autoupdate": False,
        "share": "disabled",
        "model": "fake/worker",
    }
    assert whole == {
        "HOME": f"{tmp_path}/u",
        "XDG_DATA_HOME": f"{tmp_path}/theirs",
        "XDG_CONFIG_HOME": f"{tmp_path}/config",
        "XDG_STATE_HOME": f"{tmp_path}/state",
        "OPENCODE_DB": f"{tmp_path}/opencode.db",
        "BUN_TMPDIR": f"{tmp_path}/tmp",
        "PYTHONDONTWRITEBYTECODE": "1",
        "OPENCODE_CONFIG": f"{tmp_path}/theirs.json",
        "OPENCODE_DISABLE_PROJECT_CONFIG": "1",
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_SERVER_PASSWORD": "secret",
        "EXTRA": "1",
        "OFFLOAD_WORKER": digest(tmp_path),
    }


def test_what_cannot_be_written_of_the_users_home_is_kept_apart_with_his_sign_ins_read(tmp_path):
    """OpenCode does not start when it cannot make its folders there."""
    assert instead_of_home({}, tmp_path) == {}
    assert instead_of_home({"HOME": str(tmp_path)}, tmp_path) == {}
    file = tmp_path / "file"
    file.write_text("")
    for _ in range(2):
        assert instead_of_home({"HOME": str(file)}, tmp_path / "own") == {
            "HOME": f"{tmp_path}/own/home",
            "XDG_DATA_HOME": f"{tmp_path}/own/data",
            "XDG_CACHE_HOME": f"{tmp_path}/own/cache",
        }
    cache = {"HOME": str(tmp_path), "XDG_CACHE_HOME": "/dev/null"}
    assert instead_of_home(cache, tmp_path / "own") == {"XDG_CACHE_HOME": f"{tmp_path}/own/cache"}
    link = tmp_path / "own" / "data" / "opencode" / "auth.json"
    assert str(link.readlink()) == f"{file}/.local/share/opencode/auth.json"


def test_the_users_configuration_is_what_was_set_else_his_global_file(tmp_path):
    environment = {"HOME": str(tmp_path)}
    folder = tmp_path / ".config" / "opencode"
    assert user_config(environment) is None
    folder.mkdir(parents=True)
    (folder / "opencode.jsonc").write_text("{}")
    assert user_config(environment) == folder / "opencode.jsonc"
    (folder / "opencode.json").write_text("{}")
    assert user_config(environment) == folder / "opencode.json"
    assert user_config({**environment, "OPENCODE_CONFIG": "/set.json"}).name == "set.json"
    assert user_config({**environment, "OPENCODE_CONFIG": "/set.json"}, "/given.json").name == "given.json"
    assert user_config({}) is None
    assert str(user_folder({"XDG_CONFIG_HOME": "/x", "HOME": "/h"})) == "/x/opencode"


def test_a_servers_folder_needs_no_install_is_private_and_links_the_users_agents_if_he_wants(tmp_path):
    theirs = tmp_path / "theirs"
    (theirs / "agents").mkdir(parents=True)
    own = tmp_path / "own"
    prepare(own, "1.18.33", theirs)
    home = own / "config" / "opencode"
    assert stat.S_IMODE(own.stat().st_mode) == 0o700
    assert json.loads((home / "package.json").read_text())["dependencies"] == {"@opencode-ai/plugin": "1.18.33"}
    assert (home / "node_modules").is_dir()
    assert (home / "agents").resolve() == theirs / "agents"
    assert not (home / "agent").exists()
    (own / "tmp" / "left.so").write_text("")
    prepare(own, "1.18.34", None)
    assert list((own / "tmp").iterdir()) == []
    assert not (home / "agents").exists()
    assert "1.18.34" in (home / "package-lock.json").read_text()


def test_a_digest_tells_environments_apart_and_gives_nothing_away():
    assert digest({"A": "secret"}) == digest({"A": "secret"}) != digest({"A": "other"})
    assert "secret" not in digest({"A": "secret"})
