"""`holdfast inspect`."""

from __future__ import annotations

import time

from holdfast.cli import chosen, colours, console
from holdfast.cli.options import JSON, Option, Verb
from holdfast.cli.outcomes import colour, state_text, title
from holdfast.client.sync import connect
from holdfast.errors import BadValue
from holdfast.model.units import age_text, duration_text, size_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.cli.options import Given
    from holdfast.client.process import Process
    from holdfast.wire.frames import Message

VERB = Verb(
    "inspect",
    synopsis=["inspect [ID] [--seen TOKEN] [--json]", "inspect [ID] --as-command"],
    about="""
        Shows a running or ended process: command, directory, state or how it ended, times, what it uses, its output,
        and its owner; of a running one also memory, CPU time, ports and its process tree (with --json in tree: pid,
        ppid, name, cpu_seconds, rss_bytes). Unknown values are left out.

        Without ID it takes the only process that runs, else the last one that was started, and says which on stderr. If
        $HOLDFAST_SESSION is set, only processes of that session count.

        --as-command prints a line for the shell that starts the same process again: holdfast run with its options.
        Variables of the environment are in it if they were given with --env and do not look like secrets; a message on
        stderr names what is left out.

        With --json the process object, where times are unix seconds, sizes are bytes and unknown values are null, and
        the field seen. With --seen TOKEN the result is {"unchanged": true} while nothing but CPU time and memory has
        changed.
    """,
    options=[
        Option("--seen", metavar="TOKEN", help="Only if it changed since: the field seen of an earlier result."),
        Option("--as-command", help="Print the command line that starts the same process."),
        JSON,
    ],
    exits=[("0", "Shown.")],
    examples=[
        ("A process by its name", "holdfast inspect web"),
        ("Its pid, for a program", "holdfast inspect --json web | jq .pid"),
        ("How it was started", "holdfast inspect --as-command web"),
    ],
)


def run(given: Given) -> int:
    if given.as_command:
        return _as_command(given)
    with connect() as client:
        process = client.look(chosen.one(client, given), given.seen, tree=True)
    if process is None:
        console.out_json({"unchanged": True}) if given.json else console.say("unchanged")
    elif given.json:
        console.out_json({**process.to_json(), "seen": process.seen})
    else:
        _show(process, time.time())
    return 0


def _show(process: Process, now: float) -> None:
    state = colours.paint(state_text(process), colour(process))
    console.out(f"{colours.paint(console.visible(title(process)), colours.BOLD)}: {state}")
    for name, fields in (
        ("Command", _command(process)),
        ("Times", _times(process, now)),
        ("State", _state(process, now)),
        ("Resources", _resources(process)),
        ("Output", _output(process, now)),
        ("Owner", _owner(process)),
    ):
        shown = [(key, value) for key, value in fields if value]
        if shown:
            _heading(name)
        for key, value in shown:
            console.out(_linked(console.wrapped(f"{key:<10} {value}", "  ", hanging=" " * 11)))
    if process.tree:
        _heading("Processes")
        rows = [_member(member) for member in process.tree]
        lines = console.table(("PID", "PPID", "CPU", "MEMORY", "NAME"), rows, indent=2).split("\n")
        console.out("\n".join(f"  {line}" for line in lines))


def _heading(name: str) -> None:
    console.out(f"\n{colours.paint(name, colours.BOLD)}")


def _linked(line: str) -> str:
    """Ports and URLs as links."""
    if not colours.links_are_on():
        return line
    if line.startswith("  ports "):
        from holdfast.cli.verbs.ps import port_links

        return port_links(line)
    words = line.split(" ")
    return " ".join([colours.link(w, w) if w.startswith(("http://", "https://")) else w for w in words])


# The sections: names and texts; empty texts are left out.


def _command(process: Process) -> Iterator[tuple[str, str]]:
    yield "command", process.command
    if len(process.argv or ()) == 3 and process.argv[1:] == ["-c", process.command]:
        yield "shell", process.argv[0]
    yield "directory", process.cwd
    yield "backend", process.backend if process.backend != "local" else ""
    yield "place", process.place or ""
    if process.sandbox:
        writable = [f"writable {path}" for path in process.sandbox["writable"]]
        yield "sandbox", console.visible(", ".join([f"network {process.sandbox['network']}", *writable]))


def _times(process: Process, now: float) -> Iterator[tuple[str, str]]:
    if process.restarts:
        yield "created", when(process.created_at, now)
        yield "restarts", _restarts(process, now)
    yield "started", when(process.started_at, now)
    yield "ended", when(process.ended_at, now)
    if process.started_at is not None and process.ended_at is not None:
        yield "ran for", duration_text(process.ended_at - process.started_at)
    yield "deadline", when(process.deadline_at, now) if process.status != "ended" else ""


