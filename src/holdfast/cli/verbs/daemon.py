"""`holdfast daemon`."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import os
import sys
import time

from holdfast.cli import console
from holdfast.cli.options import JSON, Option, Verb, count
from holdfast.client import launch
from holdfast.client.link import Done, Failed, Link, LinkCut, greet, open_link
from holdfast.errors import BadValue, Unreachable
from holdfast.model.units import age_text, size_text
from holdfast.paths import find_paths, make_directories
from holdfast.version import is_older

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket

    from holdfast.cli.options import Given
    from holdfast.paths import Paths
    from holdfast.wire.frames import Message

VERB = Verb(
    "daemon",
    synopsis=[
        "daemon run",
        "daemon start|stop|restart|status [--json]",
        "daemon http [--port N | --off | --rotate] [--json]",
    ],
    about="""
        The daemon starts automatically with the first call, so this is rarely needed.

        run runs the daemon in the foreground, for a service manager: see holdfast service. start starts it in the
        background, unless it runs. stop stops it: processes with lifetime daemon end, the others go on and are adopted
        when it starts again, with the next call: clients that only wait, such as events -f, do not start it. status
        shows its state, and does not start it.

        restart replaces the daemon by one of this release, for instance after an upgrade or a change of its settings.
        No process ends, and waiting clients go on. Keeper and anchor of an older release are replaced, too; those of
        the first releases cannot be, and go on until their processes have ended.

        http serves HTTP on the loopback address, now and after every start of the daemon, and prints the URL and the
        file with the token that clients need; --off stops it, --rotate makes a new token. The Unix socket always serves
        HTTP. See docs/http.md.

        With --json, status prints pid, keeper_pid, anchor_pid, version, home, processes and more; running is false if
        no daemon runs.
    """,
    options=[
        Option("--port", metavar="N", convert=count, help="http: the port to listen on. Default: a free one."),
        Option("--off", help="http: stop listening."),
        Option("--rotate", help="http: replace the token, and close all connections that were opened with it."),
        JSON,
    ],
    exits=[("0", "Done, also if it ran already or had stopped already."), ("125", "status: no daemon runs.")],
    examples=[
        ("Its state", "holdfast daemon status"),
        ("Serve HTTP on 127.0.0.1", "holdfast daemon http --port 7333"),
        ("Switch to a new version after an upgrade; processes go on", "holdfast daemon restart"),
    ],
)

_STOP_LIMIT = 60.0
#: Seconds between two messages that name what a stop waits for.
_PROGRESS_INTERVAL = 2.0
_PAUSE = 0.01
#: A keeper starts a daemon that was killed again, of the old release, and may be faster than this command.
_RESTART_TRIES = 5


def run(given: Given) -> int:
    (action,) = given.only("run, start, stop, restart, status or http")
    acts = {"run": _run, "start": _start, "stop": _stop, "restart": _restart, "status": _status, "http": _http}
    act = acts.get(action)
    if act is None:
        raise BadValue(f"daemon: cannot {action[:80]!r}", next="run, start, stop, restart, status or http")
    if action != "http" and (given.off or given.rotate or given.port is not None):
        raise BadValue("--port, --off and --rotate are for http", next=given.usage)
    return act(given, find_paths())


def _run(given: Given, paths: Paths) -> int:
    make_directories(paths)
    sys.stdout.flush()
    arguments = [sys.executable, "-P", "-m", "holdfast.daemon"]
    manager = {name: value for name, value in os.environ.items() if name == "NOTIFY_SOCKET"}
    _signal.pthread_sigmask(_signal.SIG_BLOCK, {_signal.SIGINT})  # until the daemon can handle it
    os.execve(sys.executable, arguments, {**launch.environment(paths), **manager})


def _start(given: Given, paths: Paths) -> int:
    _show(given, _ask(paths, "status", {}))
    return 0


def _ask(paths: Paths, op: str, arguments: Message) -> Message:
    """Ask the daemon of this home, also if HOLDFAST_URL is set; starts it if it does not run."""
    link = open_link(paths, launch.session_of(None))
    try:
        answer, _ = link.call(op, arguments, _STOP_LIMIT)
        return answer
    finally:
        link.close()


def _stop(given: Given, paths: Paths) -> int:
    link = _find(paths)
    answer: Message = {"ended": [], "left": []}
    if link is not None:
        answer = _ask_to_stop(link)
        _wait_until_gone(link)
    if given.json:
        console.out_json({"running": False, **answer})
    else:
        console.say("the daemon has stopped" if link is not None else "no daemon runs")
        for process_id in answer["left"]:
            console.say(f"{process_id} still runs")
    return 0


def _restart(given: Given, paths: Paths) -> int:
    from holdfast.cli import versions
    from holdfast.settings import read_settings

    read_settings(paths.config)  # the new daemon could not read it either: the old one goes on then
    for tries_left in reversed(range(_RESTART_TRIES)):
        try:
            link = greet(_replace(paths), launch.session_of(None))
            status, _ = link.call("status", {}, _STOP_LIMIT)
        except LinkCut:  # of two daemons that started at once, the other one stays
            if not tries_left:
                raise
            continue
        link.close()
        if not is_older(link.daemon["daemon"]):
            break  # else the keeper was faster, and started the old one again
    if given.json:
        console.out_json({"running": True, **status})
    else:
        held = f"processes that go on: {status['processes']}"
        console.say(f"the daemon (pid {status['pid']}, version {status['version']}) serves now; {held}")
    versions.say_older_parts(link.daemon)
    return 0


def _replace(paths: Paths) -> _socket.socket:
    """A connection to a new daemon, which is started as the last one was: by systemd, or by this command."""
    from holdfast.cli.verbs import service

    unit = service.active_unit()
    return launch.replace(paths, lambda: _end_daemon(paths), None if unit is None else lambda: service.start(unit))


def _end_daemon(paths: Paths) -> None:
    """Stop the daemon, and no process. One of the first releases would end those with lifetime daemon: it is killed."""
    link = _find(paths)
    if link is None:
        return
    running, _ = link.call("list", {}, _STOP_LIMIT)
    if "keeper" in link.daemon or all(process["lifetime"] != "daemon" for process in running["processes"]):
        _ask_to_stop(link, keep=True)
    else:
        _kill_daemon(link.daemon["pid"], paths)
    _wait_until_gone(link)


def _kill_daemon(pid: int, paths: Paths) -> None:
    """Kill it, and mark its lock as that of a daemon that was stopped, so that its keeper does not start it again."""
    import fcntl

    lock = os.open(paths.daemon_lock, os.O_RDWR | os.O_CLOEXEC)
    try:
        os.kill(pid, _signal.SIGKILL)
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.pwrite(lock, b"stopped\n", 0)  # see `daemon/core/instance.py`
    finally:
        os.close(lock)


def _ask_to_stop(link: Link, keep: bool = False) -> Message:
    """Its reply. Meanwhile, prints which processes it waits for."""
    rid, began = link.ask("stop", {"keep": True} if keep else {}), time.monotonic()
    while True:
        answers = link.receive(_PROGRESS_INTERVAL)
        for answer in answers:
            if isinstance(answer, Failed):
                raise answer.error
            if isinstance(answer, Done):
                if answer.rid == rid:
                    return answer.value
                _say_progress(answer.value["processes"], time.monotonic() - began)
        if not answers:
            link.ask("list", {})


def _say_progress(processes: list[Message], since: float) -> None:
    for process in processes:
        if process["lifetime"] == "daemon":
            name = f" ({process['name']})" if process["name"] else ""
            console.say(f"waiting for {process['id']}{name}, which was asked to end {age_text(since)} ago")


def _is_running(pid: int) -> bool:
    """A zombie counts as exited: its parent may reap it late."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return stat.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except (FileNotFoundError, ProcessLookupError):
        return False


