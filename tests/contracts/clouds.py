"""What tests of cloud sandboxes need: for each provider, a server of the tests that its real SDK talks to."""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.places.backend import PlaceSpec, Site
from holdfast.places.clouds import CloudBackend, CloudPlace
from holdfast.places.clouds.e2b import E2bBackend
from holdfast.places.clouds.modal import ModalBackend
from holdfast_keeper import protocol
from tests.places.clouds.e2b_server import E2bServer

#: Names the provider whose service is to be used instead of the server of the tests.
REAL = "HOLDFAST_TEST_REAL"

if TYPE_CHECKING:
    from tests.contracts.staged import StagedPlace
    from tests.places.clouds.modal_server import ModalServer


@functools.cache
def shared_e2b() -> E2bServer:
    """One for the whole run; `close_clouds` ends it."""
    pytest.importorskip("e2b")
    return E2bServer()


@functools.cache
def shared_modal() -> ModalServer:
    pytest.importorskip("modal")
    from tests.places.clouds.modal_server import ModalServer

    return ModalServer()


def close_clouds() -> None:
    for shared in (shared_e2b, shared_modal):
        if shared.cache_info().currsize:
            shared().close()
            shared.cache_clear()


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
    """A sandbox whose processes are on this machine; one of the service for `python -m tests.contracts e2b`."""
    if server is None and os.environ.get(REAL) == "e2b":
        environ = {name: value for name, value in os.environ.items() if name.startswith("E2B_")}
        _use_tools_of_the_sandbox(staged)
        return _open(staged, E2bBackend("e2b", options), environ)
    server = server or shared_e2b()
    return _open(staged, E2bBackend("e2b", {**server.options, **options}), server.environ)


def modal(staged: StagedPlace, server: ModalServer | None = None, **options: Any) -> CloudPlace:
    """The same, by the SDK of Modal."""
    server = server or shared_modal()
    return _open(staged, ModalBackend("modal", {**server.options, **options}), server.environ)


def _open(staged: StagedPlace, backend: CloudBackend, environ: dict[str, str]) -> CloudPlace:
    staged.holds_here = False
    spec = PlaceSpec(backend.name, "", backend.check_options({}))
    place = backend.open(spec, cloud_site(staged.home, environ, staged))
    staged.on_close = place.discard
    return place


def _use_tools_of_the_sandbox(staged: StagedPlace) -> None:
    """It must have python3 and kill."""
    staged.python = ["python3"]
    staged.environ = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
    staged.kill = lambda pid: staged.start("kill", "-9", str(pid))
