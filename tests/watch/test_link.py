"""The watch worker: its replies, and what happens when it dies, hangs or is kept busy."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from holdfast.daemon.workers.watch import WatchBroken, WatchScan, WatchWorker
from holdfast.errors import BadValue
from holdfast.model.process import ProcessId
from holdfast_keeper import bundle
from tests.logs.written import ID, Written
from tests.support import eventually

#: Slow on SLOW_LINE with any engine.
SLOW = r"(?:(?:a|b|c|d|e)[^\n]{1,200}){4}Q"
SLOW_LINE = b"abcdefghij" * 600 + b"\n"


@asynccontextmanager
async def linked(place: Path) -> AsyncIterator[WatchWorker]:
    link = WatchWorker(str(place), lambda _: str(place), dict(os.environ))
    try:
        yield link
    finally:
        await link.aclose()


async def scan(
    link: WatchWorker, literals: str | tuple[str, ...] = (), patterns: str | tuple[str, ...] = (), **how: object
) -> WatchScan:
    literals = (literals,) if isinstance(literals, str) else literals
    patterns = (patterns,) if isinstance(patterns, str) else patterns
    asked = {"process_id": ProcessId(ID), "stream": "out", "after": 0, "upto": None, "is_final": False, **how}
    return await link.scan(literals=literals, patterns=patterns, **asked)  # type: ignore[arg-type]


async def scan_all(
    link: WatchWorker, literals: tuple[str, ...], patterns: tuple[str, ...] = (), after: int = 0
) -> list[int]:
    told = []
    while True:
        found = await scan(link, literals, patterns, after=after)
        told += [match.offset for match in found.matches]
        assert not found.more
        if found.complete:
            return told
        after = found.upto


def run(place: Path, work: Callable[[WatchWorker], Awaitable[None]]) -> None:
    async def main() -> None:
        async with linked(place) as link:
            await work(link)

    asyncio.run(main())


def test_a_text_that_is_written_in_two_parts_matches_once(tmp_path: Path) -> None:
    written = Written(tmp_path, 1 << 20)

    async def work(link: WatchWorker) -> None:
        written.append(b"one\nREA")
        assert await scan(link, "READY") == WatchScan([], 7, True)
        written.append(b"DY")
        found = await scan(link, "READY", after=7)
        assert [(match.offset, match.end, match.output) for match in found.matches] == [(4, 9, "READY")]
        written.append(b" and READY\nREADY\n")
        found = await scan(link, "READY", after=9)
        assert [(match.offset, match.end, match.output) for match in found.matches] == [(20, 25, "READY")]
        for match in found.matches:
            assert written.content[match.offset : match.end].decode() == match.output

    run(tmp_path, work)


def test_the_end_of_the_output_ends_the_last_line(tmp_path: Path) -> None:
    written = Written(tmp_path, 10)
    written.append(b"x\nlisten\xc3\xa9 now")

    async def work(link: WatchWorker) -> None:
        assert not (await scan(link, (), "now$")).matches
        found = await scan(link, (), "now$", upto=len(written.content), is_final=True)
        assert [(match.pattern, match.output) for match in found.matches] == [("now$", "listené now")]
        assert not (await scan(link, (), "now$", upto=8, is_final=True)).matches

    run(tmp_path, work)


def test_a_log_that_lost_its_head_is_scanned_from_its_first_byte(tmp_path: Path) -> None:
    written = Written(tmp_path, 8)
    written.append(b"READY xREADY\nREADY\nnever READY")
    written.drop_head(1)

    async def work(link: WatchWorker) -> None:
        found = await scan(link, (), ("^READY", "DY$"))
        assert [(match.offset, match.pattern) for match in found.matches] == [(8, "DY$"), (13, "^READY")]
        written.append(b"\n")
        assert [match.offset for match in (await scan(link, "READY", after=19)).matches] == [19]

    run(tmp_path, work)


def test_a_limited_number_of_matches_is_listed_and_the_rest_is_counted(tmp_path: Path) -> None:
    written = Written(tmp_path, 1 << 20)
    written.append(b"".join(b"line %d\n" % n for n in range(5000)))

    async def work(link: WatchWorker) -> None:
        told, after, newest = 0, 0, ""
        while after < len(written.content):
            found = await scan(link, "line", after=after)
            assert len(found.matches) <= 1000
            told, after, newest = told + len(found.matches) + found.more, found.upto, found.matches[-1].output
        assert (told, newest) == (5000, "line 4999")

    run(tmp_path, work)


def test_bad_patterns_are_refused(tmp_path: Path) -> None:
    async def work(link: WatchWorker) -> None:
        for patterns in (("(",), ("x" * 5000,), tuple(".{0,1000}x" * 8 + str(n) for n in range(30)), ("y",) * 101):
            with pytest.raises(BadValue):
                await scan(link, (), patterns)
        assert (await scan(link, "x")).complete

    run(tmp_path, work)


def test_a_worker_that_is_killed_is_restarted_and_no_match_is_lost(tmp_path: Path) -> None:
    written = Written(tmp_path, 64 << 20)
    written.append(b"".join(b"a line of output number %d\n" % n for n in range(400_000)))
    wanted = [written.content.index(b"%d777\n" % n) for n in range(1, 400)]

    async def work(link: WatchWorker) -> None:
        async def kill() -> None:
            for _ in range(6):
                await asyncio.sleep(0.06)
                if link.pid is not None:
                    os.kill(link.pid, signal.SIGKILL)

        killing = asyncio.create_task(kill())
        told = await scan_all(link, (), (r"\d777$",))
        await killing
        assert told == [written.content.rindex(b"\n", 0, at) + 1 for at in wanted]

    run(tmp_path, work)


def test_only_the_scan_that_the_worker_dies_over_is_given_up(tmp_path: Path) -> None:
    written = Written(tmp_path, 64 << 20)
    written.append(SLOW_LINE * 4000)
    other = tmp_path / bundle.LIVE / "proc_00000000000b"
    other.mkdir()
    Path(bundle.segment_path(str(other), "out", 0)).write_bytes(b"READY\n")

    async def work(link: WatchWorker) -> None:
        deaths: list[int] = []

        async def kill() -> None:
            while len(deaths) < 3:
                await asyncio.sleep(0.005)
                run = link._run
                if run is not None and run.pid not in deaths and [run.current[0]] == list(run.waiting):
                    deaths.append(run.pid)
                    os.kill(run.pid, signal.SIGSEGV)

        killing = asyncio.create_task(kill())
        with pytest.raises(WatchBroken):
            await scan(link, (), SLOW)
        await killing
        assert len(deaths) == 3
        found = await scan(link, "READY", process_id="proc_00000000000b")
        assert [match.output for match in found.matches] == ["READY"]

    run(tmp_path, work)


def test_a_worker_that_hangs_is_killed_and_its_scans_are_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = Written(tmp_path, 64 << 20)
    written.append(SLOW_LINE * 4000)
    monkeypatch.setattr(WatchWorker, "hang_timeout", 1.0)

    async def work(link: WatchWorker) -> None:
        slow = asyncio.create_task(scan(link, (), SLOW))
        while link._run is None or not link._run.current[0]:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        stopped = link.pid
        assert stopped is not None
        os.kill(stopped, signal.SIGSTOP)
        assert (await slow).upto > 0
        assert link.pid != stopped

    run(tmp_path, work)


def test_a_long_scan_does_not_delay_other_scans(tmp_path: Path) -> None:
    written = Written(tmp_path, 64 << 20)
    written.append(SLOW_LINE * 4000)
    others = []
    for n in range(20):
        directory = tmp_path / bundle.LIVE / f"proc_0000000000{n:02x}"
        directory.mkdir()
        Path(bundle.segment_path(str(directory), "out", 0)).write_bytes(b"READY\n")
        others.append(directory.name)

    async def work(link: WatchWorker) -> None:
        await scan(link, "READY", process_id=others[0])

        async def forever() -> None:
            after = 0
            while True:
                after = (await scan(link, (), SLOW, after=after)).upto

        flood = asyncio.create_task(forever())
        waits = []
        for other in others:
            await asyncio.sleep(0.01)
            begun = time.monotonic()
            assert (await scan(link, "READY", process_id=other)).matches
            waits.append(time.monotonic() - begun)
        flood.cancel()
        assert sorted(waits)[len(waits) // 2] < 0.5, waits

    run(tmp_path, work)


def test_a_worker_ends_when_its_daemon_dies(tmp_path: Path) -> None:
    program = (
        "import asyncio, os, sys\n"
        "from holdfast.daemon.workers.watch import WatchWorker\n"
        "async def main():\n"
        "    link = WatchWorker(sys.argv[1], lambda _: sys.argv[1], dict(os.environ))\n"
        "    await link.scan('proc_000000000000', 'out', ('x',), (), 0, None, False)\n"
        "    print(link.pid, flush=True)\n"
        "    os.kill(os.getpid(), 9)\n"
        "asyncio.run(main())\n"
    )
    dead = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, check=False)
    pid = int(dead.stdout)
    eventually(lambda: not os.path.exists(f"/proc/{pid}"))
