"""Codex itself, joined by `holdfast integrate`, with a scripted model: what the model gets to see."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integrations import programs
from tests.integrations.hosts import JOB, TOLD, Host, sessions, until_pending
from tests.integrations.scripted import Body, Call, Say, ScriptedModel, seen

_START = Call("terminal", {"command": JOB, "background": True, "notify_on_complete": True})
_OTHER = Call("terminal", {"command": "echo other work"})


@pytest.mark.slow
@pytest.mark.parametrize("version", programs.CODEX)
def test_the_end_of_a_background_job_comes_with_a_later_answer(home: Path, tmp_path: Path, version: str) -> None:
    with ScriptedModel() as model:
        host = Host(tmp_path / "person", model)
        host.configure_codex()
        host.integrate("codex")

        def other_work_after_the_end(body: Body) -> Call:
            (host.project / "go").touch()
            until_pending()
            return _OTHER

        model.script(_START, _OTHER, other_work_after_the_end, Say("I was told"))
        assert "I was told" in host.codex(version, "begin")
        first, second, third, last = map(seen, model.asked)
        assert "proc_" not in first and "You are notified when it ends" in second
        assert "other work" in third and TOLD not in third
        assert last.count(TOLD) == 1 and "finished well" in last
        (session,) = sessions().values()
        assert (session["ended"], session["running"], session["pending"]) == (3, 0, 0)


if programs.IS_FULL:  # older ones have no hooks

    @pytest.mark.slow
    @pytest.mark.parametrize("version", programs.CODEX[1:])
    def test_hooks_deliver_an_end_when_the_model_is_about_to_stop(home: Path, tmp_path: Path, version: str) -> None:
        """Trusted, that is: Codex asks the person once, and never runs others."""
        with ScriptedModel() as model:
            host = Host(tmp_path / "person", model)
            host.configure_codex()
            host.integrate("codex")

            def stop_after_the_end(body: Body) -> Say:
                (host.project / "go").touch()
                until_pending()
                return Say("nothing left to do")

            model.script(_START, stop_after_the_end, Say("I was told"))
            assert "I was told" in host.codex(version, "begin", "--dangerously-bypass-hook-trust")
            assert [seen(body).count(TOLD) for body in model.asked] == [0, 0, 1]
