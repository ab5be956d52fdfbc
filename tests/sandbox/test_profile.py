"""`profile = "sandbox"`: commands of agents run in the sandbox unasked, and only leaving it asks."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import Client, CommandDenied, NoApprover
from holdfast.tools.sync import Tools
from tests.approvals.surfaces import NEVER, RISKY, surface
from tests.cli.calling import as_json, out, refusal
from tests.support import eventually

INSIDE = {"writable": [], "network": "none"}


@pytest.fixture
def operator(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The operator's policy, for a daemon that is yet to be started."""
    (tmp_path / "etc").mkdir()
    monkeypatch.setenv("HOLDFAST_POLICY_DIR", str(tmp_path / "etc"))
    return tmp_path / "etc" / "policy.toml"


@pytest.fixture
def policy(home: Path, operator: Path) -> Path:
    home.mkdir(mode=0o700)
    policy = home / "policy.toml"
    policy.write_text('profile = "sandbox"\n')
    return policy


@pytest.fixture
def hf(policy: Path, work: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    monkeypatch.chdir(work)
    with holdfast.connect(session="agent", strict=True) as client:
        yield client


def rule_of(refused: pytest.ExceptionInfo[NoApprover]) -> Any:
    assert refused.value.data is not None
    return refused.value.data["rule"]


def test_what_would_ask_runs_in_the_sandbox(hf: Client, work: Path) -> None:
    (work / "victim").mkdir()
    process = hf.run(f"{RISKY}; rm -rf ./victim; touch /etc/x; touch here", gate=True)
    ended = hf.wait(process.id, timeout=20)
    assert ended.sandbox == INSIDE
    assert "Read-only file system" in hf.logs(process.id).text
    assert (work / "here").exists()
    assert not (work / "victim").exists()
    assert process.notes[0].startswith("it runs in a sandbox, without network")


def test_what_is_harmless_runs_there_too(hf: Client) -> None:
    assert hf.run("echo hello", gate=True).sandbox == INSIDE
    assert hf.run(["echo", "hello"], gate=True).sandbox == INSIDE


def test_what_is_denied_is_denied(hf: Client) -> None:
    with pytest.raises(CommandDenied):
        hf.run(NEVER, gate=True)


def test_a_user_who_is_not_judged_runs_as_usual(hf: Client) -> None:
    with holdfast.connect() as user:
        assert user.run("true").sandbox is None


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"sandbox": False}, "leave-sandbox"),
        ({"sandbox": True, "network": "host"}, "sandbox-network"),
        ({"sandbox": True, "writable": ["/opt"]}, "sandbox-writable"),
        ({"stop_cmd": "true"}, "leave-sandbox"),
        ({"sudo": True}, "leave-sandbox"),
        ({"ready_http": "http://localhost:1/"}, "leave-sandbox"),
    ],
)
def test_leaving_asks(hf: Client, options: dict[str, Any], rule: str) -> None:
    with pytest.raises(NoApprover) as refused:
        hf.run("echo hello", gate=True, **options)
    assert rule_of(refused) == rule
    assert hf.ps(all=True) == []


def test_an_approved_command_leaves(hf: Client) -> None:
    with surface() as heard:
        process = hf.run("touch /tmp/holdfast-left && rm /tmp/holdfast-left", gate=True, sandbox=False)
        ended = hf.wait(process.id, timeout=20)
    assert (ended.exit_code, ended.sandbox) == (0, None)
    assert heard[0].why == "it is to run outside the sandbox"


def test_an_approval_to_leave_is_none_for_more_and_the_other_way_round(hf: Client) -> None:
    with surface(lambda client, request: client.approve(request, "session", by="tester")):
        hf.run("echo hello", gate=True, sandbox=True, network="host")
    assert hf.run("echo hello", gate=True, sandbox=True, network="host").sandbox == {"writable": [], "network": "host"}
    with pytest.raises(NoApprover):
        hf.run("echo hello", gate=True, sandbox=False)


def test_rules_of_the_user_hold(hf: Client, policy: Path) -> None:
    rules = '[[allow]]\nname = "uname"\nprogram = "uname"\n\n[[ask]]\nname = "date"\nprogram = "date"\n'
    policy.write_text(f'profile = "sandbox"\n\n{rules}')
    assert hf.run("uname -a", gate=True).sandbox is None
    assert hf.run("uname -a", gate=True, sandbox=False).sandbox is None
    assert hf.run("uname -a; id", gate=True).sandbox == INSIDE
    assert hf.run("uname -a > file", gate=True).sandbox == INSIDE
    with pytest.raises(NoApprover) as refused:
        hf.run("date", gate=True)
    assert rule_of(refused) == "date"


def test_grants_of_the_policy(hf: Client, policy: Path) -> None:
    with tempfile.TemporaryDirectory(dir="/var/lib") as cache:
        table = f'[sandbox]\nnetwork = "host"\nwritable = ["{cache}", "/var/lib/holdfast-none"]\n'
        policy.write_text(f'profile = "sandbox"\n{table}')
        process = hf.run(f"touch {cache}/x", gate=True)
        assert process.sandbox == {"writable": [cache], "network": "host"}
        assert hf.wait(process.id, timeout=20).exit_code == 0
        asked = hf.run("true", gate=True, sandbox=True, network="host", writable=[cache])
        assert asked.sandbox == {"writable": [cache], "network": "host"}


