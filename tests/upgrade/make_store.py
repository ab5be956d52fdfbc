"""Writes a store as this release leaves it behind: `python -m tests.upgrade.make_store`, once for each release.

What is written stays in `stores/` for good, so that every later release is shown to open it.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from holdfast.model.lifecycle import Ended, Exited, Running, Signaled, StopRequest
from holdfast.model.process import HeldProcess, Leftover, Meta, ProcessId, StreamExtent
from holdfast.store.store import open_store
from holdfast.version import VERSION

STORES = Path(__file__).parent / "stores"


def processes() -> list[HeldProcess]:
    """One that runs, one that exited, one that was killed."""
    server = Meta(
        ProcessId("proc_00000000000a"),
        command="npm run dev",
        argv=("/usr/bin/bash", "-c", "npm run dev"),
        cwd="/srv/app",
        session="chat-42",
        requested_at=1_700_000_000.25,
        name="web",
        task="preview",
        lifetime="session",
        pty=True,
        cols=120,
        rows=30,
        log_cap=1 << 28,
        deadline=3600.0,
        deadline_action="notify",
    )
    build = Meta(
        ProcessId("proc_00000000000b"),
        command="make -j4 'all'",
        argv=("make", "-j4", "all"),
        cwd="/srv/app",
        session="chat-42",
        requested_at=1_700_000_100.0,
        split=True,
        log_cap=1 << 20,
    )
    job = Meta(
        ProcessId("proc_00000000000c"),
        command="sleep 600",
        argv=("/usr/bin/bash", "-c", "sleep 600"),
        cwd="/",
        session="ünïcode · 7",
        requested_at=1_700_000_200.0,
        stdin=True,
        log_cap=1 << 28,
    )
    return [
        HeldProcess(server, Running(4711, 1_700_000_000.5), {"out": StreamExtent(0, 10)}, cols=100, rows=40),
        HeldProcess(
            build,
            Ended(Exited(2), 1_700_000_150.0, 4712, 1_700_000_100.5, 1_700_000_150.0),
            {"out": StreamExtent(4096, 9000, True), "err": StreamExtent(0, 12, True)},
            exit_offset=9000,
            leftovers=(Leftover(4800, 123456),),
        ),
        HeldProcess(
            job,
            Ended(
                Signaled(9),
                1_700_000_300.0,
                4713,
                1_700_000_200.5,
                1_700_000_300.0,
                StopRequest("chat-42", "killed", 1_700_000_290.0, forced=True),
            ),
            {"out": StreamExtent(0, 0, True)},
            exit_offset=0,
        ),
    ]


async def write(path: Path) -> None:
    opened = await open_store(str(path), print)
    for process in processes():
        await opened.store.save(process)
    await opened.store.close()


if __name__ == "__main__":
    target = STORES / f"v{VERSION}.db"
    if target.exists():
        raise SystemExit(f"{target} is there already: a released store does not change")
    asyncio.run(write(target))
