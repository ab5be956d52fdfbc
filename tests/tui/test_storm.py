"""Daemon, agents and terminal UI are killed at random while processes of two sessions end: each is notified once."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

import holdfast
from holdfast.agent import conversation
from holdfast.errors import HoldfastError
from tests.agent.endpoint import Body, Call, Endpoint, Say, fault_of, texts_of
from tests.agent.stage import Conversation
from tests.support import eventually, never
from tests.tui.test_tmux import Terminal, terminal

__all__ = ["terminal"]

_NOTICE = "[IMPORTANT: Background process"
_MARK = re.compile(r"job-([AB])-(\d+)")


class StormyModel:
    """Starts jobs in the background while it is asked, each with a mark of its session in its output."""

    def __init__(self, session: str, chance: random.Random, go: Path) -> None:
        self._session = session
        self._chance = chance
        self._go = go
        self._lock = threading.Lock()
        self._count = 0
        self.is_over = False

    def __call__(self, body: Body) -> Say:
        if self.is_over or body["messages"][-1]["role"] == "tool":
            return Say("I see")
        with self._lock:
            first, self._count = self._count, self._count + 2
        calls = []
        for number in (first, first + 1):
            mark = f"job-{self._session}-{number}"
            command = f"sleep {self._chance.uniform(0.1, 1.5):.2f}; echo {mark}; echo {mark} >> {self._go}"
            calls.append(Call("terminal", {"command": command, "background": True, "notify_on_complete": True}))
        return Say(calls=calls)


def _kill(pid: int | None) -> None:
    try:
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def _daemon() -> int | None:
    try:
        with holdfast.connect() as client:
            return int(client.status()["pid"])
    except HoldfastError:
        return None


def _storm(home: Path, endpoint: Endpoint, terminal: Terminal, tmp_path: Path, kills: int) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    ran = tmp_path / "ran"
    ran.touch()
    talks = {name: Conversation(home, name) for name in "AB"}
    models = {name: StormyModel(name, random.Random(seed + ord(name)), ran) for name in "AB"}
    for name, talk in talks.items():
        endpoint.always(models[name], model=name)
        talk.set(model=name)
        talk.send("begin")
    ui = terminal.open()
    terminal.sees(" A ", " B ")
    for number in range(kills):
        terminal.press(chance.choice(["F2", "F3"]))
        time.sleep(chance.uniform(0.0, 0.8))
        victim = chance.choice(["daemon", "A", "B", "ui"])
        if victim == "daemon":
            _kill(_daemon())
        elif victim == "ui":
            _kill(ui)
            ui = terminal.open()
        else:
            _kill(talks[victim].pid())
        if number % 3 == 0:
            talk = talks[chance.choice("AB")]
            talk.send(f"more, {number}")  # also starts an agent that has given up
    for name, talk in talks.items():
        models[name].is_over = True
        talk.start()
    _check(home, endpoint, terminal, talks, ran)


def _check(home: Path, endpoint: Endpoint, terminal: Terminal, talks: dict[str, Conversation], ran: Path) -> None:
    with holdfast.connect() as client:
        for name in talks:
            eventually(lambda name=name: client.ps(session=name) == [], timeout=60)  # type: ignore[misc]
            eventually(lambda name=name: client.inbox(session=name) == [], timeout=60)  # type: ignore[misc]
        due = {name: {one.id for one in client.ps(session=name, all=True)} for name in talks}
    for name, talk in talks.items():
        eventually(lambda talk=talk: talk.entries[-1].kind == "end", timeout=60)  # type: ignore[misc]
        ended = Counter(
            entry.content["process"] for entry in talk.of("notice") if entry.content["about"] == "completion"
        )
        assert set(ended.values()) == {1}, {key: count for key, count in ended.items() if count > 1}
        assert set(ended) <= due[name]
        answered = [json.loads(entry.content["text"]) for entry in talk.of("tool_result")]
        returned = {one.get("session_id") for one in answered if one["status"] == "ended"}  # the call says it itself
        assert due[name] <= set(ended) | returned, f"{name}: {len(ended)} of {len(due[name])} ends are notified"
        assert {match[1] for entry in talk.of("notice") for match in _MARK.finditer(entry.content["text"])} == {name}
        assert fault_of(conversation.messages(talk.entries)) is None
    runs = Counter(ran.read_text().split())
    assert set(runs.values()) == {1}, "a job ran twice"
    for body in endpoint.asked:
        seen = [text for text in texts_of(body) if text.startswith(_NOTICE)]
        assert len(seen) == len(set(seen))
        assert {match[1] for text in seen for match in _MARK.finditer(text)} <= {body["model"]}
    _check_screen(terminal, talks)


def _check_screen(terminal: Terminal, talks: dict[str, Conversation]) -> None:
    """A UI that is opened at the end shows the last notices of each session in that session alone."""
    terminal.close()
    terminal.open()
    terminal.sees(" A ", " B ")
    for key, name in (("F2", "A"), ("F3", "B")):
        terminal.press(key)
        terminal.sees(f"{name} · {name}")
        last = _MARK.search(talks[name].of("notice")[-1].content["text"])
        terminal.until(lambda text, last=last: last is None or last[0] in text)  # type: ignore[misc]
        assert {match[1] for match in _MARK.finditer(terminal.text)} <= {name}
    never(lambda: any(_has_double(talk) for talk in talks.values()), within=0.3)


def _has_double(talk: Conversation) -> bool:
    keys = [entry.content["key"] for entry in talk.of("notice")]
    return len(keys) != len(set(keys))


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_storm_of_12_kills(home: Path, endpoint: Endpoint, terminal: Terminal, tmp_path: Path) -> None:
    _storm(home, endpoint, terminal, tmp_path, 12)


@pytest.mark.full
@pytest.mark.timeout(900)
def test_a_storm_of_50_kills(home: Path, endpoint: Endpoint, terminal: Terminal, tmp_path: Path) -> None:
    _storm(home, endpoint, terminal, tmp_path, 50)
