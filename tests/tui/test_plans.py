"""The plan of an agent that is another program: the newest one of a turn is shown, step by step."""

from __future__ import annotations

import json
from pathlib import Path

from holdfast.session_log import SessionLog
from tests.tui.stage import Stage, on_stage


def _log_plan(log: SessionLog, number: int, title: str, text: str) -> None:
    call = {"id": f"plan-{number}", "name": "plan", "arguments": json.dumps({"title": title})}
    log.append("assistant", text="", calls=[call])
    log.append("tool_start", call=call["id"], name="plan", process=None)
    log.append("tool_result", call=call["id"], name="plan", status="done", text=text, is_error=False)


def _begin(home: Path, session: str, **settings: str) -> SessionLog:
    log = SessionLog(str(home), session)
    log.append("settings", model="m", cwd="/", tools=[], **settings)
    log.append("user", text="do it", input="in_1", seq=1)
    return log


def test_the_newest_plan_of_a_turn_replaces_the_ones_before(instance: Path) -> None:
    with _begin(instance, "A", acp="program") as log:
        _log_plan(log, 1, "1 of 3 done", "✓ read the code\n● write it\n○ run the \x1b[2Jtests")
        _log_plan(log, 2, "2 of 3 done", "✓ read the code\n✓ write it\n● run the \x1b[2Jtests")
        log.append("end", reason="done")
        log.append("user", text="and now something else", input="in_2", seq=2)
        _log_plan(log, 3, "0 of 1 done", "● something else")

    async def act(ui: Stage) -> None:
        await ui.sessions_show("A")
        await ui.sees("plan  2 of 3 done", "✓ write it", "● run the [2Jtests", "plan  0 of 1 done")
        assert "1 of 3 done" not in ui.text and "○" not in ui.line("tests")
        assert ui.text.index("2 of 3") < ui.text.index("and now") < ui.text.index("0 of 1")

    on_stage(act)


def test_a_tool_of_that_name_is_a_tool(instance: Path) -> None:
    with _begin(instance, "A") as log:
        _log_plan(log, 1, "a trip", "to the sea")

    async def act(ui: Stage) -> None:
        await ui.sessions_show("A")
        await ui.sees("▸ plan  a trip")
        assert "to the sea" not in ui.text

    on_stage(act)
