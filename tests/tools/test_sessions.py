"""The tools of many sessions in one program: what is let go, what is closed, and what a fork takes along."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.mcp.calls import ToolKey, tool_pool
from holdfast.tools import AsyncTools, Tools
from holdfast.tools import sync as calls
from tests.support import eventually, run_cli
from tests.tools.model import Model, checked

FORKED = """
import asyncio, os
from holdfast.tools import aterminal, terminal
terminal("echo parent")
if (child := os.fork()) == 0:
    print(asyncio.run(aterminal("echo from the child")), flush=True)
    os._exit(0)
os.waitpid(child, 0)
"""


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Two sessions are held open, and no more."""
    calls.close_all()
    monkeypatch.setattr(calls, "_MOST", 2)
    yield
    calls.close_all()


def _under_way(session: str, call: Callable[[], str]) -> Future[dict[str, Any]]:
    """A call in a thread, once its command runs."""
    future: Future[dict[str, Any]] = Future()
    threading.Thread(target=lambda: future.set_result(checked(call())), daemon=True).start()
    with holdfast.connect() as hf:
        eventually(lambda: [one for one in hf.ps(session=session) if one.output_bytes])
    return future


def test_a_session_with_a_call_under_way_is_not_let_go(instance: Path, few: None, tmp_path: Path) -> None:
    command = f"echo begun; until [ -e {tmp_path}/go ]; do sleep 0.05; done; echo done"
    future = _under_way("busy", lambda: calls.terminal(command, session="busy"))
    for number in range(4):
        checked(calls.process("list", session=f"idle-{number}"))
    (tmp_path / "go").touch()
    assert future.result(timeout=30)["output"] == "begun\ndone\n"


def test_sessions_of_a_pool_are_let_go_while_others_are(instance: Path, few: None) -> None:
    async def main() -> list[str]:
        sessions = tool_pool(most=2)

        async def status(session: str) -> str:
            async with sessions.using(ToolKey(session, 50.0)) as tools:
                return str((await tools.answer("process", {"action": "list"}))["status"])

        try:
            first = [await status("x"), await status("y")]
            return first + await asyncio.gather(*map(status, "pqrstu"))
        finally:
            await sessions.close()

    assert asyncio.run(main()) == ["ok"] * 8


def test_a_call_that_is_under_way_at_the_close_is_answered(instance: Path) -> None:
    tools = Tools("closed")
    calls_under_way = [_under_way("closed", lambda: tools.terminal("echo begun; sleep 300"))]
    waited = Future[dict[str, Any]]()
    threading.Thread(target=lambda: waited.set_result(checked(tools.process("inbox", timeout=60))), daemon=True).start()
    tools.close()
    for future in calls_under_way:
        assert future.result(timeout=60)["status"] == "interrupted"
    assert waited.result(timeout=60)["status"] in ("interrupted", "ok")
    with holdfast.connect() as hf:
        eventually(lambda: not hf.ps(session="closed"))
    tools.close()


def test_a_fork_has_tools_of_its_own(instance: Path) -> None:
    said = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=30)
    assert checked(said.stdout)["output"] == "from the child\n", said.stderr


def test_a_cancelled_call_reports_no_other_failure(home: Path) -> None:
    async def main() -> None:
        async with AsyncTools("given-up") as tools:
            call = asyncio.create_task(tools.terminal("echo begun; sleep 300"))
            with holdfast.connect("given-up") as hf:
                await asyncio.to_thread(eventually, lambda: [one for one in hf.ps() if one.output_bytes])
            assert tools._opened is not None
            tools._opened.client.kill = tools._opened.client.inspect = _fails  # type: ignore[method-assign, assignment]
            call.cancel()
            await asyncio.wait([call], timeout=60)
            assert call.cancelled()

    asyncio.run(main())


async def _fails(*_: object, **__: object) -> None:
    raise holdfast.HoldfastError("nobody is there")


@pytest.mark.parametrize("odd", ["soon", "", "nan", "inf", "-1"])
def test_unexpected_labels_change_no_answer(instance: Path, tmp_path: Path, odd: str) -> None:
    with Model(f"odd-{odd}", str(tmp_path)) as model, holdfast.connect(model.session) as hf:
        labels = {"holdfast.window": odd, "holdfast.call": "mine"}
        running, ended = (hf.run(command, labels=labels, notify="never") for command in ("sleep 300", "true"))
        hf.wait(ended)
        told = run_cli("interrupt", "--session", model.session)
        assert (told.returncode, told.stdout.decode()) == (0, f"{running.id}\n")
        listed = {row["session_id"] for row in model.process("list")["processes"]}
        assert listed == {running.id, ended.id}
        hf.kill(running)
