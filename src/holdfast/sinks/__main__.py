"""`python -m holdfast.sinks`: a job a line on stdin, what came of it a line on stdout, both JSON.

It ends with its input. Nothing that a library prints can reach the answers or a log: it might be a secret.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib
import json
import os
import signal
import sys
from types import FrameType

from holdfast.model.sinks import SendResult
from holdfast.sinks.job import Job, Unsendable, from_json, refused

_NICE = 5
#: When memory runs out, this process is missed less than others.
_OOM_SCORE = "500"
_ROOMS = {"webhook": "webhook", "apprise": "services", "desktop": "desktop"}


def main() -> None:
    # Whichever of the standard streams were closed: the answers have a descriptor behind them.
    answers = os.fdopen(fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 3), "w", encoding="utf-8")
    _stand_back()
    for line in sys.stdin.buffer:
        answer = do(from_json(json.loads(line)))
        answers.write(json.dumps(answer._asdict()) + "\n")
        answers.flush()


def do(job: Job) -> SendResult:
    """What came of a job, whatever it was."""
    try:
        job = job.with_secrets()
        _send(job)
    except Unsendable as failed:
        return refused(job, failed)
    except Exception as failed:  # noqa: BLE001  a service of a library may raise anything; the next job may be fine
        return SendResult(False, job.hide(f"the sender failed: {type(failed).__name__}: {failed}"))
    return SendResult(True)


def _send(job: Job) -> None:
    room = importlib.import_module(f"holdfast.sinks.{_ROOMS[job.way]}")
    signal.signal(signal.SIGALRM, _too_late)
    signal.setitimer(signal.ITIMER_REAL, room.TIMEOUT)
    try:
        room.send(job)
    except TimeoutError:
        raise Unsendable(f"no answer within {room.TIMEOUT:.0f} s") from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)


def _too_late(number: int, frame: FrameType | None) -> None:
    raise TimeoutError


def _stand_back() -> None:
    os.nice(_NICE)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for fd in (1, 2):
        os.dup2(nowhere, fd)
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write(_OOM_SCORE)
    with contextlib.suppress(OSError), open("/proc/self/comm", "w") as file:
        file.write("holdfast-sinks")


if __name__ == "__main__":
    main()
