"""Tools of a session of the test's own, on an instance that the tests of a module share."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tools.model import Model

_numbers = itertools.count()


@pytest.fixture
def model(instance: Path, tmp_path: Path) -> Iterator[Model]:
    """A model that calls the tools, beginning in the test's own directory."""
    with Model(f"chat-{next(_numbers)}", str(tmp_path)) as model:
        yield model
