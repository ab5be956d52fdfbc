"""A place in a sandbox of a provider, as a daemon has it, without a daemon."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from holdfast.places.backend import PlaceSpec
from holdfast.places.clouds import CloudFailed, CloudPlace
from tests.contracts.clouds import cloud_backend, cloud_site
from tests.contracts.staged import leave


@asynccontextmanager
async def opened(
    kind: str, server: Any, home: Path, environ: dict[str, str] | None = None, **options: Any
) -> AsyncIterator[CloudPlace]:
    """Afterwards the daemon is away, and the sandbox stays."""
    backend = cloud_backend(kind)(kind, {**server.options, **options})
    site = cloud_site(home, {**server.environ, **(environ or {})})
    place = backend.open(PlaceSpec(kind, "", backend.check_options({}), kind), site)
    try:
        yield place
    finally:
        await leave(place)


async def failure(kind: str, server: Any, home: Path, **options: Any) -> str:
    """The one line that says why a place cannot be opened."""
    async with opened(kind, server, home, **options) as place:
        with pytest.raises(CloudFailed) as failed:
            await place.open_relay()
        assert str(failed.value).isprintable()
        return str(failed.value)


def key_file(directory: Path, text: str) -> str:
    file = directory / "key"
    file.touch(0o600)
    file.write_text(text)
    return str(file)
