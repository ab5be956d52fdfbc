"""The inbox: the owner is told, once, and nobody else."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import holdfast
from holdfast.client.results.notification import Notification
from tests.support import eventually


def ended(client: holdfast.Client, command: str, **options: object) -> str:
    """A command that has ended, as somebody else saw."""
    process = client.run(command, **options)  # type: ignore[arg-type]
    with holdfast.connect("somebody-else") as other:
        other.wait(process.id)
    return process.id


def kinds(notifications: list[Notification]) -> list[tuple[str, str | None]]:
    return [(one.kind, one.process) for one in notifications]


def test_an_end_is_offered_to_its_owner_until_it_is_acknowledged(home: Path) -> None:
    with holdfast.connect("a") as a, holdfast.connect("b") as b:
        process = ended(a, "echo one; echo two; exit 3", origin={"chat": "42", "topic": 7})
        (notice,) = a.inbox(wait=20)
        assert (notice.kind, notice.process, notice.session) == ("completion", process, "a")
        assert notice.origin == {"chat": "42", "topic": 7}
        assert (notice.data["exit_code"], notice.data["reason"], notice.data["output"]) == (3, "exited", "one\ntwo")
        assert notice.data["output_bytes"] == 8
        assert [one.id for one in a.inbox()] == [notice.id]
        assert b.inbox() == []
        assert a.ack(notice) == {"acked": [notice.id], "known": [], "unknown": []}
        assert a.inbox() == []
        assert a.ack(notice.id) == {"acked": [], "known": [notice.id], "unknown": []}


def test_a_foreign_session_can_neither_see_nor_acknowledge(home: Path) -> None:
    with holdfast.connect("a") as a, holdfast.connect("b") as b:
        ended(a, "true")
        (notice,) = a.inbox(wait=20)
        assert b.ack(notice, session="b") == {"acked": [], "known": [], "unknown": [notice.id]}
        assert [one.id for one in a.inbox()] == [notice.id]


def test_a_wait_of_the_owner_consumes_and_a_look_does_not(home: Path) -> None:
    with holdfast.connect("a") as a:
        process = a.run("exit 4")
        assert a.wait(process.id).exit_code == 4
        eventually(lambda: not pending(home))
        assert a.inbox() == []
        other = ended(a, "true")
        a.inspect(other)
        a.ps(all=True)
        a.logs(other)
        assert kinds(a.inbox()) == [("completion", other)]
        a.wait(other)  # it has ended long ago: being told so consumes all the same
        assert a.inbox() == []


def test_a_wait_that_ran_out_consumes_nothing(home: Path) -> None:
    with holdfast.connect("a") as a:
        process = a.run("read line; exit 2", stdin=True)
        assert a.wait(process.id, timeout=0.05).status == "running"
        a.send(process.id, "go")
        assert kinds(a.inbox(wait=20)) == [("completion", process.id)]


def test_the_owner_who_ended_it_gets_no_notice(home: Path) -> None:
    with holdfast.connect("a") as a, holdfast.connect("b") as b:
        mine, theirs = a.run("sleep 300"), a.run("sleep 300")
        a.kill(mine.id)
        b.kill(theirs.id)
        (notice,) = a.inbox(wait=20)
        assert (notice.process, notice.data["killed_by"], notice.data["reason"]) == (theirs.id, "b", "killed")


def test_policies(home: Path) -> None:
    with holdfast.connect("a") as a:
        told = {}
        for notify in ("any", "failure", "success", "never"):
            told[notify] = [ended(a, command, notify=notify) for command in ("true", "false")]
        wanted = {*told["any"], told["failure"][1], told["success"][0]}
        assert {one.process for one in a.inbox(wait=20)} == wanted


def test_a_killed_daemon_loses_no_notice_and_sends_none_twice(home: Path) -> None:
    with holdfast.connect("a") as a:
        first, second = ended(a, "true"), ended(a, "false")
        notice = next(one for one in a.inbox(wait=20) if one.process == first)
        a.ack(notice)
        os.kill(a.status()["pid"], signal.SIGKILL)
        (left,) = a.inbox(wait=20)
        assert left.process == second
        assert left.key == f"{second}:completion:0"


def test_waiting_wakes_at_once(home: Path) -> None:
    with holdfast.connect("a") as a:
        process = a.run("read line", stdin=True)
        found: list[Notification] = []
        with holdfast.connect("a") as other:
            waiter = in_thread(lambda: found.extend(other.inbox(wait=30)))
            a.send(process.id, "go")
            waiter.join(60)
        assert kinds(found) == [("completion", process.id)]


def test_what_one_took_no_other_is_given_until_it_goes(home: Path) -> None:
    with holdfast.connect("a") as one, holdfast.connect("a") as two:
        process = ended(one, "true")
        assert kinds(one.inbox(wait=20, take=True)) == [("completion", process)]
        assert two.inbox(take=True) == []
        assert kinds(one.inbox(take=True)) == [("completion", process)]
        one.close()
        assert kinds(two.inbox(take=True, wait=20)) == [("completion", process)]


def test_a_renamed_session_keeps_what_is_its_own(home: Path) -> None:
    with holdfast.connect("a") as a, holdfast.connect("a2") as b:
        done, live = ended(a, "true"), a.run("read line", stdin=True)
        assert a.rename_session("a", "a2")["processes"] == sorted([done, live.id])
        b.send(live.id, "go")
        eventually(lambda: len(b.inbox()) == 2)
        late = ended(a, "true")  # started by one who knows the old name only
        eventually(lambda: len(b.inbox()) == 3)
        assert {one.process for one in b.inbox()} == {done, live.id, late}
        os.kill(b.status()["pid"], signal.SIGKILL)
        assert {one.process for one in b.inbox(wait=20)} == {done, live.id, late}
        assert {process.session for process in b.ps(all=True)} == {"a2"}


def test_the_end_of_a_transferred_process_is_notified_to_its_new_owner(home: Path) -> None:
    with holdfast.connect("a") as a, holdfast.connect("b") as b:
        done, live = ended(a, "true"), a.run("read line", stdin=True)
        for process in (done, live.id):
            assert a.transfer(process, "b").session == "b"
        b.send(live.id, "go")
        eventually(lambda: len(b.inbox()) == 2)
        assert {one.process for one in b.inbox()} == {done, live.id}
        assert a.inbox() == []


def test_a_waiter_who_dies_with_the_answer_on_its_way_leaves_the_notice(home: Path) -> None:
    """Its answer is written to the socket, but nobody ever says that it came."""
    from holdfast.client import launch
    from holdfast.settings import find_paths
    from holdfast.wire import frames

    with holdfast.connect("a") as a:
        process = a.run("read line", stdin=True)
        sock: socket.socket = launch.connect(find_paths())  # type: ignore[assignment]
        for message in (
            {"rid": 1, "op": "hello", "version": 1, "session": "a"},
            {"rid": 2, "op": "wait", "processes": [process.id]},
        ):
            sock.sendall(frames.encode(message))
        a.send(process.id, "go")
        decoder, heard = frames.FrameDecoder(), list[object]()
        while not any(isinstance(one, dict) and one.get("rid") == 2 for one in heard):
            heard += decoder.feed(sock.recv(1 << 16))
        assert heard[-1]["ok"]["consumes"]  # type: ignore[index]
        assert a.inbox() == []
        sock.close()
        assert kinds(a.inbox(wait=20)) == [("completion", process.id)]


def test_the_output_outlives_its_log(home: Path) -> None:
    with holdfast.connect("a") as a:
        process = ended(a, "echo kept")
        a.remove(process)
        (notice,) = a.inbox()
        assert notice.data["output"] == "kept"


def in_thread(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread


def pending(home: Path) -> list[str]:
    import sqlite3

    connection = sqlite3.connect(home / "store.db")
    try:
        return [row[0] for row in connection.execute("SELECT id FROM inbox WHERE acked_at IS NULL")]
    finally:
        connection.close()
