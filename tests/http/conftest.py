"""An instance of the test's own, asked over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast
from tests.http.asking import Api
from tests.support import end_instance


@pytest.fixture(scope="module")
def shared_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One instance for the tests of a module."""
    home = tmp_path_factory.mktemp("instance") / "home"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text("wait_limit = 5.0\n")
    yield home
    end_instance(str(home))


@pytest.fixture(params=["socket", "tcp"])
def api(shared_home: Path, request: pytest.FixtureRequest) -> Iterator[Api]:
    """On the socket, and again on TCP."""
    with holdfast.connect(home=shared_home, session="tests") as client:
        api = Api(client)
        if request.param == "tcp":
            api.open_tcp()
        yield api
        client.kill(all=True, grace=0.1)


@pytest.fixture
def tcp(shared_home: Path) -> Iterator[Api]:
    with holdfast.connect(home=shared_home, session="tests") as client:
        api = Api(client)
        api.open_tcp()
        yield api
        client.kill(all=True, grace=0.1)


@pytest.fixture
def own(home: Path) -> Iterator[Api]:
    """An instance that the test may break."""
    with holdfast.connect(session="tests") as client:
        api = Api(client)
        api.open_tcp()
        yield api
