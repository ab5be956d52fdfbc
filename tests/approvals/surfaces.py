"""Somebody who answers, as a dashboard would: on connections of its own, in a thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import holdfast
from holdfast import Approval, Client

#: Asks by the rules that come with holdfast. Tests let it run: it must do no harm, wherever they are started.
RISKY = "git -C /nonexistent reset --hard"
#: Denied by the same rules; harmless, too, should a rule fail one day.
NEVER = "mkfs.ext4 /dev/sdzz9"

Answer = Callable[[Client, Approval], object]


def approve(hf: Client, request: Approval) -> object:
    return hf.approve(request, by="tester")


def for_session(hf: Client, request: Approval) -> object:
    return hf.approve(request, "session", by="tester")


def deny(hf: Client, request: Approval) -> object:
    return hf.deny(request, by="tester")


def say_nothing(hf: Client, request: Approval) -> object:
    return None


@contextmanager
def surface(answer: Answer = approve, shows: bool = True) -> Iterator[list[Approval]]:
    """While it is there, what is pending is shown and answered. What it heard is in the list."""
    heard: list[Approval] = []
    is_over = threading.Event()
    with holdfast.connect(session="person") as hf, hf.follow_approvals() as reading:
        first = reading.receive(5)  # from now on the daemon knows of it

        def work() -> None:
            met: set[str] = set()
            news = first
            while not is_over.is_set():
                for approval in news:
                    heard.append(approval)
                    if approval.state == "pending" and approval.id not in met:
                        met.add(approval.id)
                        if shows:
                            hf.approval_shown(approval)
                        answer(hf, approval)
                news = reading.receive(0.05)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        try:
            yield heard
        finally:
            is_over.set()
            thread.join(60)