def _wait_until_gone(link: Link) -> None:
    """Until the process has exited: only then can another daemon start."""
    pid = link.daemon["pid"]
    until = time.monotonic() + _STOP_LIMIT
    try:
        while link.receive(max(0.0, until - time.monotonic())):
            pass
    except LinkCut:
        pass
    while _is_running(pid):
        if time.monotonic() > until:
            raise Unreachable(f"the daemon (pid {pid}) does not exit", next=f"read its log, or: kill {pid}")
        time.sleep(_PAUSE)


def _status(given: Given, paths: Paths) -> int:
    link = _find(paths)
    if link is None:
        if given.json:
            console.out_json({"running": False, "home": paths.home, "socket": paths.socket})
        console.say(f"no daemon runs in {paths.home}. It starts with the first call, or: holdfast daemon start")
        return 125
    status, _ = link.call("status", {}, _STOP_LIMIT)
    link.close()
    _show(given, status)
    return 0


def _http(given: Given, paths: Paths) -> int:
    if sum((given.off, given.rotate, given.port is not None)) > 1:
        raise BadValue("one of --port, --off and --rotate", next=given.usage)
    listen = f"127.0.0.1:{given.port}" if given.port is not None else None
    what = "shut" if given.off else "rotate" if given.rotate else "open"
    reply = _ask(paths, "http", {"what": what, "listen": listen})
    if given.json:
        console.out_json(reply)
    elif reply["url"] is None:
        console.say("HTTP is served on the Unix socket only")
    else:
        console.out(reply["url"])
        console.say(f"the token is in {reply['token_file']}")
    return 0


def _show(given: Given, status: Message) -> None:
    if given.json:
        console.out_json({"running": True, **status})
        return
    width = max(map(len, status))
    for key, value in status.items():
        if value is not None:
            console.out(f"{key:{width}}  {console.visible(_shown(key, value))}")


def _shown(key: str, value: object) -> str:
    if key == "started_at" and isinstance(value, (int, float)):
        return f"{age_text(time.time() - value)} ago"
    if key in ("log_bytes", "log_total") and isinstance(value, int):
        return size_text(value)
    return str(value)


def _find(paths: Paths) -> Link | None:
    sock = launch.find(paths)
    if sock is None:
        return None
    try:
        return greet(sock, launch.session_of(None))
    except LinkCut:  # it was just stopping
        return None
