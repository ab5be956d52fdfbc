"""Input that callers which are bound to a session type into shells: judged by complete lines.

A line may take several writes. An unfinished line is on disk before it is written, so that it is judged after a crash.
"""

from __future__ import annotations

import asyncio
import os
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from holdfast import light_json
from holdfast.daemon.approvals import commands, gate, sandboxing
from holdfast.daemon.approvals.commands import Judged
from holdfast.daemon.core.context import Call, DaemonContext, Message
from holdfast.errors import Unreachable
from holdfast.model.approvals import ApprovalRecord
from holdfast.model.process import HeldProcess
from holdfast.ops.start import ApprovalOptions
from holdfast.places.keeper_link import Refused
from holdfast.store import approvals as rows

_KEEPER_TIMEOUT = 1.0
#: The state of a reader that survives a crash: the program, and its unfinished input.
_KEPT = ("kind", "program", "pending", "edited", "block", "below")


@asynccontextmanager
async def typing(
    context: DaemonContext,
    call: Call,
    ask: ApprovalOptions,
    process: HeldProcess,
    data: bytes,
    at: int | None,
    *,
    ends: bool,
) -> AsyncIterator[tuple[bytes, int | None]]:
    """While data is written to a process: the bytes to write, and the offset. Raises NotApproved.

    With `ends` the input is closed after it, so the reader runs a last line without a line end, too.
    """
    if not call.is_strict or not (data or ends):
        if data:
            context.input_readers.typed_by_user(process, data)
        yield data, at
        return
    async with context.input_readers.lock(process):
        fresh, at = await context.inputs.fresh(process.id, data, at)
        data = fresh + b"\n" if ends else fresh
        reader = await _reader(context, process)
        context.input_readers.forget_after_user(process, reader)
        before, shell_state = _snapshot(reader), reader.context() if reader is not None else ""
        found = await context.gate.typed(data, reader)
        judged = sandboxing.typed_in(await context.gate.sandbox(), process.meta, found)
        passed = await _passed(context, call, ask, process, before, shell_state, data, judged)
        async with commands.using(context, passed) as use:
            if found.action != "allow":
                await context.gate.accept(data, reader)
            await _keep(context, process, reader)
            try:
                yield fresh, at
            except Refused:  # no byte was written
                _restore(reader, before)
                await _keep(context, process, reader)
                raise
            use.is_done = True


async def _passed(
    context: DaemonContext,
    call: Call,
    ask: ApprovalOptions,
    process: HeldProcess,
    before: Message,
    shell_state: str,
    data: bytes,
    judged: Judged,
) -> ApprovalRecord | None:
    if judged.action == "allow":
        return None  # allowed input is not written to the audit log
    meta = process.meta
    typed_before = f"{before.get('block', '')}{before.get('pending', '')}"
    what = {"process": meta.id, "command": typed_before + data.decode(errors="backslashreplace"), "cwd": meta.cwd}
    bound = {**what, "data": b64encode(data).decode(), "context": shell_state}
    claimant = f"{meta.id}@{os.urandom(6).hex()}"
    asked = gate.gated_action(context, ask, "send", meta.session, bound, claimant, meta.backend)
    return await gate.pass_gate(context, call, asked, judged)


async def _reader(context: DaemonContext, process: HeldProcess) -> Any:
    """The reader: by the command of the process; for a plain program, by the programs that run in it now."""
    readers = context.input_readers
    reader = readers.get(process)
    if reader is None:
        reader = await context.gate.reader(process.meta.command, process.meta.cwd, terminal=process.meta.pty)
        if (kept := readers.kept.pop(process.id, None)) is not None:
            _restore(reader, _read(kept, process.run) if reader is not None else {})
            if reader is not None:
                reader.forget()
        elif reader is not None and (process.started_at or 0) < context.started_at:
            reader.forget()
        readers.put(process, reader)
    if _is_plain(reader):
        for argv in await _running(context, process):
            found = await context.gate.reader(argv, process.meta.cwd, terminal=process.meta.pty)
            if not _is_plain(found):
                readers.put(process, found)
                return found
    return reader


def _is_plain(reader: Any) -> bool:
    return reader is not None and reader.kind == "plain" and not reader.below


async def _running(context: DaemonContext, process: HeldProcess) -> list[list[str]]:
    """The command lines of all its processes; none when the keeper does not answer at once."""
    try:
        async with asyncio.timeout(_KEEPER_TIMEOUT):
            return await context.place_of(process).command_lines(process.id)
    except (Refused, Unreachable, TimeoutError):
        return []


def _snapshot(reader: Any) -> Message:
    """The state of a reader; empty where the reader is unknown."""
    if reader is None:
        return {}
    return {name: getattr(reader, name) for name in _KEPT if name != "below"} | {"below": list(reader.below)}


async def _keep(context: DaemonContext, process: HeldProcess, reader: Any) -> None:
    """Unfinished input is on disk when it returns."""
    is_open = reader is not None and bool(reader.pending or reader.block or reader.below)
    readers = context.input_readers
    if is_open:
        text = light_json.dumps({"run": process.run, **_snapshot(reader)})
        await context.store.change(partial(rows.put_typed, process=process.id, text=text))
        readers.open.add(process.id)
    elif process.id in readers.open:
        readers.open.discard(process.id)
        await context.store.change(partial(rows.put_typed, process=process.id, text=""))


def _restore(reader: Any, before: Message) -> None:
    for name, value in before.items():
        setattr(reader, name, value)


def _read(kept: str, run: int) -> Message:
    """The state that was kept in this run; empty for an earlier one."""
    found = light_json.loads(kept)
    if found.pop("run", None) != run:
        return {}
    return {**found, "below": [tuple(pair) for pair in found["below"]]}
