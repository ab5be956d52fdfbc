"""Programs that read an inbox, and what a death in the middle leaves behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import holdfast
from tests.support import eventually

CONSUMER = """
import sys, holdfast
with holdfast.connect("a") as client:
    for notice in client.notices():
        print(notice.process, flush=True)
        if sys.stdin.readline() == "":
            break
"""


def ended(client: holdfast.Client, command: str, **options: object) -> str:
    """A command that has ended, as somebody else saw."""
    process = client.run(command, **options)  # type: ignore[arg-type]
    with holdfast.connect("somebody-else") as other:
        other.wait(process.id)
    return process.id


def crash(client: holdfast.Client) -> None:
    """Kill the daemon; when this returns another one answers."""
    pid = client.status()["pid"]
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: client.status()["pid"] != pid)


class Consumer:
    """A program of its own that takes one notice after the other, each when it is told to go on."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", CONSUMER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def told(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def go_on(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()


def test_a_consumer_that_is_killed_leaves_what_it_had_to_the_next(home: Path) -> None:
    with holdfast.connect("a") as client:
        first, second = ended(client, "true"), ended(client, "false")
        one = Consumer()
        assert one.told() == first
        one.go_on()
        assert one.told() == second
        one.kill()
        two = Consumer()
        assert two.told() == second
        two.go_on()
        eventually(lambda: not client.inbox())
        two.kill()


def test_notices_go_on_when_the_daemon_is_killed(home: Path) -> None:
    with holdfast.connect("a") as client, client.notices() as notices:
        first = ended(client, "true")
        assert next(notices).process == first
        crash(client)
        live = client.run("read line", stdin=True)
        thread = threading.Timer(0.2, lambda: client.send(live, "go"))
        thread.start()
        assert next(notices).process == live.id
        thread.join()
        assert [one.process for one in client.inbox()] == [live.id]


def test_a_daemon_killed_while_a_consumer_waits_is_no_matter(home: Path) -> None:
    with holdfast.connect("a") as client:
        live = client.run("read line", stdin=True)
        found: list[str | None] = []

        def listen() -> None:
            with holdfast.connect("a") as other, other.notices() as notices:
                found.append(next(notices).process)

        thread = threading.Thread(target=listen)
        thread.start()
        crash(client)
        client.send(live, "go")
        thread.join(20)
        assert found == [live.id]


def test_the_end_of_a_session_is_whole_after_a_crash(home: Path) -> None:
    with holdfast.connect("child") as child, holdfast.connect("parent") as parent:
        done = ended(child, "true")
        live = child.run("read line", stdin=True, parent_session="parent")
        over = child.run("sleep 100", lifetime="session")
        answer = parent.end_session("child")
        assert answer["passed"] == [{"id": live.id, "to": "parent"}]
        crash(parent)
        parent.send(live, "go")
        eventually(lambda: len(parent.inbox()) == 2)
        assert {one.process for one in parent.inbox()} == {done, live.id}
        assert child.inbox() == []
        assert parent.inspect(live).session == "parent"
        assert parent.inspect(over).killed_by == "parent"  # reported by id in the answer, and not told again


def test_parent_and_child_get_notices_of_their_own_alone(home: Path) -> None:
    with holdfast.connect("child") as child, holdfast.connect("parent") as parent:
        mine, theirs = ended(parent, "true"), ended(child, "true", parent_session="parent")
        assert [one.process for one in parent.inbox()] == [mine]
        assert [one.process for one in child.inbox()] == [theirs]


def test_a_parent_that_was_renamed_is_found(home: Path) -> None:
    with holdfast.connect("child") as child:
        live = child.run("sleep 100", parent_session="parent")
        child.rename_session("parent", "parent, compacted")
        assert child.end_session("child")["passed"] == [{"id": live.id, "to": "parent, compacted"}]
