"""Operations on backends: where commands can run, and what exists there for this instance."""

from __future__ import annotations

from holdfast.ops.declare import Operation, Record, Scope, Traits, field
from holdfast.ops.start import BACKEND_NAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.ops.kinds import Flag, Integer, Text
    from holdfast.ops.records import BackendFields

#: An engine or a host may take its time.
_TIME_LIMIT = 120.0


class Backends(Operation):
    """List the backends, whether each can be used, and its places."""

    class Reply(Record):
        backends: list[BackendFields] = field()

    traits = Traits(
        reads=True, route="GET /backends", http_name="listBackends", returns="backends", time_limit=_TIME_LIMIT
    )


class CleanBackends(Operation):
    """Remove containers and sandboxes of this instance that no process needs."""

    op = "clean_backends"

    class Reply(Record):
        removed: list[Text] = field(help="Their names.")
        failed: list[Text] = field(help="Those that could not be removed, each with the reason.")

    traits = Traits(
        scope=Scope.OPERATOR,
        audited=True,
        route="POST /backends/clean",
        http_name="cleanBackends",
        time_limit=_TIME_LIMIT,
    )


class StopBackend(Operation):
    """Close the places of a backend: its containers and sandboxes are removed, connections to hosts are closed."""

    op = "stop_backend"

    backend: Text = field(longest=64, pattern=BACKEND_NAME, help="The name of the backend.")
    all: Flag = field(False, help="Also places in which processes run. These processes are ended first, as by `kill`.")

    class Reply(Record):
        closed: Integer = field(help="How many places were closed.")
        kept: Integer = field(help="How many were not, because processes run in them.")
        ended: Integer = field(help="How many processes ended with their place.")

    traits = Traits(
        scope=Scope.OPERATOR,
        audited=True,
        route="POST /backends/{backend}/stop",
        http_name="stopBackend",
        positional=("backend",),
        time_limit=_TIME_LIMIT,
    )


class BackendLogin(Operation):
    """The command with which the user authenticates to a backend, in a terminal."""

    op = "backend_login"

    backend: Text = field(longest=64, pattern=BACKEND_NAME, help="The name of the backend.")
    host: Text | None = field(None, longest=1024, help="The host, where the backend does not name one.")

    class Reply(Record):
        argv: list[Text] = field()

    traits = Traits(
        scope=Scope.OPERATOR,
        route="GET /backends/{backend}/login",
        http_name="getBackendLogin",
        positional=("backend",),
        returns="argv",
    )
