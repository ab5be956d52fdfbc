"""A backend of another package, as small as one can be: a second keeper on this machine, in a directory of its own."""

import os
import socket

from holdfast.errors import BadValue
from holdfast.places.backend import Backend, BackendState
from holdfast.places.base import PlaceGone
from holdfast.places.local import LocalPlace


class NeighbourPlace(LocalPlace):
    """It exists for as long as the file `signpost` does; while there is a file `barrier`, it cannot be reached."""

    name = "neighbour"
    refused = {"on_boot": "it does not come back after a boot"}  # noqa: RUF012
    idle_limit = 1.0

    def __init__(self, spec, site):  # type: ignore[no-untyped-def]
        super().__init__(
            site.directory,
            {**site.environ, "FLOWERS": spec.options["flowers"]},
            hello=site.hello,
            note=site.note,
            running=site.running,
            login_file=f"{os.path.dirname(site.directory)}/login-env.json",
            outage=0.5,
        )
        self.default_directory = "/"
        self._signpost = spec.options["signpost"]
        self._was_there = False

    async def connect(self) -> socket.socket:
        if os.path.exists(f"{self._signpost}/barrier"):
            raise OSError("there is a barrier")
        if os.path.exists(f"{self._signpost}/defect"):
            raise ZeroDivisionError("a defect of this backend")
        if not os.path.exists(f"{self._signpost}/signpost"):
            raise PlaceGone("the signpost is gone")
        return await super().connect()


class NeighbourBackend(Backend):
    kind = "neighbour"

    def check_options(self, given):  # type: ignore[no-untyped-def]
        known = {"flowers": "roses", "signpost": ""}
        for name in (*self.table, *given):
            if name not in known:
                raise BadValue(f"{self.name} has no option {name}", next=f"known: {', '.join(known)}")
        options = {**known, **self.table, **given}
        if not options["signpost"]:
            raise BadValue(f"{self.name} needs the option signpost", next="set it in config.toml")
        return options

    def open(self, spec, site):  # type: ignore[no-untyped-def]
        return NeighbourPlace(spec, site)  # type: ignore[no-untyped-call]

    async def state(self, environ):  # type: ignore[no-untyped-def]
        return BackendState("ready", "next door")
