from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.keeper.driver import Family


@pytest.fixture
def family(tmp_path: Path) -> Iterator[Family]:
    family = Family(tmp_path)
    yield family
    family.close()


@pytest.fixture(params=["cgroup", "proc"])
def contained(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Family]:
    """With a cgroup for each command where the machine has them, and without."""
    family = Family(tmp_path, **({"HOLDFAST_NO_CGROUP": "1"} if request.param == "proc" else {}))
    yield family
    family.close()
