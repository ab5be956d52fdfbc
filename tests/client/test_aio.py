"""The async client with a real daemon."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

import holdfast
from holdfast import AsyncClient
from tests.support import eventually


def with_client(work: Callable[[AsyncClient], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(60), holdfast.aconnect(session="aio") as client:
            try:
                await work(client)
            finally:
                await client.kill(session="aio", grace=0.2)

    asyncio.run(main())


def test_run_wait_and_logs(instance: Path) -> None:
    async def work(hf: AsyncClient) -> None:
        process = await hf.run("echo hi; exit 3")
        assert (await hf.wait(process.id, timeout=60)).exit_code == 3
        assert (await hf.logs(process.id)).text == "hi\n"
        assert [p.id for p in await hf.ps(all=True, session="aio")] == [process.id]
        assert (await hf.inspect(process)).reason == "exited"
        with pytest.raises(holdfast.NotFound):
            await hf.inspect("no-such")
        assert await hf.remove(process.id) == [process.id]

    with_client(work)


def test_twenty_racing_restarts_are_one(instance: Path) -> None:
    async def work(hf: AsyncClient) -> None:
        process = await hf.run("exec sleep 60", restart="on-failure", stop_cmd="true")
        again = await asyncio.gather(*(hf.restart(process) for _ in range(20)))
        now = await hf.inspect(process)
        assert (now.status, now.id) == ("running", process.id)
        assert {one.status for one in again} == {"running"}

    with_client(work)


def test_many_calls_share_one_connection(instance: Path) -> None:
    async def work(hf: AsyncClient) -> None:
        blocked = await hf.run("sleep 60")
        waiting = asyncio.create_task(hf.wait(blocked.id))
        processes = await asyncio.gather(*(hf.run(f"exit {n}") for n in range(30)))
        ended = await hf.wait([process.id for process in processes], timeout=30)
        assert [process.exit_code for process in ended] == list(range(30))
        assert not waiting.done()
        await hf.kill(blocked.id)
        assert (await waiting).status == "ended"

    with_client(work)


def test_what_a_terminal_shows(instance: Path) -> None:
    async def work(hf: AsyncClient) -> None:
        process = await hf.run("printf 'one\\n\\033[32mtwo\\033[0m'", pty=True, size=(40, 5))
        await hf.wait(process.id, timeout=60)
        screen = await hf.screen(process)
        assert (screen.text, str(screen), screen.lines) == ("one\ntwo", "one\ntwo", ["one", "two", "", "", ""])
        assert (screen.row, screen.col, screen.cols, screen.rows) == (1, 3, 40, 5)
        assert "\x1b[" in (await hf.screen(process, ansi=True)).text
        with pytest.raises(holdfast.NoTerminal):
            await hf.screen(await hf.run("sleep 60"))

    with_client(work)


def test_it_can_be_awaited_instead_of_entered(instance: Path) -> None:
    async def main() -> None:
        hf = await holdfast.aconnect()
        assert (await hf.status())["home"] == str(instance)
        await hf.close()

    asyncio.run(main())


def test_input_signals_and_sizes(instance: Path) -> None:
    async def work(hf: AsyncClient) -> None:
        process = await hf.run("read x; echo got $x; stty size; read y", pty=True, size=(77, 11))
        await hf.resize(process.id, 50, 20)
        await hf.send(process.id, "this")
        async with hf.follow(process.id) as reading:
            text = b""
            async for piece in reading:
                text += piece.data
                if b"20 50" in text:
                    break
        assert b"got this" in text
        await hf.kill(process.id, signal="KILL")
        assert (await hf.wait(process.id, timeout=60)).signal == signal.SIGKILL

    with_client(work)


def test_follow_gives_everything_and_ends_with_the_process(instance: Path) -> None:
    async def work(hf: AsyncClient) -> None:
        process = await hf.run("seq 1 200000; sleep 60 & exit 4")
        data = b""
        reading = hf.follow(process.id)
        async for piece in reading:
            data += piece.data
        assert data == b"".join(b"%d\n" % n for n in range(1, 200001))
        assert reading.ended is not None
        assert reading.ended.exit_code == 4
        assert b"".join([p.data async for p in hf.read(process.id, lines=1)]) == b"200000\n"

    with_client(work)


def test_a_slow_reader_is_not_flooded(instance: Path) -> None:
    async def work(hf: AsyncClient) -> None:
        process = await hf.run("head -c 40000000 /dev/zero")
        await hf.wait(process.id, timeout=30)
        async with hf.read(process.id, offset=0) as reading:
            first = await anext(reading)
            await asyncio.to_thread(eventually, lambda: reading._ahead > 4 << 20)  # from here on it reads no more
            await asyncio.sleep(0.1)
            assert reading._ahead < 10 << 20
            rest = sum([len(piece.data) async for piece in reading])
        assert len(first.data) + rest == 40_000_000

    with_client(work)


def test_a_cancelled_wait_is_given_up_and_the_rest_goes_on(instance: Path) -> None:
    async def work(hf: AsyncClient) -> None:
        process = await hf.run("sleep 60")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await hf.wait(process.id)
        assert (await hf.inspect(process.id)).status == "running"

    with_client(work)


def test_calls_survive_the_death_of_the_daemon(instance: Path) -> None:
    async def work(hf: AsyncClient) -> None:
        process = await hf.run("for i in $(seq 1 40); do echo $i; sleep 0.02; done; exit 6")
        waiting = asyncio.create_task(hf.wait(process.id))
        following = asyncio.create_task(_collect(hf, process.id))
        began = time.monotonic()
        for _ in range(2):
            os.kill((await hf.status())["pid"], signal.SIGKILL)
            await hf.inspect(process.id)
        assert (await waiting).exit_code == 6
        assert await following == b"".join(b"%d\n" % n for n in range(1, 41))
        assert time.monotonic() - began < 30

    with_client(work)


async def _collect(hf: AsyncClient, process: str) -> bytes:
    return b"".join([piece.data async for piece in hf.follow(process)])


def test_both_clients_have_the_same_verbs() -> None:
    def verbs(kind: type) -> set[str]:
        return {name for name in vars(kind) if not name.startswith("_")}

    assert verbs(holdfast.Client) - verbs(AsyncClient) == {"open_link"}
    assert verbs(AsyncClient) <= verbs(holdfast.Client)
