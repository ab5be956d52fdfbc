"""Sandboxes of Modal: its real SDK, and a server of the tests. What all places have in common is in tests/contracts."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("modal")

from holdfast.errors import BadValue
from holdfast.places.backend import PlaceSpec
from holdfast.places.base import PlaceGone
from holdfast.places.clouds import CloudFailed, CloudPlace
from holdfast.places.clouds.modal import ModalBackend
from tests.contracts.clouds import cloud_site, modal
from tests.contracts.staged import StagedPlace
from tests.places.clouds.modal_server import SECRET, TOKEN, ModalServer


@pytest.fixture(scope="module")
def shared() -> Iterator[ModalServer]:
    server = ModalServer()
    yield server
    server.close()


@pytest.fixture
def server(shared: ModalServer) -> Iterator[ModalServer]:
    yield shared
    shared.is_down = False
    for name in list(shared.sandboxes):
        shared.end(name)
    shared.created.clear()


@asynccontextmanager
async def opened(
    server: ModalServer, home: Path, environ: dict[str, str] | None = None, **options: Any
) -> AsyncIterator[CloudPlace]:
    """A place as a daemon has it; afterwards the daemon is away, and the sandbox stays."""
    backend = ModalBackend("modal", {**server.options, **options})
    site = cloud_site(home, {**server.environ, **(environ or {})})
    place = backend.open(PlaceSpec("modal", "", backend.check_options({})), site)
    try:
        yield place
    finally:
        peer = place.link._peer
        place.close()
        if peer is not None:
            await peer.close()


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


async def ended(place: CloudPlace) -> PlaceGone:
    """How the place ends. While it does not end, the connection is opened again and again, as the daemon does it."""
    while True:
        try:
            (await place.connect()).close()
        except PlaceGone as found:
            return found
        except Exception:  # noqa: BLE001 - the sandbox is about to end
            pass
        await asyncio.sleep(0.02)


def test_the_sandbox_is_made_as_the_options_say_and_used_again(server: ModalServer, tmp_path: Path) -> None:
    async def work() -> None:
        options: dict[str, Any] = {"image": "python:3.12", "timeout": "2m", "lifetime": "3h", "cpus": 2, "memory": 512}
        for _ in range(2):
            async with opened(server, tmp_path, **options, internet=False) as place:
                (await place.connect()).close()
        (request,) = server.created
        definition = request.definition
        assert (definition.timeout_secs, definition.idle_timeout_secs) == (10800, 120)
        assert (definition.resources.milli_cpu, definition.resources.memory_mb) == (2000, 512)
        assert len(server.sandboxes) == 1
        (sandbox,) = server.sandboxes.values()
        assert sandbox.tags["holdfast.place"] == place.key

    run(work())


def test_a_sandbox_that_was_ended_is_gone_and_then_made_anew(server: ModalServer, tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(server, tmp_path) as place:
            (await place.connect()).close()
            (before,) = server.sandboxes
            await asyncio.to_thread(server.end, before)
            assert before in str(await ended(place))
            (await place.connect()).close()
            assert list(server.sandboxes) != [before]

    run(work())


def test_a_service_that_is_down_is_no_end(server: ModalServer, tmp_path: Path) -> None:
    staged = StagedPlace(lambda staged: modal(staged, server), tmp_path)
    try:
        process = staged.start("sh", "-c", "echo begin; read x; echo got $x; exit 7", stdin=True)
        staged.until(lambda: b"begin\n" in staged.output(process))
        (sandbox,) = server.sandboxes
        hellos = len(staged.hellos)
        server.is_down = True
        assert isinstance(staged.place, CloudPlace)
        staged.run(staged.place.link.open()).lose("the test cuts it")
        staged.until(lambda: "relay-unreachable" in staged.notes)
        server.is_down = False
        staged.until(lambda: len(staged.hellos) > hellos)
        assert list(server.sandboxes) == [sandbox]
        staged.write(process, b"it\n")
        assert staged.report_at_end(process)["exit"]["code"] == 7
        staged.until(lambda: staged.output(process) == b"begin\ngot it\n")
    finally:
        staged.close()


def test_sandboxes_are_listed_by_their_tags_and_ended(server: ModalServer, tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(server, tmp_path) as place:
            (await place.connect()).close()
            backend = ModalBackend("modal", server.options)
            environ = cloud_site(tmp_path, server.environ).environ
            assert await backend.sandboxes("another instance", environ) == []
            (found,) = await backend.sandboxes(str(tmp_path), environ)
            assert (found.key, found.name, found.is_up) == (place.key, next(iter(server.sandboxes)), True)
            await backend.remove(found, environ)
            await backend.remove(found, environ)  # also where it is gone
            assert server.sandboxes == {}

    run(work())


# The token.


def test_the_token_may_come_from_the_configuration_of_the_sdk(server: ModalServer, tmp_path: Path) -> None:
    file = tmp_path / "modal.toml"
    file.write_text(f'[mine]\ntoken_id = "{TOKEN}"\ntoken_secret = "{SECRET}"\nactive = true\n')
    environ = {"MODAL_CONFIG_PATH": str(file)}
    state = run(ModalBackend("modal", {}).state({**server.environ, **environ}))
    assert (state.state, state.detail[:6]) == ("ready", "modal ")

    async def work() -> None:
        async with opened(server, tmp_path, environ, api_key_file=str(server.key_file)) as place:
            place._options["api_key_file"] = None
            (await place.connect()).close()

    run(work())


def test_a_token_that_is_missing_or_wrong_is_named_in_one_line(server: ModalServer, tmp_path: Path) -> None:
    async def failure(text: str) -> str:
        file = tmp_path / "key"
        file.touch(0o600)
        file.write_text(text)
        async with opened(server, tmp_path, api_key_file=str(file)) as place:
            with pytest.raises(CloudFailed) as failed:
                await place.open_relay()
            assert "\n" not in str(failed.value)
            return str(failed.value)

    assert "a colon" in run(failure("ak-1"))
    assert "Token ID is malformed" in run(failure("ak-1:as-secret-of-the-test"))
    assert "secret-of-the-test" not in run(failure("ak-1:as-secret-of-the-test"))
    state = run(ModalBackend("modal", {}).state({"HOME": str(tmp_path)}))
    assert (state.state, state.detail) == ("unusable", "needs a token (modal token new)")


def test_the_token_is_in_no_command_line(server: ModalServer, tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(server, tmp_path) as place:
            (await place.connect()).close()
            for pid in filter(str.isdigit, os.listdir("/proc")):
                try:
                    words = Path("/proc", pid, "cmdline").read_bytes() + Path("/proc", pid, "environ").read_bytes()
                except OSError:
                    continue
                assert SECRET.encode() not in words

    run(work())


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"template": "base"}, "has no option 'template'"),
        ({"image": "-v"}, "image .* must be the name of an image"),
        ({"lifetime": "2d"}, "lifetime .* must be a time"),
        ({"cpus": True}, "cpus .* must be a number of processors"),
        ({"memory": 1}, "memory .* must be a number of mebibytes"),
        ({"memory": float("nan")}, "memory .* must be a number of mebibytes"),
        ({"gpu": "A 100"}, "gpu .* must be a GPU"),
        ({"app": "\x1b[2J"}, "app .* must be the name of an app"),
        ({"internet": "no"}, "internet .* must be true or false"),
    ],
)
def test_a_wrong_option_is_refused_by_name(options: dict[str, Any], text: str) -> None:
    with pytest.raises(BadValue, match=text) as refused:
        ModalBackend("cloud", options).check_options({})
    assert "\n" not in refused.value.message and refused.value.message.isprintable()
