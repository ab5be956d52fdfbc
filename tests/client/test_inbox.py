"""The inbox with both clients, on the socket and over HTTP: the same calls, the same promises."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast
from holdfast import Client, Notification
from tests.support import eventually

_numbers = itertools.count()


@pytest.fixture
def name(instance: Path) -> str:
    """A session of the test's own."""
    return f"inbox {next(_numbers)}/ä"


@pytest.fixture
def hf(name: str) -> Iterator[Client]:
    with holdfast.connect(session=name) as client:
        yield client
        client.kill(session=name, grace=0.2)


def ended(client: Client, command: str, **options: object) -> str:
    """A command that has ended, as somebody else saw."""
    process = client.run(command, **options)  # type: ignore[arg-type]
    with holdfast.connect("somebody-else") as other:
        other.wait(process.id)
    return process.id


def told(client: Client) -> list[str | None]:
    return [one.process for one in client.inbox()]


def acked(client: Client, since: int, count: int) -> None:
    """Until so many are acknowledged."""
    eventually(lambda: len(list(client.events("notification.acked", since=since))) == count)


def newest(client: Client) -> int:
    return client.publish("tests.mark")


def test_inbox_and_ack(hf: Client, name: str) -> None:
    process = ended(hf, "echo hello; exit 3", origin={"chat": "42"}, notify="failure")
    (notice,) = hf.inbox(wait=20)
    assert isinstance(notice, Notification)
    assert (notice.process, notice.session, notice.origin) == (process, name, {"chat": "42"})
    assert (notice.data["exit_code"], notice.data["output"]) == (3, "hello")
    assert hf.inbox(limit=1)[0].id == notice.id
    assert hf.ack(notice, session="another")["unknown"] == [notice.id]
    assert hf.ack(notice) == {"acked": [notice.id], "known": [], "unknown": []}
    assert hf.ack(notice.id, "note_000000000000") == {
        "acked": [],
        "known": [notice.id],
        "unknown": ["note_000000000000"],
    }
    assert hf.inbox() == []


def test_a_wait_for_the_inbox_wakes_and_runs_out(hf: Client) -> None:
    assert hf.inbox(wait=0.05) == []
    process = hf.run("read line", stdin=True)
    found: list[Notification] = []
    thread = threading.Thread(target=lambda: found.extend(hf.inbox(wait=30)))
    thread.start()
    hf.send(process, "go")
    thread.join(60)
    assert [one.process for one in found] == [process.id]


def test_what_was_taken_no_other_taker_is_given(hf: Client, name: str) -> None:
    process = ended(hf, "true")
    assert [one.process for one in hf.inbox(wait=20, take=True)] == [process]
    with holdfast.connect(session=name) as other:
        assert other.inbox(take=True) == []
        assert told(other) == [process]


def test_a_wait_consumes_and_one_that_only_looks_does_not(hf: Client) -> None:
    since = newest(hf)
    process = hf.run("exit 4")
    assert hf.wait(process.id).exit_code == 4
    acked(hf, since, 1)
    looked_at = hf.run("echo shown")
    assert b"".join(piece.data for piece in hf.follow(looked_at)) == b"shown\n"
    assert [one.process for one in hf.inbox(wait=20)] == [looked_at.id]


def test_a_log_consumes_when_it_shows_the_end(hf: Client) -> None:
    process = ended(hf, "echo one; echo two; exit 3")
    since = newest(hf)
    hf.logs(process)
    hf.logs(process, offset=0, bytes=4, consume=True)
    assert told(hf) == [process]
    with holdfast.connect("somebody-else") as other:
        other.logs(process, consume=True)
    assert told(hf) == [process]
    page = hf.logs(process, lines=1, consume=True)
    assert page.text == "two\n" and page.process is not None and page.process.exit_code == 3
    acked(hf, since, 1)
    assert hf.inbox() == []


def test_a_log_of_what_runs_consumes_nothing(hf: Client) -> None:
    process = hf.run("echo one; read line", stdin=True)
    hf.wait_for([process.id], until="output", after=0, timeout=60)
    assert hf.logs(process, consume=True).text == "one\n"
    hf.send(process, "go")
    assert [one.process for one in hf.inbox(wait=20)] == [process.id]
    since = newest(hf)
    assert hf.logs(process, offset=4, wait=5, consume=True).unchanged
    acked(hf, since, 1)
    assert hf.inbox() == []


def test_notices_are_acknowledged_when_the_next_is_asked_for(hf: Client, name: str) -> None:
    first, second = ended(hf, "true"), ended(hf, "false")
    with hf.notices() as notices:
        assert next(notices).process == first
        assert told(hf) == [first, second]
        assert next(notices).process == second
        assert told(hf) == [second]
    with holdfast.connect(session=name) as other:
        assert [one.process for one in other.notices(timeout=0)] == [second]
        assert other.inbox() == []


