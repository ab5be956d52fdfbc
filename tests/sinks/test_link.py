"""The daemon's line to a sender, whatever becomes of that."""

from __future__ import annotations

import asyncio
import os
import signal

from holdfast.daemon.sink_link import SinkLink
from holdfast.model.sinks import SendResult
from holdfast.sinks.job import Job
from tests.sinks.receiver import Receiver
from tests.support import eventually, is_alive


def job(receiver: Receiver, path: str = "/") -> Job:
    return Job("webhook", "note_1", "{}", "line", "", "info", address=f"{receiver.url}{path}")


async def until_gone(pid: int | None) -> None:
    """Until it has ended, and the loop has heard of it."""
    assert pid is not None
    await asyncio.to_thread(eventually, lambda: not is_alive(pid))
    await asyncio.sleep(0.1)


async def let_go(link: SinkLink) -> None:
    pid = link.pid
    link.close()
    await until_gone(pid)


def test_one_that_hangs_is_replaced(receiver: Receiver) -> None:
    receiver.hangs = {"/slow"}

    async def work() -> None:
        link = SinkLink(os.environ, patience=2.0)
        assert await link.send(job(receiver)) == SendResult(True)
        first = link.pid
        assert first is not None
        os.kill(first, signal.SIGSTOP)
        assert await link.send(job(receiver)) == SendResult(False, "the sender hung for 2 s")
        await until_gone(first)
        assert await link.send(job(receiver)) == SendResult(True)
        assert link.pid not in (None, first)
        await let_go(link)

    asyncio.run(work())


def test_one_that_died_in_between_is_not_noticed(receiver: Receiver) -> None:
    async def work() -> None:
        link = SinkLink(os.environ)
        assert await link.send(job(receiver)) == SendResult(True)
        pid = link.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        await until_gone(pid)
        assert await link.send(job(receiver)) == SendResult(True)
        await let_go(link)

    asyncio.run(work())


def test_one_that_is_given_up_takes_nothing_with_it(receiver: Receiver) -> None:
    receiver.hangs = {"/slow"}

    async def work() -> None:
        link = SinkLink(os.environ)
        task = asyncio.create_task(link.send(job(receiver, "/slow")))
        await asyncio.to_thread(eventually, lambda: receiver.got)
        pid = link.pid
        task.cancel()
        await asyncio.wait({task})
        await until_gone(pid)
        assert await link.send(job(receiver)) == SendResult(True), "the answer is that of this message"
        await let_go(link)

    asyncio.run(work())
