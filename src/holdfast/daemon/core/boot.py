"""The first start of the daemon after a boot of the machine: what comes back, and what does not.

The plan is one transaction, together with the id of the boot: processes with `on_boot` wait for their next run, as
after a request to restart them, and no other process waits any more. A daemon that is killed after that finds the plan,
and each run has a number, so that it is run once. One that is killed before has changed nothing.
"""

from __future__ import annotations

import contextlib
import time

from holdfast.daemon.core.context import DaemonContext
from holdfast.daemon.core.log import note
from holdfast.errors import HoldfastError
from holdfast.model.lifecycle import RestartPlanned, WitnessesGone, advance
from holdfast.model.process import HeldProcess
from holdfast.model.process_rules import come_back_at_boot
from holdfast.records import replace
from holdfast.store import rows

#: Under this key the store remembers the boot during which the last daemon ran.
BOOT = "boot"


async def plan(context: DaemonContext, last_boot: object) -> None:
    """To be called when the true state of all processes is known, and before anything is run again."""
    boot = context.place.boot_id
    if last_boot == boot or context.keeper.release is None:  # without a keeper the state is not known: next time
        return
    async with contextlib.AsyncExitStack() as turns:
        changed: list[HeldProcess] = []
        if last_boot is not None:  # else it is the first daemon of this instance
            coming = {process.id for process in come_back_at_boot(context.registry.all.values())}
            for process in sorted(context.registry.all.values(), key=lambda process: process.id):
                if process.id in coming or process.is_restarting:
                    await turns.enter_async_context(context.supervisor.turn(process.id))
                    process = context.registry.get(process.id) or process
                    changed.append(_planned(process) if process.id in coming else _ended(process))
        await _commit(context, boot, changed)


async def _commit(context: DaemonContext, boot: str, changed: list[HeldProcess]) -> None:
    happened = [event for process in changed for event in context.supervisor.happened(process)]
    try:
        await context.store.change(
            lambda connection: rows.remember(connection, BOOT, boot), happened, processes=changed
        )
    except HoldfastError as failed:  # without a plan on disk nothing is run, so that nothing is run twice
        note("boot-not-recorded", why=failed.message)
        changed = [process for process in changed if not process.is_restarting]
    for process in changed:
        context.registry.put(process)
    note("boot", processes=len([process for process in changed if process.is_restarting]))


def _planned(process: HeldProcess) -> HeldProcess:
    state = advance(process.state, RestartPlanned(time.time()))
    return replace(process, state=state, streak=0, gave_up=False, boot_run=process.run + 1)


def _ended(process: HeldProcess) -> HeldProcess:
    """It waited for a restart by its policy, which does not reach over a boot: its last end is final."""
    return replace(process, state=advance(process.state, WitnessesGone(time.time())))