def test_notices_come_as_they_happen(hf: Client) -> None:
    process = hf.run("read line; exit 2", stdin=True)
    found: list[Notification] = []

    def listen() -> None:
        with hf.notices(timeout=30) as notices:
            found.append(next(notices))

    thread = threading.Thread(target=listen)
    thread.start()
    hf.send(process, "go")
    thread.join(60)
    assert [(one.process, one.data["exit_code"]) for one in found] == [(process.id, 2)]


def test_of_several_consumers_each_notice_goes_to_one(hf: Client, name: str) -> None:
    processes = {ended(hf, "true") for _ in range(6)}
    eventually(lambda: len(told(hf)) == 6)
    found: list[str | None] = []

    def listen() -> None:
        with holdfast.connect(session=name) as client:
            for notice in client.notices(timeout=1.0):
                found.append(notice.process)

    threads = [threading.Thread(target=listen) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(found, key=str) == sorted(processes)
    assert hf.inbox() == []


def test_a_consumer_that_goes_leaves_its_notice_to_another(hf: Client, name: str) -> None:
    process = ended(hf, "true")
    gone = hf.notices()
    assert next(gone).process == process
    with holdfast.connect(session=name) as other:
        assert list(other.notices(timeout=0)) == []
        gone.close()
        eventually(lambda: [one.process for one in other.notices(timeout=0)] == [process])


def test_rename_transfer_digest_and_the_end_of_a_session(hf: Client, name: str) -> None:
    done = ended(hf, "true")
    live = hf.run("echo up; read line", stdin=True, parent_session=f"{name} parent")
    hf.wait_for([live.id], until="output", after=0, timeout=60)
    digest = hf.digest()
    assert live.id in digest["text"] and "up" in digest["text"]
    assert (digest["pending"], digest["processes"][0]["last_line"]) == (1, "up")
    assert sorted(hf.rename_session(name, f"{name} 2")["processes"]) == sorted([done, live.id])
    assert told(hf) == [done]
    assert hf.transfer(done, f"{name} 3").session == f"{name} 3"
    answer = hf.end_session(name)
    assert answer["passed"] == [{"id": live.id, "to": f"{name} parent"}]
    with holdfast.connect(f"{name} parent") as parent:
        parent.send(live, "go")
        assert [one.process for one in parent.inbox(wait=20)] == [live.id]
    assert hf.end_session(f"{name} 3", to=name)["notifications"]
    pending = {one["session"]: one["pending"] for one in hf.sessions()}
    assert pending[f"{name} 2"] == 1


def test_what_cannot_be_meant(hf: Client) -> None:
    process = hf.run("exec sleep 100")
    with pytest.raises(holdfast.BadValue):
        hf.run("true", notify="sometimes")  # type: ignore[arg-type]
    with pytest.raises(holdfast.BadValue):
        hf.run("true", watch=[""])
    with pytest.raises(holdfast.BadValue):
        hf.run("true", origin={"x": "y" * 5000})
    with pytest.raises(holdfast.BadValue):
        hf.inbox(limit=0)
    with pytest.raises(holdfast.BadValue):
        hf.ack()
    with pytest.raises(holdfast.BadValue):
        hf.transfer(process, "\n")
    with pytest.raises(holdfast.BadValue):
        hf.rename_session("a", "a")
    with pytest.raises(holdfast.BadValue):
        hf.end_session("a", to="b", keep=True)
    with pytest.raises(holdfast.BadValue):
        hf.notices(timeout=-1)
    with pytest.raises(holdfast.NotFound):
        hf.transfer("nobody", "a")


def test_the_async_client_as_well(instance: Path, name: str) -> None:
    async def work() -> None:
        async with asyncio.timeout(60), holdfast.aconnect(session=name) as hf, holdfast.aconnect("else") as other:
            done = [await hf.run("exit 3"), await hf.run("true")]
            await other.wait(done)
            found = []
            async for notice in hf.notices(timeout=0):
                found.append(notice.process)
            assert sorted(found, key=str) == sorted(process.id for process in done)
            assert await hf.inbox(wait=0.01) == []
            live = await hf.run("echo up; read line", stdin=True)
            async with hf.notices() as notices:
                waiting = asyncio.ensure_future(anext(notices))
                await hf.send(live, "go")
                assert (await waiting).process == live.id
            since = await hf.publish("tests.mark")
            assert (await hf.logs(live, consume=True)).text == "up\n"
            async with hf.events("notification.acked", since=since, follow=True) as events:
                assert (await anext(events))["process"] == live.id
            assert (await hf.digest())["pending"] == 0
            assert (await hf.end_session(name))["left"] == []
            process = await hf.run("true")
            assert (await hf.transfer(process, "third")).session == "third"
            (notice,) = await hf.inbox(session="third", wait=5)
            assert (await hf.ack(notice))["acked"] == [notice.id]

    asyncio.run(work())
