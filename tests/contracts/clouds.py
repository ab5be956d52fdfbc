"""What tests of cloud sandboxes need: for each provider, a server of the tests that its real SDK talks to."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.places.backend import PlaceSpec, Site
from holdfast.places.clouds import CloudBackend, CloudPlace
from holdfast.places.clouds.daytona import DaytonaBackend
from holdfast.places.clouds.e2b import E2bBackend
from holdfast.places.clouds.modal import ModalBackend
from holdfast_keeper import protocol

#: Names the provider whose service is to be used instead of the server of the tests.
REAL = "HOLDFAST_TEST_REAL"

if TYPE_CHECKING:
    from tests.contracts.staged import StagedPlace

#: Of each provider: its backend, the package that the server of the tests needs, and that server.
PROVIDERS: dict[str, tuple[type[CloudBackend], str, str]] = {
    "e2b": (E2bBackend, "e2b", "tests.places.clouds.e2b_server:E2bServer"),
    "modal": (ModalBackend, "modal", "tests.places.clouds.modal_server:ModalServer"),
    "daytona": (DaytonaBackend, "daytona", "tests.places.clouds.daytona_server:DaytonaServer"),
}
_running: dict[str, Any] = {}


def cloud_backend(kind: str) -> type[CloudBackend]:
    return PROVIDERS[kind][0]


def new_server(kind: str) -> Any:
    """The test is skipped where the SDK is not installed."""
    _, package, server = PROVIDERS[kind]
    pytest.importorskip(package)
    module, _, name = server.partition(":")
    return getattr(importlib.import_module(module), name)()


def shared_server(kind: str) -> Any:
    """One for the whole run; `close_clouds` ends it."""
    if kind not in _running:
        _running[kind] = new_server(kind)
    return _running[kind]


def close_clouds() -> None:
    while _running:
        _running.popitem()[1].close()


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


def cloud(kind: str, server: Any = None, **options: Any) -> Callable[[StagedPlace], CloudPlace]:
    """Makes a sandbox whose processes are on this machine; one of the service for `python -m tests.contracts KIND`."""

    def make(staged: StagedPlace) -> CloudPlace:
        backend = cloud_backend(kind)
        if server is None and os.environ.get(REAL) == kind:
            environ = {name: value for name, value in os.environ.items() if name.startswith(f"{kind.upper()}_")}
            _use_tools_of_the_sandbox(staged)
            return _open(staged, backend(kind, options), environ)
        used = server or shared_server(kind)
        return _open(staged, backend(kind, {**used.options, **options}), used.environ)

    return make


def _open(staged: StagedPlace, backend: CloudBackend, environ: dict[str, str]) -> CloudPlace:
    staged.holds_here = False
    spec = PlaceSpec(backend.name, "", backend.check_options({}), backend.name)
    place = backend.open(spec, cloud_site(staged.home, environ, staged))
    staged.on_close = place.discard
    return place


def _use_tools_of_the_sandbox(staged: StagedPlace) -> None:
    """It must have python3 and kill."""
    staged.python = ["python3"]
    staged.environ = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
    staged.kill = lambda pid: staged.start("kill", "-9", str(pid))
