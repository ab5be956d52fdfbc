"""What a model is told of a process that waits for an answer, and what it can do about it."""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import eventually
from tests.tools.model import Model

_numbers = itertools.count()
SECRET = f"{sys.executable} -c \"import getpass; getpass.getpass('Open: ')\""


@pytest.fixture
def model(instance: Path, tmp_path: Path) -> Iterator[Model]:
    with Model(f"asked-{next(_numbers)}", str(tmp_path)) as model:
        yield model


def test_a_wait_ends_with_the_question_and_the_answer_goes_on(model: Model) -> None:
    process = model.background("read -p 'name? ' x; echo hello $x", pty=True)
    before = time.monotonic()
    asked = model.process("wait", process, timeout=60)
    assert time.monotonic() - before < 40
    assert (asked["status"], asked["reason"]) == ("running", "needs_input")
    assert asked["needs_input"] == {"prompt": "name?", "secret": False}
    assert "submit" in asked["next"]
    model.process("submit", process, data="Ada")
    ended = model.process("wait", process, timeout=60)
    assert ended["status"] == "ended" and "hello Ada" in ended["output"] and "needs_input" not in ended


def test_a_secret_is_for_the_user(model: Model) -> None:
    process = model.background(SECRET, pty=True)
    asked = model.process("wait", process, timeout=60)
    assert asked["needs_input"]["secret"] is True
    assert f"holdfast send {process} --secret" in asked["next"] and "submit" not in asked["next"]
    again = model.process("wait", process, timeout=1)
    assert again["reason"].startswith("still running") and "--secret" in again["next"]
    polled = model.process("poll", process)
    assert polled["needs_input"]["secret"] is True and "--secret" in polled["next"]
    unchanged = model.process("poll", process)
    assert unchanged["status"] == "unchanged" and "--secret" in unchanged["next"]


def test_each_process_is_heard_though_another_asked_later(model: Model) -> None:
    first, second = (model.background(f"read -p '{name}? ' x", pty=True) for name in ("first", "second"))
    assert model.process("wait", first)["reason"] == "needs_input"
    eventually(lambda: "needs_input" in model.process("poll", second))
    third = model.background("read -p 'third? ' x", pty=True)
    assert model.process("wait", third)["needs_input"]["prompt"] == "third?"
    asked = model.process("wait", f"{first},{second},{third}", timeout=20)
    assert asked["reason"] == "needs_input" and asked["needs_input"]["prompt"] == "second?"
    told = model.process("wait", f"{first},{second},{third}", timeout=1)
    assert told["reason"].startswith("still running")


def test_a_foreground_command_that_asks_does_not_hold_the_model_up(model: Model) -> None:
    before = time.monotonic()
    asked = model.terminal("read -p 'sure? ' x; echo $x", pty=True, timeout=60)
    assert time.monotonic() - before < 40
    assert (asked["status"], asked["reason"]) == ("running", "needs_input")
    assert "Do not run it again" in asked["next"] and "submit" in asked["next"]
    model.process("submit", asked["session_id"], data="yes")
    assert model.process("wait", asked["session_id"])["exit_code"] == 0


def test_the_question_rides_on_the_next_answer_once(model: Model) -> None:
    process = model.background("read -p 'name? ' x", pty=True, notify_on_complete=True)
    model.process("wait", process, timeout=60)
    told = [*model.process("list").get("notices", []), *model.process("list").get("notices", [])]
    seen = model.process("list")
    assert "notices" not in seen and sum("waits for input" in one for one in told) <= 1
