"""Claude Code itself, joined by `holdfast integrate`, with a scripted model: what the model gets to see."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integrations import programs
from tests.integrations.hosts import JOB, TOLD, Host, sessions, until_pending
from tests.integrations.scripted import Body, Call, Say, ScriptedModel, Step, seen

_START = Call("holdfast__terminal", {"command": JOB, "background": True, "notify_on_complete": True})
_ELSEWHERE = Call("Bash", {"command": "echo elsewhere", "description": "Says elsewhere"})


def _after_the_end(host: Host, act: Say | Call) -> Step:
    """The model thinks until the job has ended."""

    def answer(body: Body) -> Say | Call:
        (host.project / "go").touch()
        until_pending()
        (host.project / "go").unlink()
        return act

    return answer


@pytest.mark.slow
@pytest.mark.parametrize("version", programs.CLAUDE_CODE)
def test_a_conversation_gets_notices_of_its_background_commands(home: Path, tmp_path: Path, version: str) -> None:
    with ScriptedModel() as model:
        host = Host(tmp_path / "person", model)
        host.integrate("claude-code")

        # A job in the background, other work with other tools, and the end is told; another is left running.
        model.script(_START, _after_the_end(host, _ELSEWHERE), _START, Say("later"))
        conversation = str(host.claude(version, "begin")["session_id"])
        first, second, third, fourth = map(seen, model.asked)
        assert "proc_" not in first and "You are notified when it ends" in second and TOLD not in second
        assert third.count(TOLD) == 1 and "finished well" in third and "elsewhere" in third
        assert fourth.count(TOLD) == 1

        # Resumed, it hears what still runs; and it is not to stop before it has heard of the end.
        model.script(_after_the_end(host, Say("nothing left to do")), Say("I was told"))
        told = host.claude(version, "and now?", "--resume", conversation)
        assert (told["session_id"], told["result"]) == (conversation, "I was told")
        resumed, last = map(seen, model.asked[4:])
        assert "still runs" in resumed and "still runs" not in fourth
        # What a hook of the turn's end says, newer releases show in two places.
        assert resumed.count(TOLD) == 1 and last.count(TOLD) - 1 in (1, 2)

        (session,) = sessions().values()
        assert session["session"] == f"claude-{conversation}"
        assert (session["ended"], session["running"], session["pending"]) == (2, 0, 0)
