"""/api/v1/approvals: what a person is asked, and the answers. /api/v1/audit: who decided what."""

from __future__ import annotations

import asyncio

from holdfast.daemon import values
from holdfast.http import sse
from holdfast.http.answers import Answer, Stream, Write, json_answer, nothing
from holdfast.http.request import Request
from holdfast.http.schemas import ANYTHING, SESSION, choice, flag, integer, maybe, obj, ref, text
from holdfast.http.table import JSON, Body, Parameter, Reply, Route, Schema
from holdfast.model.approvals import SCOPES

_BEAT = 15.0
_MOST = 1000


async def list_(request: Request) -> Answer:
    query = dict(request.query)
    if request.media != sse.MEDIA:
        return json_answer(await request.ask("approvals", query))
    session = values.session(query)

    async def produce(write: Write) -> None:
        if request.method != "HEAD":
            await request.while_there(_tell(request, session, write))

    return Stream(sse.MEDIA, produce)


async def _tell(request: Request, session: str | None, write: Write) -> None:
    """Each pending request, then each that changes, for as long as the client is there."""

    async def send(stream: str, offset: int, data: bytes) -> None:
        await write(sse.message(data.decode().strip(), None) if data else sse.HEARTBEAT)

    beat = asyncio.ensure_future(_beat(write))
    try:
        await request.ask("approvals", {"follow": True, "session": session}, send)
    finally:
        beat.cancel()


async def _beat(write: Write) -> None:
    while True:
        await asyncio.sleep(_BEAT)
        await write(sse.HEARTBEAT)


async def approve(request: Request) -> Answer:
    asked = {"by": "http", **await request.fields(_APPROVE), "id": request.id}
    return json_answer((await request.ask("approve", asked))["approval"])


async def deny(request: Request) -> Answer:
    asked = {"by": "http", **await request.fields(_DENY), "id": request.id}
    return json_answer((await request.ask("deny", asked))["approval"])


async def shown(request: Request) -> Answer:
    await request.ask("approval_shown", {"id": request.id})
    return nothing()


async def password(request: Request) -> Answer:
    asked = {"by": "http", **await request.fields(_PASSWORD), "id": request.id}
    return json_answer((await request.ask("approval_password", asked))["approval"])


async def audit(request: Request) -> Answer:
    return json_answer(await request.ask("audit", request.query))


_BY: Schema = text(256, minLength=1, description="Who says so.")
_ENTRIES: Schema = {"type": "array", "items": ANYTHING}
_VERIFIED = obj(
    {
        "entries": {"type": "integer"},
        "head": {"type": "string"},
        "fault": maybe({"type": "string"}),
        "seq": maybe({"type": "integer"}),
    }
)

_LIST = Route(
    "GET",
    "/api/v1/approvals",
    "listApprovals",
    "What a person is asked, and what was approved and still stands; as a stream of events, as it comes",
    {
        200: Reply(
            "The approvals",
            {JSON: obj({"approvals": {"type": "array", "items": ref("Approval")}}), sse.MEDIA: {"type": "string"}},
        )
    },
    list_,
    query=(
        Parameter("all", flag(), "Also those that are over; for a list alone."),
        Parameter("session", SESSION, "Only those of this session."),
    ),
    about="Whoever reads the stream shows requests to a person, and says so with POST …/shown. See docs/approvals.md.",
    needs="approvals",
)

_APPROVE = Route(
    "POST",
    "/api/v1/approvals/{id}/approve",
    "approve",
    "Let it be done",
    {200: Reply("Approved", {JSON: ref("Approval")})},
    approve,
    body=Body(
        {"scope": choice(*SCOPES, default="once"), "by": _BY},
        "For how long, and who says so.",
        optional=True,
    ),
    errors=(507,),
    needs="approve",
)

_DENY = Route(
    "POST",
    "/api/v1/approvals/{id}/deny",
    "deny",
    "Say no; or take back what was approved",
    {200: Reply("Denied", {JSON: ref("Approval")})},
    deny,
    body=Body({"by": _BY}, "Who says so.", optional=True),
    errors=(507,),
    needs="deny",
)

_PASSWORD = Route(
    "POST",
    "/api/v1/approvals/{id}/password",
    "typePassword",
    "Type the password that sudo asks for",
    {200: Reply("Typed", {JSON: ref("Approval")})},
    password,
    body=Body({"data": text(8192, contentEncoding="base64"), "by": _BY}, "What was typed.", required=("data",)),
    errors=(507,),
    needs="approval_password",
)

ROUTES = [
    _LIST,
    _APPROVE,
    _DENY,
    _PASSWORD,
    Route(
        "POST",
        "/api/v1/approvals/{id}/shown",
        "approvalShown",
        "Say that a person can see it now",
        {204: Reply("Noted", {})},
        shown,
        errors=(507,),
        needs="approval_shown",
    ),
    Route(
        "GET",
        "/api/v1/audit",
        "readAudit",
        "Who decided what, and who touched what is not theirs",
        {200: Reply("Entries, oldest first", {JSON: obj({"entries": _ENTRIES, "verified": _VERIFIED}, ("entries",))})},
        audit,
        query=(
            Parameter("after", integer(), "Those behind this number; the newest ones without."),
            Parameter("limit", integer(1, _MOST), "So many of them at most."),
            Parameter("verify", flag(), "Go through all of them, and tell what was changed or is missing."),
        ),
        needs="audit",
    ),
]
