"""The example of an agent's loop, against a scripted service."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.integrations.hosts import JOB, TOLD, until_pending
from tests.integrations.scripted import Body, Call, Say, ScriptedModel, seen

_EXAMPLE = Path(__file__).resolve().parents[2] / "examples/openai_loop.py"
_JOB = Call("terminal", {"command": JOB, "background": True, "notify_on_complete": True})
_OTHER = Call("terminal", {"command": "echo other work"})


def _run(model: ScriptedModel, cwd: Path) -> str:
    told = {"OPENAI_BASE_URL": f"{model.url}/v1", "OPENAI_API_KEY": "none", "OPENAI_MODEL": "scripted"}
    done = subprocess.run(
        [sys.executable, _EXAMPLE, "begin"],
        env={**os.environ, **told},
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_an_end_comes_with_the_answer_of_another_tool(instance: Path, tmp_path: Path) -> None:
    def after_the_end(body: Body) -> Call:
        (tmp_path / "go").touch()
        until_pending()
        return _OTHER

    with ScriptedModel([_JOB, _OTHER, after_the_end, Say("all done")]) as model:
        assert _run(model, tmp_path) == "all done\n"
        assert [seen(body).count(TOLD) for body in model.asked] == [0, 0, 0, 1]
        assert model.asked[-1]["messages"][-1]["role"] == "tool"


def test_an_idle_model_gets_notices_between_turns(instance: Path, tmp_path: Path) -> None:
    def stop(body: Body) -> Say:
        (tmp_path / "go").touch()
        return Say("I wait")

    with ScriptedModel([_JOB, stop, Say("all done")]) as model:
        assert _run(model, tmp_path) == "I wait\nall done\n"
        assert [seen(body).count(TOLD) for body in model.asked] == [0, 0, 1]
        assert model.asked[-1]["messages"][-1]["role"] == "user"
