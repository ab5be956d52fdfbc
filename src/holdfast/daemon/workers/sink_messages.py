"""Outbox rows as messages for sinks: text, address and signing secret."""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Mapping
from typing import Any

from holdfast.daemon.core.context import DaemonContext, Message
from holdfast.daemon.notices import objects
from holdfast.daemon.workers.sink_lane import MakeMessage
from holdfast.model.events import Notice
from holdfast.model.notices.sinks import Outgoing, Secret, SendResult, Sink
from holdfast.model.notices.summaries import Summary, summary_of
from holdfast.model.process import ProcessId
from holdfast.records import replace
from holdfast.sinks.message import SinkMessage
from holdfast.store import outbox


def message_maker(context: DaemonContext) -> MakeMessage:
    async def make(sink: Sink, row: Outgoing) -> SinkMessage | SendResult:
        (notification,) = await objects.notification_objects(context, [_notice(row.body)])
        return await _message(context, sink, notification, summary_of(notification))

    return make


async def test(context: DaemonContext, sink: Sink) -> SendResult:
    """Send a test message, also in quiet hours and to a disabled sink. What came of it."""
    line = f"this is a test of the sink {sink.name}"
    notification = {"id": f"test_{secrets.token_hex(6)}", "kind": "test", "at": time.time(), "text": line, "data": {}}
    message = await _message(context, sink, notification, Summary(line, "", "info"))
    return message if isinstance(message, SendResult) else await context.sinks.worker_of(sink).send(message)


async def keep_output(context: DaemonContext, process_id: ProcessId) -> None:
    """Before a log is deleted: put what unsent messages quote of it into the messages."""
    if not context.sinks.all:
        return
    rows = await context.store.read(lambda db: outbox.completions_of(db, process_id))
    bodies = [(row.seq, (await objects.complete(context, _notice(row.body))).to_json()) for row in rows]
    if bodies:
        await context.store.change(lambda db: outbox.rewrite(db, bodies))


async def _message(
    context: DaemonContext, sink: Sink, notification: Message, words: Summary
) -> SinkMessage | SendResult:
    payload = json.dumps({**notification, "summary": words.text}, ensure_ascii=False)
    message = SinkMessage(sink.way, notification["id"], payload, words.line, words.tail, words.level)
    variables = {**await context.place.login.get(), **os.environ} if sink.address.env or sink.secret.env else {}
    for name, secret in (("address", sink.address), ("secret", sink.secret)):
        if secret.env is not None and not variables.get(secret.env):
            return SendResult(False, f"the variable {secret.env} is not set where the daemon was started, nor at login")
        message = replace(message, **_secret_field(name, secret, variables, context.paths.home))
    return message


def _secret_field(name: str, secret: Secret, variables: Mapping[str, str], home: str) -> dict[str, str]:
    if secret.file is not None:
        return {f"{name}_file": os.path.join(home, os.path.expanduser(secret.file))}
    return {name: variables[secret.env] if secret.env is not None else secret.text or ""}


def _notice(body: dict[str, Any]) -> Notice:
    named = ("key", "kind", "process", "session", "at", "origin", "data")
    return Notice(**{name: body[name] for name in named})
