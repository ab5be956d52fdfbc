"""Sandboxes of Modal: its real SDK, and a server of the tests. What all places have in common is in tests/contracts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("modal")

from holdfast.errors import BadValue
from holdfast.places.clouds.modal import ModalBackend
from tests.places.clouds.modal_server import SECRET, TOKEN, ModalServer
from tests.places.clouds.opening import failure, key_file, opened


@pytest.fixture(scope="module")
def shared() -> Iterator[ModalServer]:
    server = ModalServer()
    yield server
    server.close()


@pytest.fixture
def server(shared: ModalServer) -> Iterator[ModalServer]:
    yield shared
    shared.reset()


@pytest.mark.full
def test_the_sandbox_is_made_as_the_options_say_and_used_again(server: ModalServer, tmp_path: Path) -> None:
    async def work() -> None:
        options: dict[str, Any] = {"image": "python:3.12", "timeout": "2m", "lifetime": "3h", "cpus": 2, "memory": 512}
        for _ in range(2):
            async with opened("modal", server, tmp_path, **options, internet=False) as place:
                (await place.connect()).close()
        (request,) = server.created
        definition = request.definition
        assert (definition.timeout_secs, definition.idle_timeout_secs) == (10800, 120)
        assert (definition.resources.milli_cpu, definition.resources.memory_mb) == (2000, 512)
        assert len(server.sandboxes) == 1
        (sandbox,) = server.sandboxes.values()
        assert sandbox.labels["holdfast.place"] == place.key

    asyncio.run(work())


# The token.


@pytest.mark.full
def test_the_token_may_come_from_the_configuration_of_the_sdk(server: ModalServer, tmp_path: Path) -> None:
    file = tmp_path / "modal.toml"
    file.write_text(f'[mine]\ntoken_id = "{TOKEN}"\ntoken_secret = "{SECRET}"\nactive = true\n')
    environ = {"MODAL_CONFIG_PATH": str(file)}
    state = asyncio.run(ModalBackend("modal", {}).state({**server.environ, **environ}))
    assert (state.state, state.detail[:6]) == ("ready", "modal ")

    async def work() -> None:
        async with opened("modal", server, tmp_path, environ, api_key_file=str(server.key_file)) as place:
            place._options["api_key_file"] = None
            (await place.connect()).close()

    asyncio.run(work())


@pytest.mark.full
def test_a_token_that_is_missing_or_wrong_is_named_in_one_line(server: ModalServer, tmp_path: Path) -> None:
    def failed(text: str) -> str:
        return asyncio.run(failure("modal", server, tmp_path, api_key_file=key_file(tmp_path, text)))

    assert "a colon" in failed("ak-1")
    assert "Token ID is malformed" in failed("ak-1:as-secret-of-the-test")
    assert "secret-of-the-test" not in failed("ak-1:as-secret-of-the-test")
    state = asyncio.run(ModalBackend("modal", {}).state({"HOME": str(tmp_path)}))
    assert (state.state, state.detail) == ("unusable", "needs a token (modal token new)")


@pytest.mark.full
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
