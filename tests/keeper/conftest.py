from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.keeper.driver import KeeperPair


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[KeeperPair]:
    pair = KeeperPair(tmp_path)
    yield pair
    pair.close()


@pytest.fixture(params=["cgroup", "proc"])
def contained(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[KeeperPair]:
    """With a cgroup for each command where the machine has them, and without."""
    pair = KeeperPair(tmp_path, **({"HOLDFAST_NO_CGROUP": "1"} if request.param == "proc" else {}))
    yield pair
    pair.close()
