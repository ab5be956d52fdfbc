"""The kinds of backends: those of holdfast, and those of installed packages."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from holdfast.errors import Unsupported
from holdfast.places.backend import Backend

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

#: The entry point group of packages that add kinds.
GROUP = "holdfast.backends"

BUILT_IN = {
    "podman": "holdfast.places.backends.container:PodmanBackend",
    "docker": "holdfast.places.backends.container:DockerBackend",
    "apptainer": "holdfast.places.backends.apptainer:ApptainerBackend",
    "ssh": "holdfast.places.backends.ssh:SshBackend",
    "modal": "holdfast.places.clouds.modal:ModalBackend",
    "daytona": "holdfast.places.clouds.daytona:DaytonaBackend",
    "e2b": "holdfast.places.clouds.e2b:E2bBackend",
}


def names() -> list[str]:
    return [*BUILT_IN, *(name for name in _installed() if name not in BUILT_IN)]


def find(kind: str) -> type[Backend] | None:
    """The class of a kind; None where there is no such kind. Raises Unsupported when it cannot be loaded."""
    if kind in BUILT_IN:
        module, _, name = BUILT_IN[kind].partition(":")
        found: type[Backend] = getattr(import_module(module), name)
        return found
    entry = _installed().get(kind)
    if entry is None:
        return None
    try:
        loaded = entry.load()
    except Exception as failed:  # code of another package, which may fail in any way
        raise Unsupported(
            f"the backend {kind} cannot be loaded: {failed!r}", next=f"pip check {entry.value}"
        ) from failed
    if not (isinstance(loaded, type) and issubclass(loaded, Backend)):
        raise Unsupported(f"{entry.value} is not a backend", next="holdfast docs backends")
    return loaded


def _installed() -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points  # takes as long as twenty modules: not at each start of the daemon

    return {entry.name: entry for entry in entry_points(group=GROUP)}
