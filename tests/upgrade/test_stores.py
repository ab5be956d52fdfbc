"""Every store that a release left behind still opens, and says what it said."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from holdfast.model.lifecycle import end_signal, exit_code, reason, stop_of
from holdfast.model.process import HeldProcess, ProcessId
from holdfast.store.db import migrations, open_db
from holdfast.store.store import open_store
from tests.upgrade.make_store import STORES, processes

RELEASED = sorted(STORES.glob("v*.db"))


def opened(path: Path) -> dict[str, HeldProcess]:
    async def read() -> list[HeldProcess]:
        found = await open_store(str(path), print)
        await found.store.close()
        assert found.set_aside is None
        return found.found

    return {process.id: process for process in asyncio.run(read())}


@pytest.mark.parametrize("released", RELEASED, ids=lambda path: path.stem)
def test_a_released_store_opens_and_is_brought_up_to_date(released: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(released, tmp_path / "store.db"))
    found = opened(path)
    assert len(found) == 3
    connection, _ = open_db(str(path))
    assert connection.execute("PRAGMA user_version").fetchone() == (migrations()[-1][0],)
    connection.close()


@pytest.mark.parametrize("released", RELEASED, ids=lambda path: path.stem)
def test_it_says_what_it_said(released: Path, tmp_path: Path) -> None:
    found = opened(Path(shutil.copy(released, tmp_path / "store.db")))
    server, build, job = (found[ProcessId(f"proc_00000000000{digit}")] for digit in "abc")
    assert (server.meta.name, server.meta.command, server.pid, server.is_active) == ("web", "npm run dev", 4711, True)
    assert (server.deadline_at, server.cols, server.rows) == (1_700_003_600.5, 100, 40)
    assert (reason(build.state), exit_code(build.state), build.meta.argv) == ("exited", 2, ("make", "-j4", "all"))
    assert [stream.first for stream in build.streams.values()] == [4096, 0]
    assert (reason(job.state), end_signal(job.state), job.meta.session) == ("killed", 9, "ünïcode · 7")
    assert (stop := stop_of(job.state)) is not None
    assert (stop.by, stop.forced) == ("chat-42", True)


def test_the_newest_store_is_among_them(tmp_path: Path) -> None:
    """A change of the schema comes with the store of the release before it."""
    versions = set()
    for released in RELEASED:
        content = released.read_bytes()
        versions.add(int.from_bytes(content[60:64], "big"))
    assert versions >= set(range(1, migrations()[-1][0]))


def test_a_store_written_today_reads_the_same(tmp_path: Path) -> None:
    from tests.upgrade.make_store import write

    asyncio.run(write(tmp_path / "store.db"))
    assert list(opened(tmp_path / "store.db").values()) == processes()
