"""Watching output, through the client against a real daemon."""

from __future__ import annotations

import os
import resource
import signal
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.client.results.notification import Notification
from tests.support import eventually


def quick(home: Path, **settings: float) -> None:
    """Settings of the test's own, before the daemon starts."""
    home.mkdir(parents=True, exist_ok=True)
    (home / "config.toml").write_text("".join(f"{key} = {value}\n" for key, value in settings.items()))


def gather(client: holdfast.Client, until: str = "completion", timeout: float = 30) -> list[Notification]:
    """Everything up to the notice of this kind, in order, acknowledged."""
    found: list[Notification] = []
    end = time.monotonic() + timeout
    while not any(one.kind == until for one in found):
        assert time.monotonic() < end, [one.kind for one in found]
        new = client.inbox(wait=5)
        if new:
            client.ack(*new)
        found += new
    return found


def bytes_at(client: holdfast.Client, notice: Notification) -> bytes:
    """What the log has where the notice says."""
    offset, end = notice.data["offset"], notice.data["end"]
    return client.logs(str(notice.process), offset=offset, bytes=end - offset, raw=True).data


def test_a_text_that_comes_in_two_pieces(home: Path) -> None:
    with holdfast.connect("a") as a:
        process = a.run("printf REA; read x; printf 'DY\\n'; read x", stdin=True, notify="success", watch=["READY"])
        eventually(lambda: a.inspect(process.id).output_bytes == 3)
        a.send(process.id, "go")
        (match,) = a.inbox(wait=20)
        assert (match.kind, match.data["pattern"], match.data["output"]) == ("watch_match", "READY", "READY")
        assert (match.data["offset"], match.data["count"], match.data["suppressed"]) == (0, 1, 0)
        a.send(process.id, "go")
        assert [one.kind for one in gather(a)] == ["watch_match", "completion"]


def test_a_character_that_comes_in_two_pieces(home: Path) -> None:
    with holdfast.connect("a") as a:
        halves = "printf 'caf\\303'; read x; printf '\\251 offen\\n'; read x"
        process = a.run(halves, stdin=True, watch=["café"])
        eventually(lambda: a.inspect(process.id).output_bytes == 4)
        a.send(process.id, "go")
        (match,) = a.inbox(wait=20)
        assert match.data["output"] == "café offen"
        a.kill(process.id)


@pytest.mark.parametrize("split", [False, True])
def test_both_streams_are_watched(home: Path, split: bool) -> None:
    with holdfast.connect("a") as a:
        process = a.run(
            "echo fine; echo 'a FAILURE' >&2; read x", stdin=True, split=split, watch_regex=["FAIL(URE|ED)"]
        )
        (match,) = a.inbox(wait=20)
        assert (match.data["stream"], match.data["output"]) == ("err" if split else "out", "a FAILURE")
        assert match.data["pattern"] == "FAIL(URE|ED)"
        a.kill(process.id)


def test_a_match_in_the_last_line_comes_before_the_end(home: Path) -> None:
    quick(home, breaker_limit=0)
    with holdfast.connect("a") as a:
        for _ in range(20):
            process = a.run("echo starting; printf 'DONE: all good'", notify="success", watch=["DONE"])
            told = gather(a)
            assert [(one.kind, one.process) for one in told] == [
                ("watch_match", process.id),
                ("completion", process.id),
            ]
            assert told[0].data["output"] == "DONE: all good"


