"""What all providers have in common, by their real SDKs, against servers of the tests."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.places.clouds import CloudPlace
from tests.contracts.clouds import cloud, cloud_backend, cloud_site, new_server
from tests.contracts.staged import StagedPlace, until_gone
from tests.places.clouds.opening import opened


@pytest.fixture(
    scope="module", params=["e2b", *(pytest.param(one, marks=pytest.mark.full) for one in ("modal", "daytona"))]
)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def shared(kind: str) -> Iterator[Any]:
    server = new_server(kind)
    yield server
    server.close()


@pytest.fixture
def server(shared: Any) -> Iterator[Any]:
    yield shared
    shared.reset()


@pytest.mark.full
def test_a_sandbox_that_was_ended_is_gone_and_then_made_anew(kind: str, server: Any, tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(kind, server, tmp_path) as place:
            (await place.connect()).close()
            (before,) = server.sandboxes
            await asyncio.to_thread(server.end, before)
            assert before in str(await until_gone(place))
            (await place.connect()).close()
            assert list(server.sandboxes) != [before]

    asyncio.run(work())


@pytest.mark.full
def test_a_service_that_is_down_is_no_end(kind: str, server: Any, tmp_path: Path) -> None:
    staged = StagedPlace(cloud(kind, server), tmp_path)
    try:
        process = staged.start("sh", "-c", "echo begin; read x; echo got $x; exit 7", stdin=True)
        staged.until(lambda: b"begin\n" in staged.output(process))
        (sandbox,) = server.sandboxes
        hellos = len(staged.hellos)
        server.trouble = 502
        assert isinstance(staged.place, CloudPlace)
        staged.run(staged.place.link.open()).lose("the test cuts it")
        staged.until(lambda: "relay-unreachable" in staged.notes)
        server.trouble = None
        staged.until(lambda: len(staged.hellos) > hellos)
        assert list(server.sandboxes) == [sandbox]
        staged.write(process, b"it\n")
        assert staged.report_at_end(process)["exit"]["code"] == 7
        staged.until(lambda: staged.output(process) == b"begin\ngot it\n")
    finally:
        staged.close()


@pytest.mark.full
def test_sandboxes_are_listed_by_their_labels_and_ended(kind: str, server: Any, tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(kind, server, tmp_path) as place:
            (await place.connect()).close()
            backend = cloud_backend(kind)(kind, server.options)
            environ = cloud_site(tmp_path, server.environ).environ
            assert await backend.sandboxes("another instance", environ) == []
            (found,) = await backend.sandboxes(str(tmp_path), environ)
            assert (found.key, found.name, found.is_up) == (place.key, next(iter(server.sandboxes)), True)
            await backend.remove(found, environ)
            await backend.remove(found, environ)  # also where it is gone
            assert server.sandboxes == {}

    asyncio.run(work())


@pytest.mark.full
def test_the_key_is_in_no_command_line(kind: str, server: Any, tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(kind, server, tmp_path) as place:
            (await place.connect()).close()
            key = server.key_file.read_bytes().strip().rpartition(b":")[2]
            for pid in filter(str.isdigit, os.listdir("/proc")):
                try:
                    words = Path("/proc", pid, "cmdline").read_bytes() + Path("/proc", pid, "environ").read_bytes()
                except OSError:
                    continue
                assert key not in words

    asyncio.run(work())
