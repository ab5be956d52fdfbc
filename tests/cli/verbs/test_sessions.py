"""`holdfast sessions`."""

from __future__ import annotations

import time

import pytest

from tests.cli.calling import as_json, out, refusal, start
from tests.support import run_cli

pytestmark = pytest.mark.usefixtures("home")


def test_nothing_is_listed_where_nothing_was_started() -> None:
    assert as_json("sessions", "--json") == []
    assert out("sessions").split() == ["SESSION", "RUNNING", "ENDED", "PENDING", "LAST"]


def test_running_and_ended_are_counted_and_the_latest_comes_last() -> None:
    before = time.time()
    early = start("--session", "chat-1", "true")
    start("--session", "chat-2", "sleep", "60")
    start("--session", "chat-1", "sleep", "60")
    run_cli("wait", early)
    older, newer = as_json("sessions", "--json")
    assert (older["session"], older["running"], older["ended"]) == ("chat-2", 1, 0)
    assert (newer["session"], newer["running"], newer["ended"]) == ("chat-1", 1, 1)
    assert before <= newer["first_at"] < older["first_at"] == older["last_at"] < newer["last_at"] <= time.time()
    _, *lines = out("sessions").splitlines()
    assert [line.split()[:3] for line in lines] == [["chat-2", "1", "0"], ["chat-1", "1", "1"]]


def test_any_name_is_shown_as_it_is() -> None:
    name = "--json $(x) ä 漢"
    start("--session", name, "true")
    assert [entry["session"] for entry in as_json("sessions", "--json")] == [name]
    _, line = out("sessions").splitlines()
    assert line.startswith(f"{name}  ")


def test_it_takes_no_arguments() -> None:
    refusal("sessions", "chat-1")
    refusal("sessions", "--all")
