"""A receiver for the test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.sinks.receiver import Receiver, receiving


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as found:
        yield found
