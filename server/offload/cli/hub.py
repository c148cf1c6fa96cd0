"""`offload hub status|stop` for people and scripts."""

from __future__ import annotations

from offload.cli.exits import Exit
from offload.cli.output import console, print_json
from offload.hub import run
from offload.wire import words


def status(*, as_json: bool) -> int:
    """Prints what the hub says of itself; NOT_DONE when there is none."""
    found = run.status()
    if as_json:
        print_json({"running": found is not None, **(found or {})})
    elif found is None:
        console().print("no hub runs; it starts when something needs it")
    else:
        fronts = [f"{front['kind']} {front['client'] or 'unnamed'} in {front['cwd']}" for front in found["fronts"]]
        out = console()
        out.print(f"hub {found['version']}, process {found['pid']}, up {words.seconds(found['uptime_s'])}")
        for line in (*fronts, *found.get("notes", ())):
            out.print(f"  {words.one_line(line)}")
    return Exit.OK if found is not None else Exit.NOT_DONE


def stop(*, as_json: bool) -> int:
    """Ends the hub. That there is none is as good."""
    stopped = run.stop()
    if as_json:
        print_json({"stopped": stopped})
    else:
        console().print("the hub has ended" if stopped else "no hub runs")
    return Exit.OK
