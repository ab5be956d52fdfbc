"""A client of the instance that a module's tests share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast
from holdfast.client.sync import Client


@pytest.fixture
def client(instance: Path) -> Iterator[Client]:
    """A client; nothing of one test runs in the next."""
    with holdfast.connect() as client:
        yield client
        client.kill(all=True, grace=0.2)
