"""Finding, checking and installing a program; here it is a script that says a version."""

import platform

import pytest

from offload.domain.errors import UnknownWorker, WorkerBroken, WorkerMissing
from offload.processes import Processes
from offload.settings import OpenCodeSettings, Settings
from offload.workers.opencode.find import Finder, install, platform_programs
from offload.workers.registry import agents, install_agent, open_workers
from tests.fakes.clock import ManualClock

AGENT = agents()["opencode"]


def program(path, says="echo 1.18.40"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{says}\n")
    path.chmod(0o755)
    return path


def finder(tmp_path, path="", shell_limit_s=30):
    return Finder(AGENT, tmp_path / "own", path, Processes(), shell_limit_s=shell_limit_s)


async def test_a_program_that_is_nowhere_is_told_with_every_place_and_the_command_that_installs_it(tmp_path):
    """Issue: a missing OpenCode gives a clear error naming where it was looked for."""
    environment = {
        "PATH": f"{tmp_path}/a::{tmp_path}/b",
        "HOME": f"{tmp_path}/home",
        "npm_config_prefix": f"{tmp_path}/npm",
    }
    with pytest.raises(WorkerMissing) as error:
        await finder(tmp_path).find(environment)
    for place in ("a", "b", "npm/bin", "home/.opencode/bin", "home/.bun/bin", "home/.local/bin", "own/node_modules"):
        assert f"{tmp_path}/{place}" in str(error.value)
    assert "`offload install opencode`" in str(error.value)


async def test_every_place_is_told_once(tmp_path):
    environment = {"PATH": f"{tmp_path}/a:{tmp_path}/a", "HOME": "", "SHELL": "/bin/false"}
    with pytest.raises(WorkerMissing) as error:
        await finder(tmp_path).find(environment)
    assert str(error.value).count(f"{tmp_path}/a") == 1


async def test_a_path_that_was_set_is_the_only_place(tmp_path):
    program(tmp_path / "bin" / "opencode")
    with pytest.raises(WorkerMissing, match=r"install opencode`. It is not in /nowhere/opencode\.$"):
        await finder(tmp_path, "/nowhere/opencode").find({"PATH": f"{tmp_path}/bin"})


async def test_the_callers_path_goes_before_the_known_places(tmp_path):
    program(tmp_path / "home" / ".opencode" / "bin" / "opencode", "echo 1.18.1")
    wanted = program(tmp_path / "bin" / "opencode")
    environment = {"PATH": f"{tmp_path}/bin", "HOME": f"{tmp_path}/home"}
    found = await finder(tmp_path).find(environment)
    assert (found.path, found.version) == (wanted, "1.18.40")
    found = await finder(tmp_path).find({**environment, "PATH": ""})
    assert found.version == "1.18.1"


async def test_the_program_for_this_platform_is_taken_instead_of_a_script_that_starts_it(tmp_path):
    """So that the recorded pid is the server's own."""
    launcher = program(tmp_path / "lib" / "node_modules" / "opencode-ai" / "bin" / "opencode")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "opencode").symlink_to(launcher)
    wanted = program(next(platform_programs(launcher.parents[1])), "echo 1.18.41")
    assert (await finder(tmp_path).find({"PATH": f"{tmp_path}/bin"})).path == wanted
    beside = program(next(platform_programs(tmp_path / "lib")), "echo 1.18.42")
    assert (await finder(tmp_path).find({"PATH": f"{tmp_path}/bin"})).path == beside


async def test_a_build_that_dies_on_this_processor_is_passed_over(tmp_path):
    newer, older, *_ = platform_programs(tmp_path / "own")
    program(newer, "kill -ILL $$")
    wanted = program(older)
    assert platform.system().lower() in str(newer)
    assert (await finder(tmp_path).find({})).path == wanted


@pytest.mark.parametrize("says", ["exit 3", "echo what", "echo 1.18.9; exit 1"])
async def test_a_program_that_does_not_run_is_told(tmp_path, says):
    with pytest.raises(WorkerBroken, match="does not run"):
        await finder(tmp_path, str(program(tmp_path / "opencode", says))).find({})


