"""Delivery under real kills: each end is told to its owner once, and to nobody else."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

import holdfast
from tests.support import eventually, run_cli

T = TypeVar("T")

FULL = os.environ.get("HOLDFAST_FULL") == "1"
ROOT = Path(__file__).parents[2]

#: Steps of the daemon on the way from an end to its owner, in their order.
ON_THE_WAY = ["notice-writing", "notice-written", "notice-offered", "notice-shown", "notice-over"]
ANSWERED = ["notice-claimed", "answer-sent", "answer-got", "notice-had"]


class Consumer:
    """See consumer.py."""

    def __init__(self, session: str, file: Path, *options: str) -> None:
        self._file = file
        command = [sys.executable, "-m", "tests.notices.consumer", session, str(file), *options]
        self.child = subprocess.Popen(command, cwd=ROOT)
        eventually(lambda: file.exists() and file.read_text(), timeout=30)

    def told(self) -> Counter[str]:
        """How often it was told of which end."""
        lines = [line.split() for line in self._file.read_text().splitlines() if not line.startswith("ready")]
        assert all(line[0] == "completion" for line in lines), lines
        return Counter(line[1] for line in lines)

    def end(self) -> None:
        self.child.kill()
        self.child.wait()


@pytest.fixture
def consumers(home: Path, tmp_path: Path) -> Iterator[Callable[..., Consumer]]:
    started: list[Consumer] = []

    def start(session: str, *options: str) -> Consumer:
        started.append(Consumer(session, tmp_path / f"told-{len(started)}", *options))
        return started[-1]

    yield start
    for consumer in started:
        consumer.end()


def kill_daemon(client: holdfast.Client) -> None:
    os.kill(client.status()["pid"], signal.SIGKILL)


def over(home: Path) -> list[tuple[str, str, str]]:
    """Session and process of what was told, and how."""
    connection = sqlite3.connect(home / "store.db")
    try:
        query = "SELECT session, process, acked_by FROM inbox WHERE acked_at IS NOT NULL ORDER BY seq"
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def over_by(home: Path, process: str) -> str | None:
    """How the owner was told of this one, if he was."""
    return next((by for _, told, by in over(home) if told == process), None)


@pytest.mark.timeout(1200)
def test_of_two_waiting_clients_only_the_owner_is_notified_at_any_crash_of_the_daemon(
    home: Path, consumers: Callable[..., Consumer]
) -> None:
    a, b = consumers("a"), consumers("b")
    chance = random.Random(os.environ.get("HOLDFAST_SEED", "delivery"))
    started: list[str] = []
    with holdfast.connect("a") as client:
        for _ in range(100 if FULL else 8):
            gap = chance.uniform(0, 0.04)
            started += [client.run(f"sleep {gap * share:.3f}").id for share in (0.0, 0.5, 1.0)]
            threading.Event().wait(chance.uniform(0, 0.04))  # the instant of the kill is what is random here
            kill_daemon(client)
        eventually(lambda: len(a.told()) == len(started), timeout=60)
        eventually(lambda: len(over(home)) == len(started), timeout=60)
    assert a.told() == Counter(started)
    assert b.told() == Counter()


@pytest.mark.parametrize("point", ON_THE_WAY)
def test_nor_does_it_matter_between_which_two_steps(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, consumers: Callable[..., Consumer], point: str
) -> None:
    monkeypatch.setenv("HOLDFAST_DIE_AT", point)
    monkeypatch.setenv("HOLDFAST_DIE_MARK", str(tmp_path / "died"))
    a, b = consumers("a"), consumers("b")
    with holdfast.connect("a") as client:
        started = [client.run(command).id for command in ("true", "false")]
        eventually((tmp_path / "died").exists)
        eventually(lambda: len(over(home)) == 2, timeout=30)
        assert client.inbox() == []
    assert a.told() == Counter(started)
    assert b.told() == Counter()


@pytest.mark.parametrize(
    ("point", "is_first"),
    list(itertools.product([*ANSWERED, "notice-over", *ON_THE_WAY[:3]], [True, False])),
)
def test_a_waiting_client_is_notified_once_at_any_step_at_which_the_daemon_dies(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str, is_first: bool
) -> None:
    """`is_first`: the wait comes before the end."""
    monkeypatch.setenv("HOLDFAST_DIE_AT", point)
    monkeypatch.setenv("HOLDFAST_DIE_MARK", str(tmp_path / "died"))

    async def work() -> None:
        async with holdfast.aconnect("a") as a, holdfast.aconnect("b") as b:
            process = (await a.run("read line; exit 3", stdin=True)).id
            # Of two, the end of one does not end the wait: its news is claimed when the answer is made.
            waited = [process, (await b.run("true", notify="never")).id]
            if is_first:
                waiting = asyncio.create_task(a.wait(waited, timeout=30))
                await a.status()  # it came after the wait, on the same connection
            with contextlib.suppress(holdfast.Unreachable):  # it may die before it says that the input arrived
                await b.send(process, "go")
            if not is_first:
                await b.wait(process)
                waiting = asyncio.create_task(a.wait(waited, timeout=30))
            assert [one.exit_code for one in await waiting] == [3, 0]
            await until((tmp_path / "died").exists)
            assert await a.inbox() == []
            assert await until(lambda: over_by(home, process)) == "wait"
            assert await a.inbox() == []
            assert process not in [one.process for one in await b.inbox()]

    asyncio.run(work())


def test_an_owner_who_was_away_finds_it_and_who_was_there_does_not(
    home: Path, consumers: Callable[..., Consumer]
) -> None:
    b = consumers("b")
    with holdfast.connect("a") as client:
        process = client.run("true").id
    with holdfast.connect("c") as other:
        other.wait(process)
        kill_daemon(other)
        other.status()
    a = consumers("a")
    eventually(lambda: a.told() == Counter([process]), timeout=30)
    eventually(lambda: over(home) == [("a", process, "ack")])
    assert b.told() == Counter()


def test_those_who_share_a_session_get_each_once(home: Path, consumers: Callable[..., Consumer]) -> None:
    sharers = [consumers("a", "--take") for _ in range(3)]
    with holdfast.connect("a") as client:
        started = [client.run("true").id for _ in range(60 if FULL else 24)]
    eventually(lambda: len(over(home)) == len(started), timeout=60)
    assert sum((one.told() for one in sharers), Counter[str]()) == Counter(started)


def test_what_a_dead_one_had_not_acknowledged_another_gets(home: Path, consumers: Callable[..., Consumer]) -> None:
    dying = consumers("a", "--take", "--die-after", "2")
    with holdfast.connect("a") as client:
        started = [client.run("true").id for _ in range(6)]
        dying.child.wait(30)
        assert sum(dying.told().values()) == 2
        living = consumers("a", "--take")
        eventually(lambda: len(over(home)) == len(started), timeout=30)
    told = dying.told() + living.told()
    assert set(told) == set(started)
    assert sorted(told.values()) == [1] * 5 + [2]  # the one between receipt and acknowledgement


@pytest.mark.parametrize("order", list(itertools.permutations(["end", "wait", "inbox"])), ids="-".join)
def test_in_any_order_one_of_answer_and_notice_reaches_the_owner(home: Path, order: tuple[str, ...]) -> None:
    """The inbox is looked at, or waited on if the end is yet to come, and what it tells is acknowledged."""

    async def work() -> None:
        async with holdfast.aconnect("a") as client, holdfast.aconnect("b") as other:
            process = (await client.run("read line", stdin=True)).id
            noticed: list[str] = []
            tasks: dict[str, asyncio.Task[object]] = {}
            for step in order:
                tasks[step] = asyncio.create_task(do(step, client, other, process, noticed))
                await client.status()  # it came after that, on the same connection
                if "end" in tasks:
                    told = [task for name, task in tasks.items() if name != "inbox" or "wait" not in tasks]
                    await asyncio.wait(told, timeout=30)
            by = await until(lambda: over_by(home, process))
            noticed_first = order.index("wait") == 2
            assert (by, noticed) == (("ack", [process]) if noticed_first else ("wait", []))
            await tasks["wait"]
            tasks["inbox"].cancel()
            for _ in range(2):
                assert await client.inbox() == []
                os.kill((await client.status())["pid"], signal.SIGKILL)

    asyncio.run(work())


async def do(
    step: str, owner: holdfast.AsyncClient, other: holdfast.AsyncClient, process: str, noticed: list[str]
) -> None:
    if step == "end":
        await other.send(process, "go")
        await other.wait(process)
    elif step == "wait":
        await owner.wait(process)
    else:
        for notice in await owner.inbox(wait=30):
            noticed.append(str(notice.process))
            await owner.ack(notice)


async def until(condition: Callable[[], T | None]) -> T:
    return await asyncio.to_thread(eventually, condition, 30)


@pytest.mark.parametrize("point", ["answer-sent", "answer-got"])
@pytest.mark.parametrize("verb", ["run", "wait"])
def test_a_call_that_has_returned_the_end_is_not_followed_by_a_notification(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str, verb: str
) -> None:
    """The daemon is killed as it answers, and the command line ends."""
    monkeypatch.setenv("HOLDFAST_DIE_AT", point)
    monkeypatch.setenv("HOLDFAST_DIE_MARK", str(tmp_path / "died"))
    with holdfast.connect() as client:
        if verb == "wait":
            process = client.run("sleep 0.3; exit 3", notify="any")
            assert run_cli("wait", process.id).returncode == 3
        else:
            assert run_cli("run", "--notify=any", "-c", "exit 3").returncode == 3
        assert (tmp_path / "died").exists()
        (ended,) = client.ps(all=True)
        assert over_by(home, ended.id) == "wait" or eventually(lambda: over_by(home, ended.id)) == "wait"
        assert client.inbox() == []
