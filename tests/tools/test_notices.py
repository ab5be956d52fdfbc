"""News ride on the next answer: each once, whatever happens in between."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import holdfast
from holdfast.tools import AsyncTools, aprocess, aterminal, process, terminal
from holdfast.tools.sync import close_all
from tests.support import eventually
from tests.tools.model import Model, checked


def _settled(model: Model, count: int) -> None:
    with holdfast.connect() as hf:
        eventually(lambda: len(hf.inbox(session=model.session)) >= count)


def _start(model: Model, count: int) -> None:
    """As many that end, started elsewhere: nothing rides on the answers to that."""
    with holdfast.connect(model.session) as hf:
        for number in range(count):
            hf.run(f"echo number {number}")
    _settled(model, count)


def _heard(told: list[str], answer: dict[str, Any]) -> int:
    """How many notices there are with those of an answer."""
    told += answer.get("notices", ())
    return len(told)


def test_they_ride_on_any_answer_once(model: Model) -> None:
    _start(model, 1)
    answer = model.process("poll", "proc_000000000000")
    assert "number 0" in answer["notices"][0] and answer["status"] == "not_found", "also on one that is an error"
    for _ in range(3):
        assert "notices" not in model.terminal("true")


def test_many_come_a_few_at_a_time(model: Model) -> None:
    _start(model, 12)
    told: list[str] = []
    eventually(lambda: _heard(told, model.process("list")) == 12)
    assert sorted(int(text.partition("echo number ")[2].split()[0]) for text in told) == list(range(12))


def test_of_several_who_call_at_once_each_notice_goes_to_one(model: Model) -> None:
    _start(model, 8)
    with Model(model.session, "/") as other, ThreadPoolExecutor() as pool:
        told: list[str] = []

        def ask(who: Model) -> None:
            told.extend(who.process("list").get("notices", ()))

        def ask_all() -> bool:
            for call in [pool.submit(ask, who) for who in (model, other) * 3]:
                call.result()
            return len(told) >= 8

        eventually(ask_all)
        ask_all()
    assert len(told) == 8 and len(set(told)) == 8


def test_other_sessions_get_no_notice(model: Model) -> None:
    _start(model, 1)
    with Model(f"{model.session}-other", "/") as other:
        assert other.process("inbox")["reason"] == "no news"
    assert "number 0" in model.process("inbox")["notices"][0]


def test_a_crash_of_the_daemon_in_between_loses_and_repeats_nothing(home: Path, tmp_path: Path) -> None:
    with Model("crash", str(tmp_path)) as model, holdfast.connect() as hf:
        told: list[str] = []
        for number in range(4):
            answer = model.terminal(f"sleep 0.1; echo number {number}", background=True, notify_on_complete=True)
            told += answer.get("notices", ())
            os.kill(hf.status()["pid"], signal.SIGKILL)
            told += model.terminal("true").get("notices", ())
        eventually(lambda: _heard(told, model.process("inbox", timeout=2)) >= 4)
        told += model.process("inbox", timeout=0.5).get("notices", ())
        assert len(told) == 4 and len(set(told)) == 4


def test_where_the_interface_shows_notices_answers_have_none(instance: Path, tmp_path: Path) -> None:
    with Model("pushed", str(tmp_path), push=True) as model:
        model.background("echo pushed", notify_on_complete=True)
        _settled(model, 1)
        assert "notices" not in model.terminal("true")
        (notice,) = model.process("inbox")["notices"]
        assert "pushed" in notice["text"]
        assert model.process("ack", data=notice["id"])["acked"] == [notice["id"]]
        assert model.process("inbox")["notices"] == []


def test_an_inbox_waits_for_notices_and_says_what_runs_when_there_are_none(model: Model) -> None:
    process_id = model.background("sleep 0.5; echo news; sleep 60", watch_patterns=["news"])
    assert model.process("inbox")["running"][0]["session_id"] == process_id
    assert "news" in model.process("inbox", timeout=20)["notices"][0]
    model.process("kill", process_id)


def test_plain_calls_and_their_async_twins(instance: Path, tmp_path: Path) -> None:
    answer = checked(terminal("echo hi", session="plain", workdir=str(tmp_path)))
    assert answer["output"] == "hi\n"
    assert checked(process("list", session="plain"))["processes"] == []
    assert checked(terminal(command="echo $HOLDFAST_SESSION", session="plain"))["output"] == "plain\n"
    assert checked(terminal("true", session=["x"]))["reason"] == "bad_arguments"
    assert checked(terminal("true", session="a\nb"))["is_error"] is True
    assert checked(terminal("true", False, None, None, False, False, None, None, "one too many"))["exit_code"] == 0

    async def both() -> tuple[str, str]:
        return await asyncio.gather(aterminal("echo a", session="plain"), aprocess("list", session="plain"))

    first, second = map(checked, asyncio.run(both()))
    assert first["output"] == "a\n" and second["status"] == "ok"
    close_all()


def test_async_tools_are_used_by_many_tasks_at_once(instance: Path, tmp_path: Path) -> None:
    async def many() -> list[str]:
        async with AsyncTools("many", cwd=tmp_path) as tools:
            return await asyncio.gather(*(tools.terminal(f"sleep 0.2; echo {n}") for n in range(10)))

    assert [checked(text)["output"] for text in asyncio.run(many())] == [f"{n}\n" for n in range(10)]


def test_calls_as_a_model_makes_them(model: Model) -> None:
    tools = model.tools
    assert checked(tools.call("terminal", '{"command": "echo hi"}'))["output"] == "hi\n"
    assert checked(tools.call("terminal", {"command": "echo hi"}))["output"] == "hi\n"
    assert tools.answer("process", {"action": "list"})["status"] == "ok"
    for name, arguments in (
        ("terminal", "{"),
        ("terminal", "[1]"),
        ("terminal", 7),
        ("nothing", {}),
        (None, None),
        ("process", json.dumps({"action": "poll"})),
    ):
        assert checked(tools.call(name, arguments))["status"] == "error"


def test_a_fork_makes_connections_of_its_own(model: Model) -> None:
    assert model.terminal("true")["exit_code"] == 0
    child = os.fork()
    if child == 0:
        os._exit(0 if model.terminal("echo child").get("output") == "child\n" else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert model.terminal("echo parent")["output"] == "parent\n"
