"""An interrupt ends what is waited for within two seconds, and nothing else."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.tools import AsyncTools
from tests.support import eventually, is_alive, run_cli
from tests.tools.model import Model, Sent, checked

#: It does not end for a polite signal, and has descendants.
STUBBORN = "trap '' TERM; echo $$; sleep 301 & sleep 302"


def _under_way(model: Model, call: Callable[[], dict[str, Any]], count: int) -> Future[dict[str, Any]]:
    """A call in a thread, once it runs: the session has so many processes then."""
    future: Future[dict[str, Any]] = Future()
    threading.Thread(target=lambda: future.set_result(call()), daemon=True).start()
    with holdfast.connect() as hf:
        eventually(lambda: len([one for one in hf.ps(session=model.session) if one.output_bytes]) >= count)
    return future


def _pid(directory: Path) -> int | None:
    """What a command wrote there, once it did."""
    file = directory / "pid"
    text = file.read_text().strip() if file.exists() else ""
    return int(text) if text else None


def _by_tools(model: Model) -> None:
    assert model.tools.interrupt() == 1


def _by_other_tools(model: Model) -> None:
    with Model(model.session, "/") as other:
        assert other.tools.interrupt() == 0


def _by_command_line(model: Model) -> None:
    assert run_cli("interrupt", "--session", model.session).returncode == 0


WAYS = pytest.mark.parametrize("interrupt", [_by_tools, _by_other_tools, _by_command_line])


@WAYS
def test_the_foreground_command_ends_with_its_tree_and_the_background_goes_on(
    model: Model, interrupt: Callable[[Model], None]
) -> None:
    kept = model.background("echo kept; sleep 300")
    future = _under_way(model, lambda: model.terminal(STUBBORN), 2)
    interrupt(model)
    before = time.monotonic()
    answer = future.result(timeout=30)
    assert time.monotonic() - before < 8, "not the grace of 10 s"
    assert (answer["status"], answer["reason"], answer["is_error"]) == ("interrupted", "interrupted", False)
    assert not is_alive(int(answer["output"]))
    assert [row["session_id"] for row in answer["running"]] == [kept]
    assert model.process("poll", kept)["status"] == "running"
    assert model.process("inbox", timeout=0.2)["reason"] == "no news", "what the owner ended is no news"
    model.process("kill", kept)


@WAYS
def test_a_wait_returns_and_what_it_waited_for_goes_on(
    model: Model, interrupt: Callable[[Model], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = Sent(monkeypatch)
    process_id = model.background("echo on; sleep 300")
    future = _under_way(model, lambda: model.process("wait", process_id), 1)
    eventually(lambda: {"wait", "events"} <= set(sent.operations))  # it waits, and listens for interrupts
    interrupt(model)
    before = time.monotonic()
    answer = future.result(timeout=30)
    assert time.monotonic() - before < 8, "not the grace of 10 s"
    assert answer["status"] == "interrupted" and answer["session_id"] == process_id
    assert model.process("kill", process_id)["reason"] == "killed"


def test_another_session_is_left_alone(model: Model) -> None:
    future = _under_way(model, lambda: model.terminal("echo mine; sleep 1; echo end"), 1)
    run_cli("interrupt", "--session", f"{model.session}-other")
    assert future.result(timeout=30)["output"] == "mine\nend\n"


def test_an_interrupt_is_for_what_is_under_way_and_not_for_what_comes(model: Model) -> None:
    model.terminal("true")
    assert model.tools.interrupt() == 0
    run_cli("interrupt", "--session", model.session)
    assert model.terminal("sleep 0.5; echo through")["output"] == "through\n"


def test_several_calls_at_once_end_at_once(model: Model) -> None:
    with ThreadPoolExecutor() as pool:
        calls = [pool.submit(model.terminal, f"echo {n}; sleep 30{n}") for n in range(3)]
        with holdfast.connect() as hf:
            eventually(lambda: len([one for one in hf.ps(session=model.session) if one.output_bytes]) == 3)
        assert model.tools.interrupt() == 3
        assert {call.result(timeout=60)["status"] for call in calls} == {"interrupted"}


def test_the_command_line_shows_what_goes_on(model: Model) -> None:
    kept = model.background("echo kept; sleep 300")
    done = run_cli("interrupt", "--session", model.session)
    assert (done.returncode, done.stdout.decode()) == (0, f"{kept}\n")
    model.process("kill", kept)
    assert run_cli("interrupt", "too", "many").returncode == 125


def test_a_cancelled_task_takes_its_command_along(instance: Path, tmp_path: Path) -> None:
    async def cancelled() -> int:
        async with AsyncTools("cancelled", cwd=tmp_path) as tools:
            task = asyncio.create_task(tools.terminal(f"echo $$ > {tmp_path}/pid; sleep 300"))
            pid = await asyncio.to_thread(eventually, lambda: _pid(tmp_path))
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return pid

    assert not is_alive(asyncio.run(cancelled()))


def test_a_task_that_is_cancelled_while_its_command_is_started_leaves_none(instance: Path, tmp_path: Path) -> None:
    async def cancelled(hf: holdfast.AsyncClient, keeper: int) -> None:
        async with AsyncTools("early", cwd=tmp_path) as tools:
            await tools.terminal("true")
            os.kill(keeper, signal.SIGSTOP)
            try:
                # From the first event on: this request may reach the daemon after the call has begun.
                async with hf.events("tool.start", since=0, follow=True) as events:
                    task = asyncio.create_task(tools.terminal("sleep 300"))
                    begun = 0
                    async for event in events:
                        begun += event.get("session") == "early"
                        if begun == 2:
                            break
                    task.cancel()
                    await hf.status()
            finally:
                os.kill(keeper, signal.SIGCONT)
            with pytest.raises(asyncio.CancelledError):
                await task
            assert [one.command for one in await hf.ps(session="early")] == []
            await tools.terminal("true")  # what was asked for before is over
            assert [one.command for one in await hf.ps(session="early")] == []

    async def work() -> None:
        async with holdfast.aconnect() as hf:
            await cancelled(hf, (await hf.status())["keeper_pid"])

    asyncio.run(work())


def test_control_c_ends_the_foreground_command(instance: Path, tmp_path: Path) -> None:
    script = f"from holdfast.tools import terminal; terminal('echo $$ > {tmp_path}/pid; sleep 300')"
    program = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL)
    pid = eventually(lambda: _pid(tmp_path))
    os.kill(program.pid, signal.SIGINT)
    program.wait(timeout=30)
    eventually(lambda: not is_alive(pid))


def test_closing_the_tools_interrupts_and_leaves_the_background(instance: Path, tmp_path: Path) -> None:
    model = Model("closing", str(tmp_path))
    kept = model.background("echo kept; sleep 300")
    future = _under_way(model, lambda: checked(model.tools.terminal("echo up; sleep 300")), 2)
    model.tools.close()
    assert future.result(timeout=60)["status"] in ("interrupted", "error")
    with holdfast.connect() as hf:
        assert hf.inspect(kept).status == "running"
        hf.kill(session="closing")


def test_the_end_of_a_command_of_tools_that_died_goes_to_the_next_caller(instance: Path, tmp_path: Path) -> None:
    script = f"from holdfast.tools import terminal; terminal('touch {tmp_path}/up; sleep 1; echo late', session='heir')"
    program = subprocess.Popen([sys.executable, "-c", script])
    eventually(lambda: (tmp_path / "up").exists())
    program.kill()
    program.wait()
    with Model("heir", str(tmp_path)) as model:
        assert "late" in model.process("inbox", timeout=20)["notices"][0]
