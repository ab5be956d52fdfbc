"""Logs and screens of the session's own processes, as resources."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from mcp import types
from mcp.shared.exceptions import MCPError

from holdfast.client.aio import AsyncClient
from holdfast.errors import HoldfastError, NotFound
from holdfast.mcp.peers import McpPeer
from holdfast.tools import output
from holdfast.tools.aio import find as find_process
from holdfast.tools.answers import Limits, ToolRefusal, brief_command, was_background

if TYPE_CHECKING:
    from holdfast.client.process import Process

_TEXT = "text/plain"
_VIEWS = ("log", "screen")
_MOST_LISTED = 100
_LINES = 1000
_LONGEST_URI = 2000


class ResourceName(NamedTuple):
    """What a URI names."""

    process: str
    view: str
    session: str | None


def uri_of(process: str, view: str) -> str:
    return f"holdfast://process/{quote(process)}/{view}"


def parse(uri: str) -> ResourceName:
    """Raises MCPError."""
    try:
        parts = urlsplit(uri[:_LONGEST_URI])
        words = [unquote(word) for word in parts.path.split("/")]
        query = dict(parse_qsl(parts.query))
    except ValueError:
        raise _not_found(uri) from None
    if (parts.scheme, parts.netloc) != ("holdfast", "process") or len(words) != 3 or words[2] not in _VIEWS:
        raise _not_found(uri)
    return ResourceName(words[1], words[2], query.get("session"))


def _not_found(uri: str) -> MCPError:
    return MCPError(types.INVALID_PARAMS, "no such resource", {"uri": uri[:_LONGEST_URI]})


TEMPLATES = [
    types.ResourceTemplate(
        name="log",
        title="Log of a process",
        uri_template="holdfast://process/{id}/log{?session}",
        description="The end of a process's output, as text. Secrets are masked.",
        mime_type=_TEXT,
    ),
    types.ResourceTemplate(
        name="screen",
        title="Screen of a process",
        uri_template="holdfast://process/{id}/screen{?session}",
        description="The screen of a process that has a terminal.",
        mime_type=_TEXT,
    ),
]


async def listed(session: str) -> list[types.Resource]:
    """Those of the newest background processes. Raises MCPError."""
    try:
        async with AsyncClient(session, strict=True) as client:
            found = [one for one in await client.ps(all=True, session=session, used=False) if was_background(one)]
            found.sort(key=lambda one: (one.status == "ended", -(one.started_at or 0.0)))
            found = found[:_MOST_LISTED]
            commands = await client.redact(*map(brief_command, found)) if found else []
    except HoldfastError as error:
        raise _failed(error) from None
    resources: list[types.Resource] = []
    for process, command in zip(found, commands, strict=True):
        resources += [_resource(process, command, view) for view in _VIEWS if view == "log" or process.pty]
    return resources


def _resource(process: Process, command: str, view: str) -> types.Resource:
    return types.Resource(
        uri=uri_of(process.id, view),
        name=f"{process.name or process.id} {view}",
        title=command,
        description=f"{view} of {process.id}, {process.status}",
        mime_type=_TEXT,
    )


async def find(peer: McpPeer, uri: str) -> tuple[str, str, ResourceName]:
    """The session and the process of a URI. Raises MCPError where the peer has none such."""
    name = parse(uri)
    try:
        session = peer.chosen(name.session)
        async with AsyncClient(session, strict=True) as client:
            return session, (await find_process(client, name.process)).id, name
    except (ToolRefusal, NotFound):
        raise _not_found(uri) from None
    except HoldfastError as error:
        raise _failed(error) from None


async def read(peer: McpPeer, uri: str) -> str:
    """The text of a resource. Raises MCPError."""
    session, process, name = await find(peer, uri)
    try:
        async with AsyncClient(session, strict=True) as client:
            text = await (_log if name.view == "log" else _screen)(client, process)
            (masked,) = await client.redact(text)
            return masked
    except HoldfastError as error:
        raise _failed(error) from None


async def _log(client: AsyncClient, process: str) -> str:
    page = await client.logs(process, lines=_LINES)
    return output.fitted(page, Limits().budget).text


async def _screen(client: AsyncClient, process: str) -> str:
    return (await client.screen(process)).text


def _failed(error: HoldfastError) -> MCPError:
    return MCPError(types.INTERNAL_ERROR, f"{error.message}; {error.next}", {"code": error.code})
