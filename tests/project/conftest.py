"""For tests that need an instance, but none of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast
from holdfast.client.sync import Client
from tests.support import end_instance


@pytest.fixture(scope="module")
def instance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An instance that the tests of a module share, in their environment."""
    home = tmp_path_factory.mktemp("instance") / "home"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOLDFAST_HOME", str(home))
        patch.delenv("HOLDFAST_SESSION", raising=False)
        yield home
        end_instance(str(home))


@pytest.fixture
def client(instance: Path) -> Iterator[Client]:
    """A client; nothing of one test runs in the next."""
    with holdfast.connect() as client:
        yield client
        client.kill(all=True, grace=0.2)
