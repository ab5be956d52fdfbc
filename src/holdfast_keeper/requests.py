"""The requests of the daemon: one function per operation, and the table of them. `protocol.py` describes them all."""

from __future__ import annotations

import binascii
import json
import os
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from holdfast_keeper import bundle, journal, kernel, log, protocol, renew
from holdfast_keeper.cgroups import UnsupportedLimit
from holdfast_keeper.connections import Connection, Refusal
from holdfast_keeper.held_command import HeldCommand, OutputWaiter, tree_of
from holdfast_keeper.starter import Program, StartRequest

if TYPE_CHECKING:
    from holdfast_keeper.keeper import Keeper

Message = dict[str, Any]
_END_OF_FILE = b"\x04"
_NOT_YET_PAUSE = 0.01


class NotYet(Exception):
    """The request cannot be decided yet: it is tried again."""


def serve(keeper: Keeper, connection: Connection, message: Message) -> None:
    """Answer one request, now or later. No message makes the keeper fail."""
    rid = message.get("rid")
    operation = OPERATIONS.get(str(message.get("op")))
    if operation is None:
        connection.refuse(rid, "unsupported", f"unknown operation {message.get('op')!r}")
        return
    try:
        if "id" in message:
            _check_id(message["id"])
            keeper.exits.archive_ended(message["id"])
            if message["op"] in _OF_A_RUN and keeper.starter.report_before(message["id"]) is not None:
                raise NotYet  # it is between two runs
        answer = operation(keeper, connection, message)
    except NotYet:
        keeper.loop.after(_NOT_YET_PAUSE, lambda: _serve_again(keeper, connection, message))
    except Refusal as refusal:
        connection.refuse(rid, *refusal.args)
    except (KeyError, TypeError, ValueError) as wrong:
        connection.refuse(rid, "bad_value", f"{message.get('op')}: {wrong!r}")
    except Exception:  # noqa: BLE001 - one request must not end the keeper
        log.write_traceback(f"keeper: {message.get('op')}")
        connection.refuse(rid, "failed", f"the keeper failed on {message.get('op')}")
    else:
        if answer is not None:
            connection.answer(rid, answer)


def _serve_again(keeper: Keeper, connection: Connection, message: Message) -> None:
    if connection.is_open:
        serve(keeper, connection, message)


def _hello(keeper: Keeper, connection: Connection, message: Message) -> Message:
    if not message.get("reader"):
        connection.is_daemon = True
        kernel.shorten_slice(connection.peer_pid)
        keeper.settings = {"log_total": message.get("log_total"), "revive": message.get("revive"), "left": False}
        keeper.dir.write_settings(keeper.settings)
        keeper.quota.total = message.get("log_total")
        keeper.daemon_restart.arrived()
    return {
        "version": protocol.VERSION,
        "release": keeper.dir.release_name,
        "pid": os.getpid(),
        "anchor_pid": os.getppid(),
        "cgroup": keeper.groups.root,
        "fork_server": keeper.starter.forks.has_server,
        "offers": [*_offers(keeper), protocol.RAW, renew.OFFER],
        "live": [command.report() for command in keeper.commands.values()],
    }


def _offers(keeper: Keeper) -> list[str]:
    has_server = keeper.starter.forks.has_server
    return [name for name in protocol.OPTIONAL_FIELDS if has_server or name != "sandbox"]


def _start(keeper: Keeper, connection: Connection, message: Message) -> None:
    spec = dict(message["spec"])
    spec["limits"] = _limits(keeper, spec.get("limits") or {})
    if "raw" in message:
        text, block = message["raw"]
        program = Program(int(message["argc"]), block, text)
        if not 0 < program.argc <= message["words"] == block.count(b"\0"):
            raise Refusal("failed_start", "embedded null byte")
    else:  # of a daemon of an older release
        spec = {name: spec[name] for name in (*protocol.SPEC_FIELDS, *protocol.OPTIONAL_FIELDS) if name in spec}
        try:
            program = Program.of_spec(spec)
        except ValueError as impossible:
            raise Refusal("failed_start", str(impossible)) from impossible
    keeper.starter.start((connection, message["rid"]), message["id"], spec, program)


def _limits(keeper: Keeper, asked: Message) -> Message:
    kinds = {"memory": int, "cpus": float, "pids": int}
    limits = {name: kinds[name](value) for name, value in asked.items() if value is not None}
    if any(value <= 0 for value in limits.values()):
        raise Refusal("bad_value", "a limit must be greater than 0")
    try:
        keeper.limits.check(limits)
    except UnsupportedLimit as unsupported:
        raise Refusal("unsupported", str(unsupported)) from None
    return limits


