from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.client.sync import Client, connect
from tests.support import eventually, processes_of


@pytest.fixture(scope="session", autouse=True)
def _has_bubblewrap() -> None:
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")


@pytest.fixture
def hf(home: Path) -> Iterator[Client]:
    with connect("tests") as client:
        yield client
        client.kill(all=True, grace=0.1)
        client.stop_daemon()
    eventually(lambda: not processes_of(str(home)))


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """The directory of the command."""
    work = tmp_path / "work"
    work.mkdir()
    return work
