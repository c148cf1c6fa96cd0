"""The command `offload`: every operation as a command of its own, and what only a terminal has: top, doctor, demo, install, hub."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from offload import __version__
from offload.cli.calling import Connect, guarded, run_operation
from offload.cli.generated import JsonOption, command_for
from offload.domain.task import Front
from offload.wire.operations import OPERATIONS, Operation

HELP = "Hand a block of code to a cheaper agent and keep typing."
TASKS, PROGRAM, FRONTS = "Tasks", "offload itself", "For editors and MCP hosts"
HUB_HELP = "The process behind all fronts; it starts by itself and ends when nobody needs it."


def build(connect: Connect) -> typer.Typer:
    """The whole command line; `connect` gives a connection to the hub, and starts one if there is none."""
    app = typer.Typer(
        name="offload",
        help=HELP,
        no_args_is_help=True,
        add_completion=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    @app.callback()
    def options(
        version: Annotated[
            bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
        ] = False,
    ) -> None:
        """Hand a block of code to a cheaper agent and keep typing."""

    for operation in (operation for operation in OPERATIONS if Front.TERMINAL in operation.fronts):
        app.command(operation.command, rich_help_panel=TASKS)(command_for(operation, _runner(connect)))
    _add_own_commands(app, connect)
    _add_hub(app)
    _add_fronts(app)
    return app


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command line and gives its exit code."""
    from offload.hub.client import connect  # noqa: PLC0415

    code = 0
    try:
        build(connect)(args=arguments, prog_name="offload")
    except SystemExit as end:
        code = int(end.code or 0)
    return code


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"offload {__version__}")
        raise typer.Exit


def _runner(connect: Connect) -> Callable[[Operation, dict[str, Any], float | None, bool], int]:
    def run(operation: Operation, params: dict[str, Any], wait: float | None, as_json: bool) -> int:
        return run_operation(connect, operation, params, wait, as_json=as_json)

    return run


def _add_own_commands(app: typer.Typer, connect: Connect) -> None:
    @app.command(rich_help_panel=TASKS)
    def top(
        workspace: Annotated[str, typer.Option(help="Only tasks of this folder; empty for all.")] = "",
    ) -> None:
        """Show all tasks as they change; keys stop, close, answer, and open them. Without a terminal: print them once."""
        from offload.cli.top import top as run  # noqa: PLC0415

        raise typer.Exit(guarded(lambda: run(connect, workspace), as_json=False))

    @app.command(rich_help_panel=PROGRAM)
    def doctor(as_json: JsonOption = False) -> None:
        """Check what offload needs, and say what to do about each problem."""
        from offload.cli.doctor import doctor as run  # noqa: PLC0415

        raise typer.Exit(guarded(lambda: run(connect, as_json=as_json), as_json=as_json))

    @app.command(rich_help_panel=PROGRAM)
    def demo(
        path: Annotated[
            Path | None, typer.Option(help="A project of yours, with --model; without it the sample.")
        ] = None,
        model: Annotated[str, typer.Option(help="A real model as PROVIDER/MODEL; without it a scripted one.")] = "",
        yes: Annotated[bool, typer.Option("--yes", help="Apply the results without asking.")] = False,
        keep: Annotated[bool, typer.Option("--keep", help="Keep the folder that the sample was copied to.")] = False,
        pace: Annotated[float, typer.Option(min=0, help="Seconds between two pieces of a scripted answer.")] = 0.02,
    ) -> None:
        """Show the main job: five "write tests for this block" tasks in parallel by the real OpenCode."""
        from offload.demo.run import demo as run  # noqa: PLC0415

        raise typer.Exit(guarded(lambda: run(path, model, yes=yes, keep=keep, pace_s=pace), as_json=False))

    @app.command(rich_help_panel=PROGRAM)
    def install(
        agent: Annotated[str, typer.Argument(help='The agent to install: "opencode".')],
        as_json: JsonOption = False,
    ) -> None:
        """Install an agent where offload finds it, without touching what is installed already."""
        from offload.cli.install import install as run  # noqa: PLC0415

        raise typer.Exit(guarded(lambda: run(agent, as_json=as_json), as_json=as_json))


def _add_hub(app: typer.Typer) -> None:
    group = typer.Typer(help=HUB_HELP, no_args_is_help=True)
    app.add_typer(group, name="hub", rich_help_panel=PROGRAM)

    @group.command()
    def run() -> None:
        """Be the hub, until it is stopped or nobody needs it."""
        from offload.app import run_hub  # noqa: PLC0415

        raise typer.Exit(run_hub())

    @group.command()
    def status(as_json: JsonOption = False) -> None:
        """Say whether a hub runs, and who uses it."""
        from offload.cli.hub import status as run  # noqa: PLC0415

        raise typer.Exit(guarded(lambda: run(as_json=as_json), as_json=as_json))

    @group.command()
    def stop(as_json: JsonOption = False) -> None:
        """End the hub; its tasks are found again by the next one."""
        from offload.cli.hub import stop as run  # noqa: PLC0415

        raise typer.Exit(guarded(lambda: run(as_json=as_json), as_json=as_json))


def _add_fronts(app: typer.Typer) -> None:
    """Started by editors and hosts, and then without this module: `__main__` takes the short way."""

    @app.command(rich_help_panel=FRONTS)
    def lsp() -> None:
        """Serve an editor on standard input and output."""
        from offload.hub import forward  # noqa: PLC0415

        raise typer.Exit(forward.main("lsp"))

    @app.command(rich_help_panel=FRONTS)
    def mcp() -> None:
        """Serve an MCP host on standard input and output."""
        from offload.hub import forward  # noqa: PLC0415

        raise typer.Exit(forward.main("mcp"))
