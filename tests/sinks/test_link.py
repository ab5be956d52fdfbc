"""The sender of a sink as a worker: it hangs, dies or is given up."""

from __future__ import annotations

import asyncio
import os
import signal

from holdfast.daemon.workers.sink_lane import SinkWorker
from holdfast.model.notices.sinks import SendResult
from holdfast.sinks.message import SinkMessage
from tests.sinks.receiver import Receiver
from tests.support import eventually, is_alive


def message(receiver: Receiver, path: str = "/") -> SinkMessage:
    return SinkMessage("webhook", "note_1", "{}", "line", "", "info", address=f"{receiver.url}{path}")


async def until_gone(link: SinkWorker, pid: int | None) -> None:
    """Until it has ended, and the link has noticed."""
    assert pid is not None
    await asyncio.to_thread(eventually, lambda: not is_alive(pid) and link.pid != pid)


def test_a_sender_that_hangs_is_replaced(receiver: Receiver) -> None:
    receiver.hangs = {"/slow"}

    async def work() -> None:
        link = SinkWorker(os.environ)
        assert await link.send(message(receiver)) == SendResult(True)
        first = link.pid
        assert first is not None
        os.kill(first, signal.SIGSTOP)
        assert await link.send(message(receiver)) == SendResult(False, "the sender was stopped")
        await until_gone(link, first)
        assert await link.send(message(receiver)) == SendResult(True)
        assert link.pid not in (None, first)
        await link.aclose()

    asyncio.run(work())


def test_a_sender_that_died_between_two_messages_is_replaced(receiver: Receiver) -> None:
    async def work() -> None:
        link = SinkWorker(os.environ)
        assert await link.send(message(receiver)) == SendResult(True)
        pid = link.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        await until_gone(link, pid)
        assert await link.send(message(receiver)) == SendResult(True)
        await link.aclose()

    asyncio.run(work())


def test_the_reply_to_a_cancelled_message_is_not_taken_for_the_next_one(receiver: Receiver) -> None:
    receiver.hangs = {"/slow"}

    async def work() -> None:
        link = SinkWorker(os.environ)
        task = asyncio.create_task(link.send(message(receiver, "/slow")))
        await asyncio.to_thread(eventually, lambda: receiver.got)
        pid = link.pid
        task.cancel()
        await asyncio.wait({task})
        await until_gone(link, pid)
        assert await link.send(message(receiver)) == SendResult(True), "the answer is that of this message"
        await link.aclose()

    asyncio.run(work())
