"""The end of the output of a process, as text."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from holdfast.daemon.core.context import DaemonContext
from holdfast.model.process import HeldProcess
from holdfast.model.text import TextView
from holdfast.places.base import ExecutionPlace
from holdfast.records import Struct

#: Characters that are shown, and bytes that are read for them: a line may have been overwritten many times.
SHOWN = 2000
_READ = 64 << 10
_LONGEST_SECRET = 4096
#: The same for one line.
_LINE_SHOWN, _LINE_READ = 300, 4 << 10
_MOST_LAST_LINES = 5000

Mask = Callable[[str], str]


class Tail(Struct, frozen=True):
    text: str
    is_cut: bool
    """Whether something came before it."""


async def tail_of(
    context: DaemonContext,
    process: HeldProcess,
    upto: dict[str, int] | None = None,
    since: dict[str, int] | None = None,
    is_raw: bool = False,
    characters: int = SHOWN,
    read: int = _READ,
) -> Tail:
    """The last characters of its output, between these offsets; where streams are kept apart, of both.

    Secrets are masked, unless it is to be raw.
    """
    mask = str if is_raw else partial(context.secrets.masked_text, session=process.meta.session)
    return await context.read(
        _tail, context.place_of(process), process, since or {}, upto or {}, mask, characters, read
    )


#: Last lines by process, with the size of its output then: a list on a screen asks for them every second.
_last_lines: dict[str, tuple[int, str]] = {}


async def last_line(context: DaemonContext, process: HeldProcess, size: int) -> str:
    """The last line that is not empty; `size` is that of its output now."""
    known = _last_lines.pop(process.id, None)
    if known is None or known[0] != size:
        tail = await tail_of(context, process, characters=_LINE_SHOWN, read=_LINE_READ) if size else Tail("", False)
        lines = [line for line in tail.text.splitlines() if line.strip()]
        known = size, lines[-1] if lines else ""
    while len(_last_lines) >= _MOST_LAST_LINES:
        del _last_lines[next(iter(_last_lines))]
    _last_lines[process.id] = known
    return known[1]


def _tail(
    place: ExecutionPlace,
    process: HeldProcess,
    since: dict[str, int],
    upto: dict[str, int],
    mask: Mask,
    characters: int,
    read: int,
) -> Tail:
    tails = [
        (
            stream,
            _tail_of_stream(place, process, stream, since.get(stream, 0), upto.get(stream), mask, characters, read),
        )
        for stream in process.meta.streams
    ]
    written = [(stream, tail) for stream, tail in tails if tail.text]
    if len(written) < 2:
        return written[0][1] if written else Tail("", any(tail.is_cut for _, tail in tails))
    budget = characters // 2 - 20
    parts = [f"[{'stderr' if stream == 'err' else 'stdout'}]\n{tail.text[-budget:]}" for stream, tail in written]
    return Tail("\n".join(parts), any(tail.is_cut or len(tail.text) > budget for _, tail in written))


def _tail_of_stream(
    place: ExecutionPlace,
    process: HeldProcess,
    stream: str,
    since: int,
    upto: int | None,
    mask: Mask,
    characters: int,
    read: int,
) -> Tail:
    with place.log(process.id, stream) as log:
        extent = log.extent()
        end = extent.end if upto is None else min(extent.end, upto)
        start = max(extent.first, since, end - read)
        view, shown, at = TextView(), "", start
        while at < end and (chunk := log.read(at, end - at)).data:
            shown += view.feed(chunk.data[: max(0, end - chunk.offset)])
            at = chunk.end
    shown = (shown + view.close()).rstrip("\n")
    if start > since and len(shown) <= characters:
        shown = shown.partition("\n")[2] or shown  # the first line begins somewhere in the middle
    is_cut = start > since or len(shown) > characters
    # Masked before it is cut: half a secret does not look like one.
    return Tail(mask(shown[-characters - _LONGEST_SECRET :])[-characters:], is_cut)
