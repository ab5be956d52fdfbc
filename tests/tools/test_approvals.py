"""Commands that need a person: what the model is told, and what an interrupt does meanwhile."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import holdfast
from tests.support import eventually
from tests.tools.model import Model


def test_without_an_approver_it_is_not_run_and_the_answer_has_the_next_step(model: Model, tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    answer = model.terminal("rm -rf ~/precious-things ./precious")
    assert (answer["status"], answer["reason"]) == ("denied", "no_approver")
    assert f"holdfast approve {answer['approval']}" in answer["next"]
    assert (tmp_path / "precious").exists()
    with holdfast.connect() as hf:
        hf.approve(answer["approval"])
    assert model.terminal("rm -rf ~/precious-things ./precious")["exit_code"] == 0, "the same command, once"
    assert model.terminal("rm -rf ~/precious-things ./precious")["reason"] == "no_approver"


def test_what_can_never_be_meant_is_denied(model: Model) -> None:
    answer = model.terminal("rm -rf /", background=True)
    assert (answer["status"], answer["reason"]) == ("denied", "command_denied")


def test_what_is_typed_into_a_shell_is_judged(model: Model) -> None:
    process_id = model.background("bash")
    answer = model.process("submit", process_id, "rm -rf /etc")
    assert answer["status"] in ("denied", "approval_required")
    assert model.process("submit", process_id, "echo fine")["reason"] == "written"
    model.process("kill", process_id)


def test_an_interrupt_withdraws_the_question(model: Model) -> None:
    with holdfast.connect() as hf, hf.follow_approvals(session=model.session) as requests:
        answers: list[dict[str, Any]] = []
        call = threading.Thread(target=lambda: answers.append(model.terminal("rm -rf ~/precious-things")))
        call.start()
        request = next(iter(requests))
        hf.approval_shown(request.id)
        before = time.monotonic()
        model.tools.interrupt()
        call.join(timeout=30)
        assert time.monotonic() - before < 20
        assert answers[0]["status"] == "interrupted" and "not started" in answers[0]["note"]
        eventually(lambda: [one.state for one in hf.approvals(all=True) if one.id == request.id] == ["withdrawn"])
