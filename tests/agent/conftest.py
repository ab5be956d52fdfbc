"""An endpoint and a session for the tests of agents."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.endpoint import Endpoint
from tests.agent.stage import Conversation, configure


@pytest.fixture
def endpoint(home: Path) -> Iterator[Endpoint]:
    with Endpoint() as endpoint:
        configure(home, endpoint)
        yield endpoint


@pytest.fixture
def talk(home: Path, endpoint: Endpoint) -> Conversation:
    return Conversation(home)
