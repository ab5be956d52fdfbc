"""A supervised worker process: started on demand, restarted after a crash, ended when it hangs or is idle."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable

import pytest

from holdfast.daemon.workers.worker import Worker, WorkerDied, WorkerLaunch
from holdfast.errors import HoldfastError
from tests.support import eventually, is_alive

ECHO = """
import os, signal, sys
from holdfast.wire.worker import WorkerLink
def answer(request):
    print("a library that prints")
    if request.get("dies"):
        os.kill(os.getpid(), signal.SIGKILL)
    if request.get("hangs"):
        signal.pause()
    return {"pid": os.getpid(), **request}
WorkerLink().serve(answer)
"""
ACCEPT = """
import select
from holdfast.wire.worker import WorkerLink
link = WorkerLink()
try:
    while True:
        select.select([link], [], [])
        for connection in link.receive_connections():
            connection.sendall(b"hello")
            connection.close()
except EOFError:
    pass
"""


class EchoWorker(Worker):
    program = ECHO

    def launch(self) -> WorkerLaunch:
        return WorkerLaunch(("-P", "-c", self.program))


class AcceptingWorker(EchoWorker):
    program = ACCEPT
    is_serial = False


class FailingWorker(EchoWorker):
    program = "raise SystemExit"
    is_serial = False


def run(worker: Worker, work: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        try:
            await work()
        finally:
            await worker.aclose()

    asyncio.run(main())


def echo() -> EchoWorker:
    return EchoWorker(os.environ)


def test_requests_are_answered_by_one_process_that_ends_with_its_input() -> None:
    worker = echo()
    pids: list[int] = []

    async def work() -> None:
        assert worker.pid is None
        replies = await asyncio.gather(*(worker.request({"word": word}) for word in "abc"))
        assert [reply["word"] for reply in replies] == ["a", "b", "c"]
        pids.extend({reply["pid"] for reply in replies})
        assert pids == [worker.pid]

    run(worker, work)
    assert not is_alive(pids[0])


def test_a_crash_fails_the_request_and_the_next_one_starts_a_new_process() -> None:
    worker = echo()

    async def work() -> None:
        first = (await worker.request({}))["pid"]
        with pytest.raises(WorkerDied, match="died over it") as died:
            await worker.request({"dies": True})
        assert died.value.is_blamed and worker.was_blamed
        assert (await worker.request({}))["pid"] != first

    run(worker, work)


@pytest.mark.parametrize("loops", ["asyncio", "uvloop"])
def test_a_process_that_is_killed_before_it_read_a_request_fails_it(loops: str) -> None:
    worker = echo()

    async def work() -> None:
        first = (await worker.request({}))["pid"]
        os.kill(first, signal.SIGSTOP)
        late = asyncio.ensure_future(worker.request({}))
        await asyncio.sleep(0.05)  # the request is in the socket by then, which the kill now breaks
        os.kill(first, signal.SIGKILL)
        with pytest.raises(WorkerDied):
            await asyncio.wait_for(late, 60)
        assert (await worker.request({}))["pid"] != first
        await worker.aclose()

    with asyncio.Runner(loop_factory=pytest.importorskip(loops).new_event_loop) as runner:
        runner.run(work())


def test_a_process_that_hangs_is_killed() -> None:
    worker = echo()

    async def work() -> None:
        first = (await worker.request({}))["pid"]
        worker.hang_timeout = 0.3
        with pytest.raises(WorkerDied, match="hung"):
            await worker.request({"hangs": True})
        worker.hang_timeout = 30
        assert (await worker.request({}))["pid"] != first

    run(worker, work)


def test_a_cancelled_request_does_not_delay_the_next_one() -> None:
    worker = echo()

    async def work() -> None:
        first = (await worker.request({}))["pid"]
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(worker.request({"hangs": True}), 0.1)
        assert (await worker.request({"word": "next"}))["word"] == "next"
        await asyncio.to_thread(eventually, lambda: not is_alive(first))

    run(worker, work)


def test_an_idle_process_ends_and_the_next_request_starts_another() -> None:
    worker = echo()

    async def work() -> None:
        worker.idle_timeout = 0.05
        first = (await worker.request({}))["pid"]
        await asyncio.to_thread(eventually, lambda: not is_alive(first))
        assert worker.failed_starts == 0
        assert (await worker.request({}))["pid"] != first

    run(worker, work)


def test_failed_starts_are_counted_and_followed_by_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = FailingWorker(os.environ)
    pauses: list[float] = []
    sleep = asyncio.sleep

    async def noted(seconds: float) -> None:
        pauses.append(seconds)
        await sleep(0)

    async def work() -> None:
        monkeypatch.setattr(asyncio, "sleep", noted)
        for count in range(1, 4):
            with pytest.raises(WorkerDied) as died:
                await worker.request({})
            assert not died.value.is_blamed
            assert worker.failed_starts == count
        assert pauses == sorted(pauses) and pauses[0] == 0 < pauses[-1]
        monkeypatch.undo()

    run(worker, work)


def test_connections_are_handed_over_also_after_a_crash() -> None:
    worker = AcceptingWorker(os.environ)

    async def greeting() -> bytes:
        reader, writer = await asyncio.open_connection(sock=await worker.connect())
        try:
            return await reader.read()
        finally:
            writer.close()

    async def work() -> None:
        assert [await greeting(), await greeting()] == [b"hello", b"hello"]
        first = worker.pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        while worker.pid == first:  # noqa: ASYNC110  until the daemon has noticed
            await asyncio.sleep(0.01)
        assert await greeting() == b"hello"

    run(worker, work)


def test_a_stopped_process_is_killed_while_a_connection_waits_for_it() -> None:
    worker = AcceptingWorker(os.environ)

    async def work() -> None:
        with worker.in_use():
            (await worker.connect()).close()
            first = worker.pid
            assert first is not None
            os.kill(first, signal.SIGSTOP)
            reader, writer = await asyncio.open_connection(sock=await worker.connect())
            assert await asyncio.wait_for(reader.read(), 60) == b""
            writer.close()
            assert worker.failed_starts == 0 and not worker.was_blamed

    run(worker, work)


def test_a_process_that_was_stopped_while_nothing_used_it_ends_with_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.daemon.workers.worker._END_TIMEOUT", 0.2)
    worker = echo()
    pids: list[int] = []

    async def work() -> None:
        pids.append((await worker.request({}))["pid"])
        os.kill(pids[0], signal.SIGSTOP)

    run(worker, work)
    assert not is_alive(pids[0])


def test_late_requests_are_reported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.daemon.workers.worker._LATE_AFTER", 0.1)
    monkeypatch.setattr("holdfast.daemon.workers.worker._CHECK_INTERVAL", 0.05)
    worker = echo()
    late: list[tuple[int, str]] = []

    async def work() -> None:
        first = (await worker.request({}))["pid"]
        worker.on_late = lambda pid, reason: late.append((pid, reason))
        worker.hang_timeout = 0.5
        with pytest.raises(WorkerDied):
            await worker.request({"hangs": True})
        assert late == [(first, "no progress")]

    run(worker, work)


def test_a_closed_worker_takes_no_requests() -> None:
    worker = echo()

    async def work() -> None:
        worker.close()
        with pytest.raises(HoldfastError):
            await worker.request({})

    run(worker, work)
