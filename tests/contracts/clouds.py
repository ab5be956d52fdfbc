"""What tests of cloud sandboxes need: for each provider, a server of the tests that its real SDK talks to."""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.places.backend import PlaceSpec, Site
from holdfast.places.clouds import CloudPlace
from holdfast.places.clouds.e2b import E2bBackend
from holdfast_keeper import protocol
from tests.places.clouds.e2b_server import E2bServer

if TYPE_CHECKING:
    from tests.contracts.staged import StagedPlace


@functools.cache
def shared_e2b() -> E2bServer:
    """One for the whole run; `close_clouds` ends it."""
    pytest.importorskip("e2b")
    return E2bServer()


def close_clouds() -> None:
    if shared_e2b.cache_info().currsize:
        shared_e2b().close()
        shared_e2b.cache_clear()


def cloud_site(home: Path, environ: dict[str, str], staged: StagedPlace | None = None) -> Site:
    return Site(
        directory=str(home / "mirror"),
        cache=str(Path(__file__).parents[2] / ".cache/runtimes"),
        instance=str(home),
        environ={"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), **environ},
        hello={"version": protocol.VERSION, "log_total": None, "revive": None},
        note=lambda event, **_: staged.notes.append(event) if staged is not None else None,
        running=lambda: staged.processes if staged is not None else (),
    )


def e2b(staged: StagedPlace, server: E2bServer | None = None, **options: Any) -> CloudPlace:
    """A sandbox whose processes are on this machine."""
    server = server or shared_e2b()
    backend = E2bBackend("e2b", {**server.options, **options})
    staged.holds_here = False
    place = backend.open(
        PlaceSpec("e2b", "", backend.check_options({})), cloud_site(staged.home, server.environ, staged)
    )
    staged.on_close = place.discard
    return place