def _rerun(keeper: Keeper, connection: Connection, message: Message) -> Message | None:
    """Run it again as run `run`. Answered when it runs; at once if it is that run already. Raises Refusal, NotYet."""
    process_id, run, streak = message["id"], int(message["run"]), int(message.get("streak") or 0)
    report = _report(keeper, connection, message)
    last = int(report["born"].get("run", 0))
    if run == last:
        return report
    if run != last + 1:
        raise Refusal("bad_value", f"the last run of {process_id} was {last}, so the next cannot be {run}")
    if report["exit"] is None:
        raise Refusal("not_now", f"{process_id} still runs")
    if (report["stop"] or {}).get("late") and not message.get("despite_stop"):
        raise Refusal("stopped", f"{process_id} was stopped for good")
    if keeper.stopper.is_stopping(process_id):
        raise NotYet  # without cgroups, the stop of the last run could signal the next one
    if process_id in keeper.commands:
        _archive_last_run(keeper, keeper.commands[process_id])
    spec = _spec_of_first_run(keeper, message)
    before = keeper.report(process_id)
    # The offset of this run's first byte in each stream.
    begins = {name: extent["end"] for name, extent in (before or report)["streams"].items()}
    born = {"run": run, "streak": streak, "begins": begins}
    program = Program.of_spec(spec)
    keeper.starter.rerun(StartRequest(process_id, spec, program, [(connection, message["rid"])], before, born))
    return None


def _archive_last_run(keeper: Keeper, command: HeldCommand) -> None:
    """Archive a bundle whose output leftovers may still hold open: what they write from now on is discarded."""
    if keeper.awaits_offer(command):
        raise NotYet
    if any(pump.drain() > pump.log.end for pump in command.pumps.values()):
        raise Refusal("disk_full", "the disk is full: its last output cannot be written")
    for pump in command.pumps.values():
        pump.closed = True
    keeper.exits.archive_if_complete(command)
    if keeper.is_current(command):
        raise Refusal("disk_full", "the disk is full: it cannot be run again")


def _spec_of_first_run(keeper: Keeper, message: Message) -> Message:
    """The spec of its first run, with the last size of its terminal."""
    directory = bundle.find(keeper.dir.path, message["id"])
    try:
        with open(f"{directory}/{bundle.SPEC}", "rb") as file:
            spec = dict(json.load(file))
    except (OSError, ValueError) as broken:
        raise Refusal("failed_start", f"the spec in its bundle cannot be read: {broken}") from broken
    return {**spec, **{key: int(message[key]) for key in ("cols", "rows") if message.get(key) is not None}}


def _report(keeper: Keeper, connection: Connection, message: Message) -> Message:
    report = keeper.report(message["id"])
    if report is None:
        raise Refusal("not_found", f"no process {message['id']}")
    return report


def _stop(keeper: Keeper, connection: Connection, message: Message) -> None:
    stop = {
        "by": str(message["by"])[:256],
        "reason": str(message["reason"])[:64],
        "signal": int(message["signal"]),
        "grace": max(0.0, float(message["grace"])),
        "quiet": max(0.0, float(message.get("quiet") or 0.0)),
    }
    if not keeper.stopper.stop((connection, message["rid"]), message["id"], stop, bool(message.get("late"))):
        raise Refusal("not_found", f"no process {message['id']}")


def _signal(keeper: Keeper, connection: Connection, message: Message) -> Message:
    """Signal the command's process group, as a terminal does. SIGSTOP and SIGCONT go to the whole tree."""
    command = _held(keeper, message)
    number = int(message["signal"])
    members = command.tree.members()
    if number not in (signal.SIGCONT, signal.SIGSTOP):
        members = kernel.in_process_group(members, command.born["pid"]) or members[:1]
    return {"sent": sum(kernel.send_signal(member, number) for member in members)}


def _write(keeper: Keeper, connection: Connection, message: Message) -> Message:
    command = _held(keeper, message)
    if command.input is None:
        raise Refusal(
            "stdin_closed", "its input is closed" if command.born["stdin"] else "it was started without input"
        )
    try:
        data = binascii.a2b_base64(message["data"], strict_mode=True)
        accepted = command.input.journal.write(data, message.get("at"))
    except binascii.Error:
        raise Refusal("bad_value", "data is not base64") from None
    except journal.Closed:
        raise Refusal("stdin_closed", "its input is closed") from None
    except journal.Full:
        raise Refusal("stdin_full", "it does not read what was written before") from None
    except journal.Gap:
        raise Refusal("bad_value", f"only {command.input.journal.accepted} bytes were written before") from None
    keeper.streams.feed(command)
    return {"accepted": accepted}


def _close_stdin(keeper: Keeper, connection: Connection, message: Message) -> Message:
    command = _held(keeper, message)
    if command.input is not None and not command.input.journal.is_sealed:
        if command.is_terminal:
            _type_end_of_file(command)
        command.input.journal.seal()
        keeper.streams.feed(command)
    return {}


