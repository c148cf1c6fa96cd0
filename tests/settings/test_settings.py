"""What a person can set, and what is said when it is set wrongly."""

import subprocess
import sys
from pathlib import Path

import pytest

from offload import settings
from offload.domain.errors import EnvironmentFailure

PAGE = Path(__file__).resolve().parents[2] / "docs" / "SETTINGS.md"


@pytest.fixture
def load(tmp_path):
    """`load(text, **variables)`: the settings of a file with that text and of these variables."""

    def load(text="", **variables):
        (tmp_path / "config.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
        return settings.load({"OFFLOAD_CONFIG_DIR": str(tmp_path), **variables})

    return load


def test_without_a_file_everything_has_its_default(tmp_path):
    assert settings.load({"OFFLOAD_CONFIG_DIR": str(tmp_path / "none")}) == settings.Settings()


def test_the_file_is_read(load):
    chosen = load('max_tasks = 3\nmodel = "p/m"\n[opencode]\npath = "/opt/opencode"\nagents = false\n')
    assert chosen == settings.Settings(
        max_tasks=3, model="p/m", opencode=settings.OpenCodeSettings(path="/opt/opencode", agents=False)
    )


def test_a_variable_goes_before_the_file(load):
    chosen = load(
        'max_tasks = 3\n[opencode]\nurl = "http://127.0.0.1:1"\n',
        OFFLOAD_MAX_TASKS="7",
        OFFLOAD_OPENCODE="/opt/opencode",
        OFFLOAD_OPENCODE_AGENTS="false",
        OFFLOAD_LOG_LEVEL="debug",
    )
    assert chosen.max_tasks == 7
    assert chosen.opencode == settings.OpenCodeSettings(url="http://127.0.0.1:1", path="/opt/opencode", agents=False)
    assert chosen.log_level is settings.LogLevel.DEBUG


def test_an_empty_variable_is_none(load):
    assert load("max_tasks = 3", OFFLOAD_MAX_TASKS="").max_tasks == 3


def test_variables_that_are_no_settings_are_left_alone(load):
    assert load(OFFLOAD_STATE_DIR="/s", OFFLOAD_SOMETHING_ELSE="1") == settings.Settings()


@pytest.mark.parametrize(
    ("text", "variables", "told"),
    [
        (
            "max_task = 3",
            {},
            "FILE: max_task: there is no such setting; the settings are worker, agent, model, max_tasks,",
        ),
        ("[opencode]\nport = 1", {}, "FILE: opencode.port: there is no such setting"),
        ("max_tasks = 0", {}, "FILE: max_tasks: input should be greater than or equal to 1, not 0"),
        ("opencode = 3", {}, "FILE: opencode: input should be a valid dictionary"),
        ("opencode = 3", {"OFFLOAD_OPENCODE": "/x"}, "FILE: opencode: input should be a valid dictionary"),
        (
            'log_level = "loud"',
            {},
            "FILE: log_level: input should be 'debug', 'info', 'warning' or 'error', not 'loud'",
        ),
        ("", {"OFFLOAD_MAX_TASKS": "many"}, "OFFLOAD_MAX_TASKS: input should be a valid integer"),
        ("", {"OFFLOAD_OPENCODE_AGENTS": "perhaps"}, "OFFLOAD_OPENCODE_AGENTS: input should be a valid boolean"),
        ("max_tasks =", {}, "FILE is not valid TOML: "),
        (b"\xff", {}, "FILE is not valid TOML: "),
    ],
)
def test_what_is_set_wrongly_is_told_with_its_place(load, tmp_path, text, variables, told):
    with pytest.raises(EnvironmentFailure) as error:
        load(text, **variables)
    assert str(error.value).startswith(told.replace("FILE", str(tmp_path / "config.toml")))
    assert "\n" not in str(error.value) or "TOML" in told


def test_a_file_that_cannot_be_read_is_told(tmp_path):
    (tmp_path / "config.toml").mkdir()
    with pytest.raises(EnvironmentFailure, match=r"config\.toml cannot be read: Is a directory"):
        settings.load({"OFFLOAD_CONFIG_DIR": str(tmp_path)})


def test_the_folder_is_the_one_that_was_set_or_the_systems():
    assert settings.config_folder({"OFFLOAD_CONFIG_DIR": "/c", "XDG_CONFIG_HOME": "/x"}) == Path("/c")
    assert settings.config_folder({"XDG_CONFIG_HOME": "/x", "HOME": "/h"}) == Path("/x/offload")
    assert settings.config_folder({"XDG_CONFIG_HOME": "x", "HOME": "/h"}) == Path("/h/.config/offload")
    assert settings.config_folder({}) == Path.home() / ".config" / "offload"


def test_a_relative_folder_is_refused():
    """It would be another one in every project."""
    with pytest.raises(EnvironmentFailure, match="set OFFLOAD_CONFIG_DIR"):
        settings.config_folder({"OFFLOAD_CONFIG_DIR": "conf"})


def test_the_page_is_fresh():
    made = subprocess.run([sys.executable, "-m", "offload.settings"], capture_output=True, text=True, check=True)
    assert made.stdout == PAGE.read_text(), "run: python -m offload.settings > docs/SETTINGS.md"


def test_every_setting_says_what_it_is():
    for line in settings.reference().splitlines():
        assert "None" not in line


def test_a_home_that_is_no_folder_holds_no_settings():
    """Service accounts have /dev/null or a file for a home."""
    assert settings.load({"HOME": "/dev/null"}) == settings.Settings()


def test_the_mark_of_a_workers_processes_is_no_setting(load):
    """A person who set it would be taken for a worker."""
    assert load(OFFLOAD_WORKER="other") == settings.Settings()
    assert load(OFFLOAD_DEFAULT_WORKER="other").worker == "other"
