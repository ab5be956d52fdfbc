"""The sender of one sink: python -m holdfast.sinks. A request is a message, the reply what came of it.

Nothing that a library prints can reach a reply or a log: it might be a secret.
"""

from __future__ import annotations

import importlib
import os
import signal
from types import FrameType

from holdfast.model.notices.sinks import SendResult
from holdfast.records import asdict
from holdfast.sinks.message import SinkMessage, Unsendable
from holdfast.wire.worker import Message, WorkerLink, lower_priority

_MODULES = {"webhook": "webhook", "apprise": "services", "desktop": "desktop"}


def main() -> None:
    link = WorkerLink()
    os.dup2(1, 2)  # which is /dev/null by now
    lower_priority("sinks")
    link.serve(_answer)


def _answer(request: Message) -> Message:
    message = SinkMessage(**request)
    try:
        message = message.with_secrets()
        _send(message)
    except Unsendable as failed:
        return asdict(SendResult(False, message.hide(str(failed)), failed.permanent, failed.retry_after))
    except Exception as failed:  # noqa: BLE001  a service of a library may raise anything; the next message may be fine
        return asdict(SendResult(False, message.hide(f"the sender failed: {type(failed).__name__}: {failed}")))
    return asdict(SendResult(True))


def _send(message: SinkMessage) -> None:
    module = importlib.import_module(f"holdfast.sinks.{_MODULES[message.way]}")
    signal.signal(signal.SIGALRM, _time_out)
    signal.setitimer(signal.ITIMER_REAL, module.TIMEOUT)
    try:
        module.send(message)
    except TimeoutError:
        raise Unsendable(f"no answer within {module.TIMEOUT:.0f} s") from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)


def _time_out(number: int, frame: FrameType | None) -> None:
    raise TimeoutError


if __name__ == "__main__":
    main()
