"""process: waiting for a process, or for any news. A wait that runs out is no error, and says what to do next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.tools import looking, reading
from holdfast.tools.context import Context, about, asking, clamped, still_running, uptime
from holdfast.tools.envelope import GO_ON, Answer, Refusal, answer
from holdfast.tools.interrupts import Interrupted

if TYPE_CHECKING:
    from holdfast.client.process import Process, Waited
    from holdfast.tools.arguments import ProcessCall

_MATCH = "match:"


async def wait(context: Context, call: ProcessCall) -> Answer:
    """Until it ends, or the first of several does; with data, until it writes, is ready or a line matches."""
    notes: list[str] = []
    limit = context.limits.wait
    timeout = clamped(call.timeout, limit, limit, 0.0, notes)
    processes = [await context.find(text) for text in call.ids]
    until = _until(call.data)
    ids = [process.id for process in processes]
    if until["until"] in ("output", "match") and len(ids) == 1:  # what was not shown yet counts, too
        until["after"] = context.memory.seen_bytes(processes[0])
    asked_until = context.memory.asked_until(processes)
    try:
        waited = await context.interrupts.guard(
            context.client.wait_for(ids, timeout=timeout, any=len(ids) > 1, or_input=asked_until, **until)
        )
    except Interrupted:
        return await _interrupted(context, processes[0])
    made = await _outcome(context, waited, timeout, until["until"])
    return {**made, "note": "; ".join(notes)} if notes else made


def _until(data: str | None) -> dict[str, Any]:
    words = (data or "").strip()
    if words.startswith(_MATCH) and len(words) > len(_MATCH):
        return {"until": "match", "match": words[len(_MATCH) :]}
    if words in ("", "exit", "output", "ready"):
        return {"until": words or "exit"}
    raise Refusal(
        "bad_arguments", f"cannot wait for {words[:40]!r}", "data is output, ready or match:REGEX; or leave it out"
    )


async def _outcome(context: Context, waited: Waited, timeout: float, until: str) -> Answer:
    ended = [process for process in waited.processes if process.status == "ended"]
    if ended:
        others = [process.id for process in waited.processes if process.status != "ended"]
        made = await looking.end_of(context, ended[0])
        if len(ended) > 1:
            made["also_ended"] = [f"{process.id} {process.reason} {process.exit_code}" for process in ended[1:]]
        return {**made, "still_running": others} if others else made
    asks = next(filter(context.memory.asks_anew, waited.processes), None)
    if asks is not None and until == "exit":
        return await _asks(context, asks)
    process = next((one for one in waited.processes if one.needs_input is not None), waited.processes[0])
    if waited.timed_out or until == "exit":  # or a person was faster with the answer
        return await _elapsed(context, process, timeout)
    return await _happened(context, process, until)


async def _happened(context: Context, process: Process, until: str) -> Answer:
    shown = await reading.tail(context.client, process.id, context.limits.end)
    new = context.memory.shown(process, shown.end)
    match = process.match.text if process.match is not None else None
    reason = {"output": "new_output", "ready": "ready", "match": "matched"}[until]
    return about(process, reason=reason, match=match, new_bytes=new, ready=process.ready, **shown.fields())


async def _asks(context: Context, process: Process) -> Answer:
    """It does not go on by itself. The next wait is for somebody to answer it, and ends with another question alone."""
    context.memory.asked(process)
    shown = await reading.tail(context.client, process.id, context.limits.poll)
    new = context.memory.shown(process, shown.end)
    return about(process, asking(process) or GO_ON, reason="needs_input", new_bytes=new, **shown.fields())


async def _elapsed(context: Context, process: Process, timeout: float) -> Answer:
    shown = await reading.tail(context.client, process.id, context.limits.poll)
    new = context.memory.shown(process, shown.end)
    tells = process.notify not in (None, "never")
    next = "do other work: you are told when it ends" if tells else "wait again, or do other work"
    next = asking(process) or next
    said = {"reason": f"still running after a wait of {timeout:g} s", "new_bytes": new}
    fields = {**shown.fields(), "offset": shown.end} if new else {}
    return about(process, next, **said, **fields)  # type: ignore[arg-type]


async def _interrupted(context: Context, process: Process) -> Answer:
    running = await still_running(context)
    more = {"session_id": process.id, "uptime": uptime(process), "running": running}
    return answer("interrupted", "interrupted", "see what the user wants now; it goes on", **more)


async def inbox(context: Context, call: ProcessCall) -> Answer:
    """News, after waiting for some. What was told before is not told again."""
    notes: list[str] = []
    limit = context.limits.wait
    timeout = clamped(call.timeout, 0.0, limit, 0.0, notes)
    try:
        found = await context.interrupts.guard(context.client.inbox(wait=timeout, limit=1, session=context.session))
    except Interrupted:
        return answer("interrupted", "interrupted", "see what the user wants now", running=await still_running(context))
    note = "; ".join(notes) or None
    if not found:
        running = await still_running(context)
        return answer("ok", "no news", "do other work; news comes to you", running=running, note=note)
    return answer("ok", "news", "see notices", note=note)
