"""`holdfast daemon`."""

from __future__ import annotations

import os
import sys
import time

from holdfast.cli import console
from holdfast.cli.options import JSON, Option, Verb, count
from holdfast.client import caller, launch
from holdfast.client.link import Link, LinkCut, greet, open_link
from holdfast.client.protocol import Done, Failed
from holdfast.errors import BadValue, Unreachable
from holdfast.model.units import age_text, size_text
from holdfast.paths import find_paths, make_directories

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.options import Given
    from holdfast.paths import Paths
    from holdfast.wire.frames import Message

VERB = Verb(
    "daemon",
    synopsis=["daemon run", "daemon start|stop|status [--json]", "daemon http [--port N | --off] [--json]"],
    about="""
        This is not needed in everyday use: the daemon starts by itself with the first call.

        run is the daemon itself, in the foreground, for a service manager: see holdfast service. start starts it in
        the background, unless it runs. stop ends it on purpose: processes with lifetime daemon end with it, detached
        ones go on and are found again when it is next started. status shows its state, and does not start it.

        http serves HTTP on this machine's loopback address, now and whenever the daemon runs, and prints its
        URL; with --off it stops that. A client needs the token in the file that is named. On the daemon's
        socket HTTP is always served. See docs/http.md.

        With --json, status prints pid, keeper_pid, anchor_pid, version, home, processes and more; when no daemon runs,
        running is false.
    """,
    options=[
        Option("--port", metavar="N", convert=count, help="http: listen on this port; a free one unless given."),
        Option("--off", help="http: listen no longer."),
        JSON,
    ],
    exits=[("0", "Done, also when there was nothing to start or stop."), ("125", "status: no daemon runs.")],
    examples=[
        ("How it is", "holdfast daemon status"),
        ("Serve HTTP on 127.0.0.1", "holdfast daemon http --port 7333"),
        ("After an upgrade, let the new release take over; nothing is lost", "holdfast daemon stop && holdfast ps"),
    ],
)

_STOP_LIMIT = 60.0
#: A stop that takes longer than this says what it waits for, again and again.
_PROGRESS_INTERVAL = 2.0
_PAUSE = 0.01


def run(given: Given) -> int:
    (action,) = given.only("run, start, stop, status or http")
    act = {"run": _run, "start": _start, "stop": _stop, "status": _status, "http": _http}.get(action)
    if act is None:
        raise BadValue(f"daemon: cannot {action[:80]!r}", next="run, start, stop, status or http")
    if action != "http" and (given.off or given.port is not None):
        raise BadValue("--port and --off go with http", next=given.usage)
    return act(given, find_paths())


def _run(given: Given, paths: Paths) -> int:
    make_directories(paths)
    sys.stdout.flush()
    arguments = [sys.executable, "-P", "-m", "holdfast.daemon"]
    manager = {name: value for name, value in os.environ.items() if name == "NOTIFY_SOCKET"}
    os.execve(sys.executable, arguments, {**launch.environment(paths), **manager})


def _start(given: Given, paths: Paths) -> int:
    _show(given, _ask(paths, "status", {}))
    return 0


def _ask(paths: Paths, op: str, arguments: Message) -> Message:
    """On the instance's own socket, also where HOLDFAST_URL is set; starts the daemon where there is none."""
    link = open_link(paths, caller.session_of(None))
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
            console.say(f"{process_id} goes on")
    return 0


def _ask_to_stop(link: Link) -> Message:
    """Its answer. Whom it waits for is said meanwhile."""
    rid, began = link.ask("stop", {}), time.monotonic()
    while True:
        answers = link.receive(_PROGRESS_INTERVAL)
        for answer in answers:
            if isinstance(answer, Failed):
                raise answer.error
            if isinstance(answer, Done):
                if answer.rid == rid:
                    return answer.value
                _say_who(answer.value["processes"], time.monotonic() - began)
        if not answers:
            link.ask("list", {})


def _say_who(processes: list[Message], since: float) -> None:
    for process in processes:
        if process["lifetime"] == "daemon":
            name = f" ({process['name']})" if process["name"] else ""
            console.say(f"waiting for {process['id']}{name}, which was asked to end {age_text(since)} ago")


def _is_running(pid: int) -> bool:
    """A zombie counts as gone: its parent may reap it late."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return stat.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except (FileNotFoundError, ProcessLookupError):
        return False


def _wait_until_gone(link: Link) -> None:
    """Until it has let go of everything: only then can another take its place."""
    pid = link.daemon["pid"]
    until = time.monotonic() + _STOP_LIMIT
    try:
        while link.receive(max(0.0, until - time.monotonic())):
            pass
    except LinkCut:
        pass
    while _is_running(pid):
        if time.monotonic() > until:
            raise Unreachable(f"the daemon (pid {pid}) does not go", next=f"read its log, or: kill {pid}")
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
    if given.off and given.port is not None:
        raise BadValue("either --port or --off, not both", next=given.usage)
    listen = f"127.0.0.1:{given.port}" if given.port is not None else None
    reply = _ask(paths, "http", {"what": "shut" if given.off else "open", "listen": listen})
    if given.json:
        console.out_json(reply)
    elif reply["url"] is None:
        console.say("HTTP is served on the socket alone")
    else:
        console.out(reply["url"])
        console.say(f"the token is in {reply['token_file']}")
    return 0


def _show(given: Given, status: Message) -> None:
    if given.json:
        console.out_json({"running": True, **status})
        return
    for key, value in status.items():
        if value is not None:
            console.out(f"{key:12} {console.visible(_shown(key, value))}")


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
        return greet(sock, caller.session_of(None))
    except LinkCut:  # it was just going
        return None