def _type_end_of_file(command: HeldCommand) -> None:
    """Type the end-of-file key: a terminal has no other end of file, and in raw mode none."""
    import termios

    assert command.input is not None
    settings = termios.tcgetattr(command.fds["pty"])
    if not settings[3] & termios.ICANON:
        raise Refusal(
            "unsupported", "a terminal in raw mode has no end of file; send the key that ends the program's input"
        )
    key = settings[6][termios.VEOF]
    key = key if isinstance(key, bytes) else _END_OF_FILE
    accepted = command.input.journal.accepted
    last = os.pread(command.input.journal.fd, 1, accepted - 1) if accepted else b"\n"
    # Behind an unfinished line the first key only submits that line.
    command.input.journal.write(key if last in b"\r\n" else key * 2, None)


def _resize(keeper: Keeper, connection: Connection, message: Message) -> Message:
    command = _held(keeper, message)
    if "pty" not in command.fds:
        raise Refusal("no_terminal", "it has no terminal")
    cols, rows = int(message["cols"]), int(message["rows"])
    kernel.set_window_size(command.fds["pty"], cols, rows)
    command.pumps["out"].log.note_resize(cols, rows)
    return {}


def _wait_output(keeper: Keeper, connection: Connection, message: Message) -> Message | None:
    stream = str(message["stream"])
    known = _report(keeper, connection, message)["streams"].get(stream)
    if known is None:
        raise Refusal("bad_value", f"no stream {stream!r}")
    command = keeper.commands.get(message["id"])
    if command is None:
        return {"end": known["end"], "closed": True}
    keeper.streams.wait(command, OutputWaiter(connection, message["rid"], stream, int(message["after"])))
    return None


def _tree(keeper: Keeper, connection: Connection, message: Message) -> Message:
    report = _report(keeper, connection, message)
    return {"pids": [member.pid for member in tree_of(message["id"], report["born"]).members()]}


def _forget(keeper: Keeper, connection: Connection, message: Message) -> Message:
    if message["id"] in keeper.commands:
        raise Refusal("not_now", "it still runs, or something still writes to its output")
    directory = keeper.dir.done(message["id"])
    keeper.quota.forget(directory)
    bundle.remove(directory)
    return {}


def _usage(keeper: Keeper, connection: Connection, message: Message) -> Message:
    unadopted = {process_id: one.why for process_id, one in keeper.unadopted.items()}
    troubled = [command for command in keeper.commands.values() if command.trouble is not None]
    return {
        "log_bytes": keeper.quota.used,
        "log_total": keeper.quota.total,
        "live": len(keeper.commands),
        "troubled": {**unadopted, **{one.id: one.quarantine or one.trouble for one in troubled}},
    }


def _describe_limits(keeper: Keeper, connection: Connection, message: Message) -> Message:
    return keeper.limits.describe()


def _leave(keeper: Keeper, connection: Connection, message: Message) -> Message:
    connection.has_left = True
    keeper.settings = {**keeper.settings, "left": True}
    keeper.dir.write_settings(keeper.settings)
    return {}


def _renew(keeper: Keeper, connection: Connection, message: Message) -> Message:
    argv = message["argv"]
    if not argv or not all(isinstance(word, str) for word in argv):
        raise Refusal("bad_value", "argv is a list of texts")
    keeper.loop.after(0.0, lambda: keeper.renew(argv))
    return {}


def _held(keeper: Keeper, message: Message) -> HeldCommand:
    command = keeper.commands.get(message["id"])
    if command is not None and keeper.awaits_offer(command):
        raise NotYet
    if command is None or command.exit is not None:
        known = keeper.report(message["id"])
        raise Refusal("not_found" if known is None else "ended", f"{message['id']} does not run")
    return command


def _check_id(process_id: object) -> None:
    if not isinstance(process_id, str) or not process_id.replace("_", "").isalnum() or len(process_id) > 64:
        raise Refusal("bad_value", "an id has letters, digits and underscores")


OPERATIONS: dict[str, Callable[[Keeper, Connection, Message], Message | None]] = {
    "hello": _hello,
    "start": _start,
    "rerun": _rerun,
    "report": _report,
    "stop": _stop,
    "signal": _signal,
    "write": _write,
    "close_stdin": _close_stdin,
    "resize": _resize,
    "wait_output": _wait_output,
    "tree": _tree,
    "forget": _forget,
    "limits": _describe_limits,
    "usage": _usage,
    "leave": _leave,
    "renew": _renew,
}

#: These concern one run, and wait while a command is between two of them.
_OF_A_RUN = frozenset({"stop", "signal", "write", "close_stdin", "resize", "wait_output", "tree", "forget"})