def test_a_match_that_a_full_disk_kept_out_of_the_log_is_notified_when_there_is_space(home: Path) -> None:
    with holdfast.connect("a") as a:
        keeper = a.status()["keeper_pid"]
        # No file of the keeper's may be longer: the record of the exit fits, the last line of the output does not.
        before = resource.prlimit(keeper, resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
        environ = {"PATH": os.environ["PATH"]}  # it is in the bundle, too
        process = a.run("seq -w 1000 1999; echo NEEDLE; exit 3", environ=environ, notify="failure", watch=["NEEDLE"])
        eventually(lambda: not os.path.exists(f"/proc/{process.pid}"))
        eventually(lambda: a.inspect(process.id).trouble == "disk_full")
        resource.prlimit(keeper, resource.RLIMIT_FSIZE, before)
        found = gather(a)
        assert [(one.kind, one.data.get("output")) for one in found[:-1]] == [("watch_match", "NEEDLE")]
        assert found[-1].data["exit_code"] == 3


def test_a_daemon_that_could_open_no_file_notifies_the_match_and_the_end_when_it_can(home: Path) -> None:
    with holdfast.connect("a") as a:
        process = a.run("read x; echo NEEDLE; exit 3", stdin=True, notify="failure", watch=["NEEDLE"])
        daemon = a.status()["pid"]
        before = resource.prlimit(daemon, resource.RLIMIT_NOFILE)
        resource.prlimit(daemon, resource.RLIMIT_NOFILE, (3, before[1]))  # what is open stays open
        a.send(process.id, "go")
        eventually(lambda: not os.path.exists(f"/proc/{process.pid}"))
        # The worker that searches the output cannot be started, neither for new output nor for the end.
        eventually(lambda: (home / "daemon.log").read_text().count("Too many open files") >= 3)
        resource.prlimit(daemon, resource.RLIMIT_NOFILE, before)
        assert [one.kind for one in gather(a)] == ["watch_match", "completion"]
        assert a.inspect(process.id).exit_code == 3


def test_a_notified_match_can_be_read_again(home: Path) -> None:
    with holdfast.connect("a") as a:
        a.run("seq 1 1000; echo ERROR one; echo ERROR two; seq 1 1000", watch=["ERROR"])
        match = gather(a, until="watch_match")[0]
        assert match.data["output"] == "ERROR one\nERROR two"
        assert bytes_at(a, match) == b"ERROR one\nERROR two"
        assert match.data["count"] == 2


def test_a_window_holds_matches_back_and_sends_a_digest(home: Path) -> None:
    quick(home, watch_window=2.5)
    with holdfast.connect("a") as a:
        a.run("for i in 1 2 3 4 5; do echo error $i; sleep 0.1; done; sleep 4", notify="success", watch=["error"])
        told = gather(a)
        assert [one.kind for one in told] == ["watch_match", "watch_match", "completion"]
        first, digest = told[0].data, told[1].data
        assert (first["output"], first["digest"]) == ("error 1", False)
        assert (digest["count"], digest["digest"]) == (4, True)
        assert (digest["first"]["output"], digest["newest"]["output"]) == ("error 2", "error 5")
        assert told[1].at - told[0].at >= 2.5


def test_three_full_windows_in_a_row_end_the_watch(home: Path) -> None:
    quick(home, watch_window=0.5)
    with holdfast.connect("a") as a:
        process = a.run("for i in $(seq 1 40); do echo match $i; sleep 0.1; done", watch=["match"])
        told = gather(a)
        assert [one.kind for one in told] == ["watch_match"] * 3 + ["watch_disabled", "completion"]
        seen = sum(one.data["count"] for one in told[:3]) + told[3].data["suppressed"]
        assert seen == told[3].data["matches"]
        state = a.inspect(process.id)
        assert state.watch_data is not None
        assert state.watch_data["disabled"]


def test_the_breaker_trips_and_notifies_every_owner_later(home: Path) -> None:
    quick(home, breaker_silence=3)
    sessions = [f"s{number}" for number in range(4)]
    clients = [holdfast.connect(session) for session in sessions]
    try:
        for number in range(40):
            origin = {"chat": number % 4 if number % 4 else number}
            clients[number % 4].run(
                "read x; echo READY; read x", stdin=True, notify="success", watch=["READY"], origin=origin
            )
        running = clients[0].ps()
        for process in running:
            clients[0].send(process.id, "go")
        eventually(lambda: any(one.kind == "watch_overflow_released" for one in everything(clients)), timeout=20)
        for process in running:
            clients[0].send(process.id, "end")
        eventually(lambda: count(everything(clients), "completion") == 40, timeout=20)
        told = everything(clients)
        at_once = [one for one in told if one.kind == "watch_match" and not one.data["digest"]]
        digests = [one for one in told if one.kind == "watch_match" and one.data["digest"]]
        (released,) = [one for one in told if one.kind == "watch_overflow_released"]
        assert len(at_once) == 15
        assert count(told, "watch_overflow_tripped") == 1
        assert released.data["suppressed"] == 25
        assert sum(one.data["count"] for one in digests) == 25
        assert len({one.session for one in digests}) == len(digests) <= 4
        for one in digests:  # the first session was reached at another address for each process
            several = len(one.data["processes"]) > 1
            assert one.origin == (None if one.session == "s0" and several else {"chat": int(one.session[1:])})
        (tripped,) = [one for one in told if one.kind == "watch_overflow_tripped"]
        assert tripped.origin is not None and tripped.origin == released.origin
    finally:
        for client in clients:
            client.close()


def everything(clients: list[holdfast.Client]) -> list[Notification]:
    return [one for client in clients for one in client.inbox()]


def count(notifications: list[Notification], kind: str) -> int:
    return sum(one.kind == kind for one in notifications)


def test_notify_any_drops_the_watch_and_says_so(home: Path) -> None:
    with holdfast.connect("a") as a:
        process = a.run("echo READY", watch=["READY"], notify="any")
        assert (process.watch, process.notify) == ([], "any")
        assert any("watch was dropped" in note for note in process.notes)
        assert [one.kind for one in gather(a)] == ["completion"]


@pytest.mark.parametrize(
    ("notify", "code", "kinds"),
    [
        (None, 0, ["watch_match"]),
        (None, 3, ["watch_match"]),
        ("never", 3, ["watch_match"]),
        ("failure", 0, ["watch_match"]),
        ("failure", 3, ["watch_match", "completion"]),
        ("success", 0, ["watch_match", "completion"]),
        ("success", 3, ["watch_match"]),
    ],
)
def test_a_watch_notifies_matches_and_only_the_ends_that_were_asked_for(
    home: Path, notify: Any, code: int, kinds: list[str]
) -> None:
    with holdfast.connect("a") as a, holdfast.connect("b") as b:
        process = a.run(f"echo READY; exit {code}", watch=["READY"], notify=notify)
        assert (process.watch, process.notify, process.notes) == (["READY"], notify or "never", ())
        b.wait(process.id)  # of another session: it consumes nothing
        assert [one.kind for one in a.inbox(wait=20)] == kinds


def test_notify_never_silences_ends_and_not_progress_nor_readiness(home: Path) -> None:
    with holdfast.connect("a") as a:
        process = a.run("echo up; read x", stdin=True, notify="never", ready_log="up", check_interval=1.0)
        eventually(lambda: sorted(one.kind for one in a.inbox()) == ["progress", "ready"])
        a.send(process.id, "go")
        eventually(lambda: a.inspect(process.id).status == "ended")
        assert sorted(one.kind for one in a.inbox()) == ["progress", "ready"]


def test_a_disabled_watch_leaves_an_explicit_never_alone(home: Path) -> None:
    quick(home, watch_window=60, watch_strikes=1)
    with holdfast.connect("a") as a:
        loud = "echo match 1; read x; echo match 2; read x"
        silent = a.run(loud, stdin=True, watch=["match"], notify="never")
        plain = a.run(loud, stdin=True, watch=["match"])
        for process in (silent, plain):
            eventually(partial(of, a, process.id, "watch_match"))
            a.send(process.id, "go")
            disabled = eventually(partial(of, a, process.id, "watch_disabled"))
            assert ("be notified when it ends" in disabled.text) == (process is plain)
            a.send(process.id, "go")
        assert [a.inspect(one.id).notify for one in (silent, plain)] == ["never", "any"]
        eventually(lambda: of(a, plain.id, "completion"))
        eventually(lambda: a.inspect(silent.id).status == "ended")
        assert of(a, silent.id, "completion") is None


def of(client: holdfast.Client, process: str, kind: str) -> Notification | None:
    return next((one for one in client.inbox() if (one.process, one.kind) == (process, kind)), None)


def test_a_killed_daemon_finds_the_same_once(home: Path) -> None:
    quick(home, watch_window=0, breaker_limit=0)
    with holdfast.connect("a") as a:
        lines = "for i in $(seq 1 300); do echo hit $i; echo other $i; sleep 0.01; done"
        a.run(lines, notify="success", watch=["hit"])
        told: list[Notification] = []
        for _ in range(6):
            pid = a.status()["pid"]
            new = a.inbox(wait=0.3)
            os.kill(pid, signal.SIGKILL)
            a.ack(*new) if new else None
            told += new
        if all(one.kind != "completion" for one in told):
            told += gather(a, timeout=60)
        matches = [one for one in told if one.kind == "watch_match"]
        assert len({one.key for one in matches}) == len(matches)
        assert sum(one.data["count"] for one in matches) == 300
        at = 0
        for one in matches:
            assert lines_of(one)[0] == f"hit {at + 1}"
            at += one.data["count"]
            assert lines_of(one)[-1] == f"hit {at}"
        assert told[-1].kind == "completion"


def lines_of(notice: Notification) -> list[str]:
    data = notice.data
    if data["digest"]:
        return [str(data["first"]["output"]), str(data["newest"]["output"])]
    return [str(data["output"]), *(str(more["output"]) for more in data["more"])]


def test_hostile_patterns(home: Path) -> None:
    with holdfast.connect("a") as a:
        for pattern in ("(", "a{1000}{1000}", "(?=x)", "\\1"):
            with pytest.raises(holdfast.BadValue):
                a.run("true", watch_regex=[pattern])
        with pytest.raises(holdfast.BadValue):
            a.run("true", watch=["x"] * 5 + [f"p{number}" for number in range(200)])
        with pytest.raises(holdfast.BadValue):
            a.run("true", watch=[""])
        process = a.run("head -c 50000 /dev/zero | tr '\\0' a; echo; echo end", watch_regex=["(a+)+$", "(a|aa)+b"])
        started = time.monotonic()
        assert a.wait(process.id, timeout=20).status == "ended"
        assert time.monotonic() - started < 10


def test_what_was_written_while_there_was_no_daemon(home: Path) -> None:
    """The process ends before anybody looks again: what is in its log is told all the same, and before the end."""
    with holdfast.connect("a") as a:
        process = a.run("read x; echo LATE; exit 3", stdin=True, notify="failure", watch=["LATE"])
        daemon, keeper = (a.status()[key] for key in ("pid", "keeper_pid"))
        os.kill(keeper, signal.SIGSTOP)  # it would bring the daemon back at once
        a.close()
        os.kill(daemon, signal.SIGKILL)
        with open(f"/proc/{process.pid}/fd/0", "wb", buffering=0) as stdin:
            stdin.write(b"go\n")
        eventually(lambda: Path(f"/proc/{process.pid}/stat").read_text().split()[2] == "Z")
        os.kill(keeper, signal.SIGCONT)
    with holdfast.connect("a") as a:
        told = gather(a)
        assert [one.kind for one in told] == ["watch_match", "completion"]
        assert told[0].data["output"] == "LATE"


def test_a_line_that_is_written_in_pieces_is_delivered_whole(home: Path) -> None:
    with holdfast.connect("a") as a:
        a.run("printf ERROR; printf ': '; printf 'no such file'; echo; read x", stdin=True, watch=["ERROR"])
        (match,) = a.inbox(wait=20)
        assert match.data["output"] == "ERROR: no such file"
        assert bytes_at(a, match) == b"ERROR: no such file"
        a.kill(str(match.process))


def test_of_a_long_line_what_is_shown_is_where_it_says(home: Path) -> None:
    with holdfast.connect("a") as a:
        a.run(
            "head -c 9000 /dev/zero | tr '\\0' a; printf ERROR; head -c 9000 /dev/zero | tr '\\0' b; echo",
            watch=["ERROR"],
        )
        match = gather(a, until="watch_match")[0]
        assert match.data["output_cut"]
        assert "aERRORb" in match.data["output"]
        assert bytes_at(a, match).decode() == match.data["output"]


def watch_worker(client: holdfast.Client) -> int:
    """The pid of the watch worker, once it has searched something."""
    process = client.run("echo SEARCHED; read x", stdin=True, session="other", watch=["SEARCHED"])
    eventually(lambda: (client.inspect(process.id).watch_data or {}).get("matches"))
    client.kill(process.id)
    children = Path(f"/proc/{client.status()['pid']}/task").glob("*/children")
    pids = [pid for one in children for pid in one.read_text().split()]
    (found,) = [pid for pid in pids if Path(f"/proc/{pid}/comm").read_text() == "holdfast-watch\n"]
    return int(found)


def test_a_stopped_watch_worker_is_replaced_and_its_matches_are_one_notification(home: Path) -> None:
    with holdfast.connect("a") as a:
        process = a.run("for i in 1 2 3; do read x; echo HIT $i; done; read x", stdin=True, watch=["HIT"])
        worker = watch_worker(a)
        os.kill(worker, signal.SIGSTOP)
        for lines in range(1, 4):
            a.send(process.id, "go")
            eventually(lambda: a.inspect(process.id).output_bytes == 6 * lines)  # noqa: B023
        eventually(lambda: a.status()["watch_lag"] > 0.5)
        delayed = eventually(lambda: list(a.events("watch.delayed")))
        (match,) = eventually(lambda: a.inbox())
        assert [(one["worker_pid"], one["reason"]) for one in delayed] == [(worker, "stopped")]
        assert (match.data["count"], match.data["suppressed"]) == (3, 0)
        assert a.status()["watch_lag"] == 0
        assert not os.path.exists(f"/proc/{worker}")
        assert watch_worker(a) != worker
        a.kill(process.id)


def test_an_end_waits_only_a_moment_for_a_stopped_watch_worker(home: Path) -> None:
    with holdfast.connect("a") as a:
        worker = watch_worker(a)
        os.kill(worker, signal.SIGSTOP)
        a.run("echo HIT; echo HIT; exit 0", notify="success", watch=["HIT"])
        told = gather(a)
        assert [(one.kind, one.data.get("count")) for one in told] == [("watch_match", 2), ("completion", None)]
        # It was replaced because it was stopped, which takes two seconds: a worker that hangs is given ten.
        delayed = list(a.events("watch.delayed"))
        assert [(one["worker_pid"], one["reason"]) for one in delayed] == [(worker, "stopped")]
        assert not os.path.exists(f"/proc/{worker}")
        assert "watch-unfinished" not in (home / "daemon.log").read_text()
