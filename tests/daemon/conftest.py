"""A client of an instance of the test's own: a real daemon and a real keeper behind it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.client.sync import Client, connect
from tests.support import eventually, processes_of


@pytest.fixture
def hf(home: Path) -> Iterator[Client]:
    with connect("tests") as client:
        yield client
        client.kill(all=True, grace=0.1)
        client.stop_daemon()
    eventually(lambda: not processes_of(str(home)))


@pytest.fixture
def config(home: Path) -> Path:
    """The instance's config file, to be written before the client connects."""
    home.mkdir(mode=0o700, exist_ok=True)
    return home / "config.toml"
