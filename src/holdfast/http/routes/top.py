"""/api/v1/top: what the running processes use."""

from __future__ import annotations

from holdfast.http.answers import Answer, json_answer
from holdfast.http.request import Request
from holdfast.http.schemas import ANYTHING, SESSION, choice, integer, obj
from holdfast.http.table import JSON, Parameter, Reply, Route, Schema
from holdfast.model.usage import HISTORY

_USED: dict[str, Schema] = {
    "processes": {"type": "array", "items": ANYTHING},
    "total": {"type": "integer"},
    "cpu_percent": {"type": "number"},
    "rss_bytes": {"type": "integer"},
}


async def top(request: Request) -> Answer:
    return json_answer(await request.while_there(request.ask("top", request.query)))


ROUTES = [
    Route(
        "GET",
        "/api/v1/top",
        "getTop",
        "What the running processes use, the largest first",
        {200: Reply("Processor, memory and ports of each, and the sums", {JSON: obj(_USED)})},
        top,
        query=(
            Parameter("session", SESSION, "Those of this session."),
            Parameter("task", SESSION, "Those of this task."),
            Parameter("sort", choice("cpu", "memory", "started", default="cpu"), "By what."),
            Parameter("limit", integer(0, 1 << 20), "So many of them; 0 for all."),
            Parameter("history", integer(0, HISTORY), "So many of the last samples of each."),
        ),
        needs="top",
    ),
]