async def test_a_program_that_cannot_be_started_is_told(tmp_path):
    path = tmp_path / "opencode"
    path.write_bytes(b"\x7fELF")
    path.chmod(0o755)
    with pytest.raises(WorkerBroken, match="does not run"):
        await finder(tmp_path, str(path)).find({})


async def test_a_version_that_offload_does_not_know_is_refused_with_what_to_do(tmp_path):
    path = program(tmp_path / "opencode", "echo 2.0.1")
    with pytest.raises(WorkerBroken, match=r"2\.0\.1 at .*1\.18\.x.*offload install opencode"):
        await finder(tmp_path, str(path)).find({})


async def test_a_program_that_does_not_fit_is_passed_over_for_one_that_does(tmp_path):
    """So that `offload install opencode` helps beside an OpenCode of another version on PATH."""
    program(tmp_path / "bin" / "opencode", "echo 2.0.1")
    wanted = program(next(platform_programs(tmp_path / "own")))
    assert (await finder(tmp_path).find({"PATH": f"{tmp_path}/bin"})).path == wanted


async def test_a_version_is_asked_for_once_and_again_when_the_program_was_replaced(tmp_path):
    path = program(tmp_path / "opencode", f"echo x >> {tmp_path}/asked; echo 1.18.1")
    one = finder(tmp_path, str(path))
    await one.find({})
    await one.find({})
    assert (tmp_path / "asked").read_text() == "x\n"
    program(path, "echo a newer one, 1.18.2")
    assert (await one.find({})).version == "1.18.2"


async def test_npm_installs_the_pinned_version_where_it_is_looked_for(tmp_path):
    own = next(platform_programs(tmp_path / "workers" / "opencode"))
    npm = f'echo "$@" > {tmp_path}/npm-was-told; mkdir -p {own.parent}; printf "#!/bin/sh\\necho 1.18.33\\n" > {own}; chmod +x {own}'
    program(tmp_path / "bin" / "npm", npm)
    environment = {"PATH": f"{tmp_path}/bin:/usr/bin:/bin"}
    found, sign_in = await install_agent("opencode", tmp_path / "workers", environment)
    assert (found.path, found.version, sign_in) == (own, "1.18.33", f"{own} auth login")
    told = (tmp_path / "npm-was-told").read_text()
    assert "opencode-ai@1.18.33" in told
    assert f"--prefix {tmp_path}/workers/opencode" in told


async def test_npm_that_fails_or_is_missing_is_told(tmp_path):
    with pytest.raises(WorkerMissing, match="npm was not found"):
        await install(AGENT, tmp_path, {"PATH": str(tmp_path)}, Processes())
    program(tmp_path / "npm", "echo no room >&2; exit 1")
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    with pytest.raises(WorkerBroken, match="no room"):
        await install(AGENT, tmp_path, environment, Processes())
    program(tmp_path / "npm", "exec sleep 600")
    with pytest.raises(WorkerBroken, match=r"within 0\.2 seconds"):
        await install(AGENT, tmp_path, environment, Processes(), limit_s=0.2)


async def test_only_known_agents_can_be_installed(tmp_path):
    with pytest.raises(UnknownWorker, match="opencode"):
        await install_agent("opencoed", tmp_path, {})


@pytest.mark.parametrize(
    "own", [OpenCodeSettings(), OpenCodeSettings(url="http://127.0.0.1:9", password_file="/nowhere")]
)
async def test_there_is_a_worker_per_agent_and_none_of_them_starts_anything_by_itself(tmp_path, own):
    workers = open_workers(Settings(opencode=own), tmp_path, ManualClock())
    assert list(workers) == ["opencode"]
    assert workers["opencode"].name == "opencode"
    assert not list(tmp_path.iterdir())
    await workers["opencode"].aclose()


async def test_a_worker_that_is_missing_is_described_by_its_problem(tmp_path):
    settings = Settings(opencode=OpenCodeSettings(path="/nowhere/opencode"))
    workers = open_workers(settings, tmp_path, ManualClock())
    assert "offload install opencode" in (await workers["opencode"].describe({})).problem
