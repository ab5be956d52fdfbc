"""One answer for one deed, also when several ask for the same at the same moment; and what becomes of answers later.

On the daemon's own parts, so that these moments can be met.
"""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest import mock

import pytest

from holdfast.daemon.approvals import gate
from holdfast.daemon.approvals.audit import AuditLog
from holdfast.daemon.approvals.commands import Judged
from holdfast.daemon.approvals.gate import GatedAction
from holdfast.daemon.approvals.requests import ApprovalRequests
from holdfast.daemon.core.context import Call, DaemonContext
from holdfast.daemon.core.tasks import BackgroundTasks
from holdfast.daemon.notices.sessions import Names
from holdfast.errors import CommandDenied, DiskFull
from holdfast.model.approvals import ApprovalRecord
from holdfast.records import replace
from holdfast.store import approvals as rows
from holdfast.store.store import open_store
from tests.support import eventually

#: Whether a person says yes to the request with this number.
Choose = Callable[[int], Awaitable[bool]]

ASKS = Judged("ask", "rule", "why")
KEEP = 60.0


def in_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @functools.wraps(test)
    def run(*given: Any, **named: Any) -> None:
        asyncio.run(test(*given, **named))

    return run


def asked(process: str) -> GatedAction:
    return GatedAction("start", process, process, "s", "local", "git push -f", "/", "print", asker=False, wait=5.0)


@asynccontextmanager
async def daemon(path: Path) -> AsyncIterator[DaemonContext]:
    opened = await open_store(str(path / "store.db"), lambda _: None)
    approvals = ApprovalRequests(opened.store, await opened.store.read(rows.load), KEEP)
    parts = SimpleNamespace(
        approvals=approvals,
        audit=AuditLog(opened.store),
        background=BackgroundTasks(),
        store=opened.store,
        sessions=Names({}),
    )
    try:
        yield cast(DaemonContext, parts)
    finally:
        await opened.store.close()


def pass_gate(context: DaemonContext, process: str) -> Coroutine[Any, Any, ApprovalRecord | None]:
    call = cast(Call, SimpleNamespace(given_up=asyncio.Event()))
    return gate.pass_gate(context, call, asked(process), ASKS)


async def the_first(number: int) -> bool:
    return number == 1


async def answer(context: DaemonContext, choose: Choose) -> None:
    """A person who sees everything, and says so of each by its number."""
    met: list[str] = []
    with context.approvals.surface(lambda _: True) as surface:
        while True:
            request = await surface.changes.get()
            if request.is_pending and request.id not in met:
                met.append(request.id)
                await context.approvals.shown(request)
                is_yes = await choose(len(met))
                now = context.approvals.get(request.id)
                await context.approvals.decide(
                    now, "approved" if is_yes else "denied", "once" if is_yes else None, "me"
                )


@asynccontextmanager
async def person(context: DaemonContext, choose: Choose) -> AsyncIterator[None]:
    answering = asyncio.create_task(answer(context, choose))
    await asyncio.sleep(0)
    try:
        yield
    finally:
        answering.cancel()


def passed(results: list[Any]) -> int:
    assert all(isinstance(one, ApprovalRecord | CommandDenied) for one in results), results
    return sum(isinstance(one, ApprovalRecord) for one in results)


@in_loop
async def test_one_yes_lets_one_of_two_pass(tmp_path: Path) -> None:
    async with daemon(tmp_path) as context, person(context, the_first):
        starts = (pass_gate(context, f"proc_{number}") for number in range(2))
        assert passed(await asyncio.gather(*starts, return_exceptions=True)) == 1


@in_loop
async def test_a_yes_that_is_being_written_is_not_taken_twice(tmp_path: Path) -> None:
    """Who comes while the answer is on its way to the disk may have it; who waited for it then asks anew."""
    async with daemon(tmp_path) as context:
        late: list[asyncio.Task[Any]] = []

        async def choose(number: int) -> bool:
            if number == 1:
                late.append(asyncio.create_task(pass_gate(context, "proc_late")))
            return number == 1

        async with person(context, choose):
            first = await asyncio.gather(pass_gate(context, "proc_1"), return_exceptions=True)
            assert passed([*first, *await asyncio.gather(*late, return_exceptions=True)]) == 1


@in_loop
async def test_a_session_that_gets_another_name_meanwhile_has_its_answer(tmp_path: Path) -> None:
    async with daemon(tmp_path) as context:

        async def choose(number: int) -> bool:
            cast(Names, context.sessions).renamed("s", "renamed")
            context.approvals.renamed("s", "renamed")
            return number == 1

        async with person(context, choose):
            assert passed([await pass_gate(context, "proc_1")]) == 1


async def approved(context: DaemonContext) -> ApprovalRecord:
    async with person(context, the_first):
        claimed = await pass_gate(context, "proc_1")
    assert claimed is not None
    return claimed


@in_loop
async def test_what_cannot_be_claimed_is_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with daemon(tmp_path) as context:
        claimed = await approved(context)
        context.approvals.release(claimed)

        async def full(*_: object) -> None:
            raise DiskFull("no room")

        with monkeypatch.context() as patch:
            patch.setattr(context.store, "change", full)
            with pytest.raises(DiskFull):
                await pass_gate(context, "proc_2")
        assert context.approvals.get(claimed.id).used_by is None
        again = await pass_gate(context, "proc_3")
        assert again is not None and again.id == claimed.id


@in_loop
async def test_a_claim_that_is_never_used_expires(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with daemon(tmp_path) as context:
        claimed = await approved(context)
        monkeypatch.setattr(time, "time", lambda: claimed.at + 2 * KEEP)
        watching = asyncio.create_task(context.approvals.watch_time())
        with context.approvals.watching(claimed.id) as changed:
            await asyncio.wait_for(changed.wait(), 60)
        assert context.approvals.get(claimed.id).state == "expired"
        watching.cancel()


@in_loop
async def test_the_clock_is_looked_at_no_more_than_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was used needs no more looking after, however long ago its time was over."""
    async with daemon(tmp_path) as context:
        context.approvals.spend(await approved(context))
        clock = mock.Mock(return_value=time.time() + 2 * KEEP)
        monkeypatch.setattr(time, "time", clock)
        watching = asyncio.create_task(context.approvals.watch_time())
        await asyncio.to_thread(eventually, lambda: clock.called)
        await asyncio.sleep(0.2)  # nothing more is looked at in this time
        watching.cancel()
        assert clock.call_count <= 2


@in_loop
async def test_a_full_disk_does_not_end_the_watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with daemon(tmp_path) as context:
        claimed = await approved(context)

        async def full(*_: object) -> None:
            raise DiskFull("no room")

        context.approvals._all[claimed.id] = replace(claimed, expires_at=time.time() - 1)
        monkeypatch.setattr(context.store, "change", full)
        watching = asyncio.create_task(context.approvals.watch_time())
        await asyncio.to_thread(eventually, lambda: context.approvals.get(claimed.id).state == "expired")
        assert not watching.done()
        watching.cancel()


@in_loop
async def test_a_changed_clock_does_not_answer_a_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with daemon(tmp_path) as context:
        now = time.time

        async def choose(_: int) -> bool:
            monkeypatch.setattr(time, "time", lambda: now() + 3600)
            with context.approvals.surface(lambda _: True):  # who waits looks up
                await asyncio.sleep(0.1)  # it must not take the clock for an answer in this time
            return True

        async with person(context, choose):
            assert passed([await pass_gate(context, "proc_1")]) == 1
