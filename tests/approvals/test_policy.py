"""What is judged, and by whose rules: nothing passes because nobody was there to say no."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import Client, CommandDenied, NoApprover
from tests.approvals.surfaces import NEVER, RISKY


@pytest.fixture
def operator(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the operator's policy is, for a daemon that is yet to be started."""
    monkeypatch.setenv("HOLDFAST_POLICY_DIR", str(tmp_path))
    return tmp_path / "policy.toml"


@pytest.fixture
def hf(operator: Path) -> Iterator[Client]:
    with holdfast.connect(session="agent", strict=True) as client:
        yield client


def told(error: holdfast.HoldfastError) -> dict[str, Any]:
    assert error.data is not None
    return error.data


def test_harmless_commands_start_and_are_noted(hf: Client) -> None:
    process = hf.run("echo hello", gate=True)
    assert hf.wait(process.id, timeout=60).exit_code == 0
    with holdfast.connect() as person:
        entries = [one for one in person.audit()["entries"] if one["what"] == "gate.allowed"]
        assert [(one["process"], one["command"]) for one in entries] == [(process.id, "echo hello")]


def test_what_can_never_be_meant_is_denied_by_rule(hf: Client) -> None:
    with pytest.raises(CommandDenied) as refused:
        hf.run(NEVER, gate=True)
    data = told(refused.value)
    assert (data["reason"], data["approval"]) == ("policy", None) and data["rule"] and data["why"]
    assert hf.ps(all=True) == []
    with holdfast.connect() as person:
        assert person.audit()["entries"][-1]["what"] == "gate.denied"


@pytest.mark.parametrize(
    "how",
    [
        {"command": "true", "stop_cmd": RISKY},
        {"command": "import os", "shell": "/usr/bin/python3"},
        {"command": "true", "env": {"LD_PRELOAD": "/tmp/x.so"}},
        {"command": RISKY.split()},
        {"command": ["bash", "-c", RISKY]},
        {"command": "g'i't -C /nonexistent re\\set --ha''rd"},
        {"command": "if ("},
    ],
    ids=["stop command", "other shell", "steering variable", "argv", "argv of a shell", "quoted", "unparsable"],
)
def test_other_ways_to_the_same_ask_as_well(hf: Client, how: dict[str, Any]) -> None:
    with pytest.raises(NoApprover):
        hf.run(how.pop("command"), gate=True, **how)


def test_an_operators_no_holds_for_everyone(operator: Path, hf: Client) -> None:
    operator.write_text('[[deny]]\nname = "no-uname"\nprogram = "uname"\nwhy = "the operator says so"\n')
    for client, gate in ((hf, True), (hf, False)):
        with pytest.raises(CommandDenied) as refused:
            client.run("echo x | uname -a", gate=gate)
        assert told(refused.value)["rule"] == "no-uname"
    with holdfast.connect() as person:
        with pytest.raises(CommandDenied):
            person.run(["uname", "-a"])
        assert person.wait(person.run("echo harmless").id, timeout=60).exit_code == 0
    operator.unlink()
    with holdfast.connect() as person:
        assert person.wait(person.run("uname").id, timeout=60).exit_code == 0, "read again when it changes"


def test_an_operators_no_is_not_lifted_by_an_approval(operator: Path, hf: Client) -> None:
    with pytest.raises(NoApprover) as refused:
        hf.run(RISKY, gate=True)
    with holdfast.connect() as person:
        person.approve(told(refused.value)["approval"]["id"], "always")
    operator.write_text('[[deny]]\nname = "no-reset"\nprogram = "git"\nsubcommand = "reset"\nwhy = "never"\n')
    with pytest.raises(CommandDenied):
        hf.run(RISKY, gate=True)


def test_a_policy_that_cannot_be_read_lets_nothing_pass(operator: Path, hf: Client, home: Path) -> None:
    (home / "policy.toml").write_text("[[allow]\n")
    with pytest.raises(NoApprover) as asked:
        hf.run("echo hello", gate=True)
    assert "policy" in told(asked.value)["why"]
    (home / "policy.toml").unlink()
    operator.write_text("[[deny]\n")
    with holdfast.connect() as person, pytest.raises(CommandDenied) as refused:
        person.run("echo hello")
    assert str(operator) in refused.value.message


def test_an_operators_policy_that_cannot_be_looked_at_is_not_none(operator: Path, hf: Client) -> None:
    with holdfast.connect() as person:
        assert person.wait(person.run("echo hello").id, timeout=60).exit_code == 0
        operator.symlink_to(operator)
        with pytest.raises(CommandDenied) as refused:
            person.run("echo hello")
        assert str(operator) in refused.value.message
        with pytest.raises(NoApprover):
            hf.run("echo hello", gate=True)


def test_running_again_what_was_approved_once_asks_again(hf: Client, home: Path) -> None:
    with pytest.raises(NoApprover) as refused:
        hf.run(RISKY, gate=True)
    with holdfast.connect() as person:
        person.approve(told(refused.value)["approval"]["id"])
        process = hf.run(RISKY, gate=True)
        with pytest.raises(NoApprover) as again:
            hf.restart(process)
        assert told(again.value)["approval"]["action"] == "restart"
        person.approve(told(again.value)["approval"]["id"])
        assert hf.restart(process).restarts == 1
        with pytest.raises(NoApprover):
            hf.restart(process)
        assert person.restart(process).restarts == 2