def _restarts(process: Process, now: float) -> str:
    policy = f" (--restart {process.restart})" if process.restart not in (None, "never") else ""
    if process.restart_at is not None:
        return f"{process.restarts}{policy}, the next in {duration_text(process.restart_at - now)}"
    gave_up = ", gave up" if process.gave_up else ""
    last = f", the last {age_text(now - process.started_at)} ago" if process.started_at is not None else ""
    return f"{process.restarts}{policy}{last}{gave_up}"


def _state(process: Process, now: float) -> Iterator[tuple[str, str]]:
    yield "pid", str(process.pid) if process.pid is not None else ""
    yield "queue", process.queue or ""
    yield "after", ", ".join(process.after or ())
    yield "reason", process.reason or ""
    yield "exit code", str(process.exit_code) if process.exit_code is not None else ""
    if process.signal is not None:
        from holdfast.client.signals import signal_name

        yield "signal", f"{signal_name(process.signal)} ({process.signal})"
    yield "ended by", (process.killed_by or "") + (", SIGKILL was needed" if process.forced else "")
    if process.status != "ended" and process.ready_by is not None:
        yield "ready", _ready(process, now)
    if process.needs_input:
        prompt, since = process.needs_input.get("prompt"), process.needs_input.get("since")
        yield "asks", f"{prompt or 'for input'}{f', for {age_text(now - since)}' if since else ''}"
    if process.stall_data:
        yield "stalled", f"since {when(process.stall_data.get('since'), now)}"
    yield "problem", process.trouble or ""
    if process.leftover_pids:
        yield "left behind", f"pid {', '.join(map(str, process.leftover_pids[:20]))}"


def _ready(process: Process, now: float) -> str:
    if process.ready:
        return f"yes, since {when(process.ready_at, now)}"
    return ("no" if process.ready is False else "not yet") + (
        f": {process.ready_trouble}" if process.ready_trouble else ""
    )


def _resources(process: Process) -> Iterator[tuple[str, str]]:
    limits = process.limits or {}
    memory = [size_text(process.rss_bytes)] if process.rss_bytes is not None else []
    memory += [f"peak {size_text(process.peak_rss_bytes)}"] if process.peak_rss_bytes is not None else []
    memory += [f"limit {size_text(limits['memory'])}"] if "memory" in limits else []
    yield "memory", ", ".join(memory)
    cpu = [f"{process.cpu_seconds:.2f} s"] if process.cpu_seconds is not None else []
    yield "CPU time", ", ".join([*cpu, *([f"limit {limits['cpus']:g} CPUs"] if "cpus" in limits else [])])
    yield "processes", f"limit {limits['pids']}" if "pids" in limits else ""
    yield "ports", " ".join(map(str, process.ports or ()))


def _output(process: Process, now: float) -> Iterator[tuple[str, str]]:
    dropped = f", the first {_bytes(process.dropped_bytes)} are no longer kept" if process.dropped_bytes else ""
    yield "written", f"{_bytes(process.output_bytes or 0)}{dropped}"
    yield "kept", f"up to {size_text(process.log_cap)}" if process.log_cap else ""
    yield "streams", "stderr has a log of its own" if process.split else ""
    yield "terminal", f"{process.cols}x{process.rows}" if process.pty else ""
    yield "attached", ", ".join(f"{one['by']} since {when(one['since'], now)}" for one in process.attached or ())
    yield "last typed", f"{process.typed['by']}, {when(process.typed['at'], now)}" if process.typed else ""
    yield "stdin", "open" if process.stdin_open else ""
    yield "watches", _quoted(process.watch or [])


def _owner(process: Process) -> Iterator[tuple[str, str]]:
    yield "session", process.session
    yield "task", process.task or ""
    yield "lifetime", process.lifetime
    yield "notify", process.notify or ""
    yield "labels", " ".join(f"{key}={value}" for key, value in (process.labels or {}).items())


def _bytes(size: int) -> str:
    return f"{size} byte{'' if size == 1 else 's'}" if size < 1024 else size_text(size)


def _quoted(texts: list[str]) -> str:
    return ", ".join(f'"{text}"' for text in texts)


def when(at: float | None, now: float) -> str:
    """`2026-11-17 10:02:11, 5m03s ago`; empty if it is unknown."""
    if at is None:
        return ""
    distance = f"{age_text(now - at)} ago" if at <= now else f"in {age_text(at - now)}"
    return f"{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(at))}, {distance}"


def _member(member: Message) -> tuple[str, ...]:
    cpu = f"{member['cpu_seconds']:.2f}s"
    return (str(member["pid"]), str(member["ppid"]), cpu, size_text(member["rss_bytes"]), member["name"])


# --as-command.


def _as_command(given: Given) -> int:
    if given.json or given.seen is not None:
        raise BadValue("inspect: --as-command cannot be used with --json or --seen", next=given.usage)
    from holdfast.cli.as_command import command_line

    with connect() as client:
        process = client.inspect(chosen.one(client, given), spec=True)
    line, left_out = command_line(process.spec or {})
    console.out(line)
    for text in left_out:
        console.say(text)
    return 0
