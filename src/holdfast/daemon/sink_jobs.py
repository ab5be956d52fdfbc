"""Rows of the outbox as messages: what is said, to which address, signed with what."""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Mapping
from typing import Any

from holdfast.daemon import notifications
from holdfast.daemon.room import Message, Room
from holdfast.daemon.sink_lane import MakeJob
from holdfast.model.ids import ProcessId
from holdfast.model.notices import Notice
from holdfast.model.sinks import Outgoing, Secret, SendResult, Sink, body_of
from holdfast.model.summaries import Summary, summary_of
from holdfast.sinks.job import Job
from holdfast.store import outbox


def job_maker(room: Room) -> MakeJob:
    async def make(sink: Sink, row: Outgoing) -> Job | SendResult:
        (told,) = await notifications.notification_objects(room, [_notice(row.body)])
        return await _job(room, sink, told, summary_of(told))

    return make


async def test(room: Room, sink: Sink) -> SendResult:
    """Send a message that says what it is, and what came of it. Neither quiet hours nor `enabled` count."""
    line = f"this is a test of the sink {sink.name}"
    told = {"id": f"test_{secrets.token_hex(6)}", "kind": "test", "at": time.time(), "text": line, "data": {}}
    job = await _job(room, sink, told, Summary(line, "", "info"))
    return job if isinstance(job, SendResult) else await room.sinks.link_of(sink).send(job)


async def keep_output(room: Room, process_id: ProcessId) -> None:
    """Before the log goes: what is yet to be sent of it is kept without it."""
    if not room.sinks.all:
        return
    rows = await room.store.read(lambda db: outbox.completions_of(db, process_id))
    bodies = [(row.seq, body_of(await notifications.complete(room, _notice(row.body)))) for row in rows]
    if bodies:
        await room.store.change(lambda db: outbox.rewrite(db, bodies))


async def _job(room: Room, sink: Sink, told: Message, words: Summary) -> Job | SendResult:
    payload = json.dumps({**told, "summary": words.text}, ensure_ascii=False)
    job = Job(sink.way, told["id"], payload, words.line, words.tail, words.level)
    variables = {**await room.login.get(), **os.environ} if sink.address.env or sink.secret.env else {}
    for name, secret in (("address", sink.address), ("secret", sink.secret)):
        if secret.env is not None and not variables.get(secret.env):
            return SendResult(False, f"the variable {secret.env} is not set where the daemon was started, nor at login")
        job = job._replace(**_found(name, secret, variables, room.paths.home))
    return job


def _found(name: str, secret: Secret, variables: Mapping[str, str], home: str) -> dict[str, str]:
    if secret.file is not None:
        return {f"{name}_file": os.path.join(home, os.path.expanduser(secret.file))}
    return {name: variables[secret.env] if secret.env is not None else secret.text or ""}


def _notice(body: dict[str, Any]) -> Notice:
    named = ("key", "kind", "process", "session", "at", "origin", "data")
    return Notice(**{name: body[name] for name in named})
