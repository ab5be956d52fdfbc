"""/api/v1/processes/{id}/search: the lines of a log that match."""

from __future__ import annotations

from holdfast.http.answers import Answer, json_answer
from holdfast.http.request import Request
from holdfast.http.schemas import ANYTHING, choice, flag, integer, maybe, number, obj, text
from holdfast.http.table import JSON, Parameter, Reply, Route, Schema
from holdfast.logs.pattern import LONGEST_PATTERN
from holdfast.ops.output import MOST_CONTEXT

_COUNT: Schema = {"type": "integer"}
_FOUND: dict[str, Schema] = {
    "matches": {"type": "array", "items": ANYTHING},
    "count": _COUNT,
    "done": {"type": "boolean"},
    "next": obj({"from": maybe(_COUNT), "line": maybe(_COUNT)}),
    "upto": maybe(_COUNT),
    "searched": _COUNT,
    "skipped": _COUNT,
    "total": _COUNT,
}


async def search(request: Request) -> Answer:
    ask = {**request.query, "process": request.id}
    return json_answer(await request.while_there(request.ask("search", ask)))


ROUTES = [
    Route(
        "GET",
        "/api/v1/processes/{id}/search",
        "searchLog",
        "The lines of its output that match a pattern, a page at a time",
        {200: Reply("Matches; `next` is where the next page begins", {JSON: obj(_FOUND)})},
        search,
        query=(
            Parameter("pattern", text(LONGEST_PATTERN), "An RE2 pattern; has to be there."),
            Parameter("stream", choice("out", "err", default="out"), "Of a process that was started with `split`."),
            Parameter("ignore_case", flag(), "Capital letters match small ones."),
            Parameter("fixed", flag(), "The pattern is a text, not an expression."),
            Parameter("invert", flag(), "The lines that do not match."),
            Parameter("count", flag(), "Only count."),
            Parameter("limit", integer(1, 1 << 53), "At most so many matches."),
            Parameter("before", integer(0, MOST_CONTEXT), "So many lines before each match."),
            Parameter("after", integer(0, MOST_CONTEXT), "So many lines after each match."),
            Parameter("from", integer(), "Begin at this byte."),
            Parameter("line", integer(), "Begin at this line, or the number of the line at `from`."),
            Parameter("upto", integer(), "End at this byte."),
            Parameter("follow", flag(), "Wait for a match that is yet to come."),
            Parameter("wait", number(), "With `follow`: so many seconds."),
        ),
        needs="search",
    ),
]
