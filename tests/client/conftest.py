"""For tests that need an instance, but none of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast
from tests.support import end_instance


@pytest.fixture(scope="module", params=["socket", "http"])
def instance(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Path]:
    """An instance that the tests of a module share, in their environment: on its socket, and again over HTTP."""
    home = tmp_path_factory.mktemp("instance") / "home"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOLDFAST_HOME", str(home))
        patch.delenv("HOLDFAST_SESSION", raising=False)
        patch.delenv("HOLDFAST_URL", raising=False)
        if request.param == "http":
            with holdfast.connect() as client:
                patch.setenv("HOLDFAST_URL", client.http("open")["url"])
        yield home
        patch.delenv("HOLDFAST_URL", raising=False)
        end_instance(str(home))