@pytest.mark.parametrize("profile", ["strict", "default"])
def test_the_operators_profile_decides(hf: Client, operator: Path, profile: str) -> None:
    operator.write_text(f'profile = "{profile}"\n')
    with pytest.raises(NoApprover):
        hf.run(RISKY, gate=True)


def test_the_operators_rules_hold_in_the_sandbox(hf: Client, operator: Path) -> None:
    operator.write_text('[[ask]]\nname = "no-id"\nprogram = "id"\n')
    with pytest.raises(NoApprover) as refused:
        hf.run("id", gate=True)
    assert rule_of(refused) == "no-id"


@pytest.mark.parametrize(
    "text",
    [
        'profile = "sandbox"\n[sandbox]\nnetwork = "bridge"\n',
        'profile = "sandbox"\n[sandbox]\nwritable = ["relative"]\n',
        'profile = "sandbox"\n[sandbox]\nwritable = [1]\n',
        'profile = "sandbox"\n[sandbox]\nother = 1\n',
        'profile = "sandbox"\nsandbox = 1\n',
        '[sandbox]\nnetwork = "host"\n',
        'profile = "box"\n',
    ],
)
def test_an_invalid_policy_asks_about_everything(hf: Client, policy: Path, text: str) -> None:
    policy.write_text(text)
    with pytest.raises(NoApprover, match="policy cannot be read"):
        hf.run("echo hello", gate=True)
    assert "policy.toml" in refusal("judge", "true")


def test_where_there_is_no_sandbox_it_asks(policy: Path, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_NO_FORK_SERVER", "1")
    with holdfast.connect(session="agent", strict=True) as client, pytest.raises(NoApprover) as refused:
        client.run("echo hello", gate=True, cwd=work)
    assert refused.value.data is not None
    assert refused.value.data["why"].startswith("it cannot run in the sandbox: the keeper has no fork server")


def test_a_restart_stays_inside_and_one_outside_asks(hf: Client) -> None:
    process = hf.run("exit 3", gate=True)
    hf.wait(process.id, timeout=20)
    assert hf.restart(process.id).sandbox == INSIDE
    with surface():
        left = hf.run("exit 4", gate=True, sandbox=False)
    hf.wait(left.id, timeout=20)
    with pytest.raises(NoApprover):
        hf.restart(left.id)


def test_exec_of_a_process_outside_is_put_into_the_sandbox(hf: Client) -> None:
    with surface():
        left = hf.run("sleep 60", gate=True, sandbox=False)
    assert hf.exec(left.id, "true", gate=True).sandbox == INSIDE
    hf.kill(left.id, grace=0.1)


def test_text_typed_into_a_shell_in_the_sandbox_is_not_asked_about(hf: Client, work: Path) -> None:
    shell = hf.run("bash", gate=True, stdin=True)
    hf.send(shell.id, f"{RISKY}; touch typed")
    eventually((work / "typed").exists)
    hf.kill(shell.id, grace=0.1)


def test_judge_says_which(policy: Path) -> None:
    assert as_json("judge", "--json", RISKY) == {
        "action": "allow", "rule": "sandbox", "level": "user", "reason": "it runs in the sandbox", "sandbox": INSIDE,
        "part": "git -C /nonexistent reset --hard", "word": "--hard",
    }  # fmt: skip
    assert as_json("judge", "--json", "echo hello")["sandbox"] == INSIDE
    assert as_json("judge", "--json", NEVER)["action"] == "deny"
    assert as_json("judge", "--json", NEVER)["sandbox"] is None
    assert as_json("judge", "--json", "--profile", "default", RISKY)["action"] == "ask"
    assert "sandbox network none" in out("judge", RISKY)
    policy.write_text("")
    assert as_json("judge", "--json", RISKY)["sandbox"] is None
    assert as_json("judge", "--json", "--profile", "sandbox", RISKY)["sandbox"] == INSIDE


def test_the_command_line_can_ask_to_leave(policy: Path) -> None:
    assert as_json("run", "-d", "--json", "--gate", "--", "true")["sandbox"] == INSIDE
    assert "outside the sandbox" in refusal("run", "--gate", "--no-sandbox", "--", "true", code=125)
    assert "either --sandbox or --no-sandbox" in refusal("run", "--sandbox", "--no-sandbox", "--", "true")


def test_the_tool_of_a_model(policy: Path, work: Path) -> None:
    (work / "below").mkdir()
    with Tools(session="agent", cwd=str(work)) as tools:
        first = json.loads(tools.terminal("cd below && touch here && touch /etc/x"))
        assert "Read-only file system" in first["output"], first
        assert "sandbox" in first["note"]
        assert (work / "below" / "here").exists()
        assert json.loads(tools.terminal("pwd"))["output"] == f"{work}/below\n"
        refused = json.loads(tools.terminal("echo hello", sandbox=False))
        assert refused["reason"] in ("no_approver", "approval_required"), refused
