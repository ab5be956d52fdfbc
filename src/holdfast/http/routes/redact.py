"""Texts as a model may see them."""

from __future__ import annotations

from holdfast.http.answers import Answer, json_answer
from holdfast.http.request import Request
from holdfast.http.schemas import obj, texts
from holdfast.http.table import JSON, Body, Reply, Route


async def redact(request: Request) -> Answer:
    return json_answer(await request.ask("redact", await request.fields(_REDACT)))


_REDACT = Route(
    "POST",
    "/api/v1/redact",
    "redactTexts",
    "Mask the secrets in texts: what looks like one, and what was one in the environment of any start",
    {200: Reply("The texts, in their order", {JSON: obj({"texts": texts("With secrets masked.")}, ("texts",))})},
    redact,
    body=Body({"texts": texts("As they are.")}, "What to mask.", required=("texts",)),
)

ROUTES = [_REDACT]
