"""approvals, approve, deny and audit as a person calls them."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.approvals.surfaces import RISKY
from tests.cli.calling import Terminal, as_json, out, refusal
from tests.support import eventually, run_cli


@pytest.fixture
def asked(home: Path) -> str:
    """The id of a request that nobody has answered."""
    said = as_json("run", "--gate", "-d", "--json", "-c", RISKY, code=125)
    assert said["error"]["code"] == "no_approver"
    request: str = said["error"]["data"]["approval"]["id"]
    assert said["error"]["next"] == f"holdfast approve {request}, then call again"
    return request


def ask() -> subprocess.Popen[bytes]:
    """A start that needs approval; it says `done` when it is let."""
    call = [sys.executable, "-m", "holdfast", "run", "--gate", "-c", f"{RISKY}; echo done"]
    return subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def said(start: subprocess.Popen[bytes]) -> bytes:
    assert start.stdout is not None
    return start.stdout.read()


def test_a_request_is_listed_approved_and_used(asked: str) -> None:
    shown = out("approvals")
    assert asked in shown and RISKY in shown and "pending" in shown
    assert as_json("approve", asked, "--json")["scope"] == "once"
    assert "once" in out("approvals")
    assert out("run", "--gate", "-d", "-c", RISKY).startswith("proc_")
    assert as_json("approvals", "--json") == []
    assert [one["state"] for one in as_json("approvals", "--all", "--json")] == ["approved"]


def test_a_prefix_will_do_and_deny_takes_it_back(asked: str) -> None:
    assert run_cli("approve", asked[:12], "--always").returncode == 0
    assert out("run", "--gate", "-d", "-c", RISKY).startswith("proc_")
    assert run_cli("deny", asked[:12]).returncode == 0
    refusal("run", "--gate", "-d", "-c", RISKY)
    assert "is denied" in refusal("approve", asked)


def test_misuse_is_one_line(asked: str) -> None:
    refusal("approve")
    refusal("approve", asked, "--session", "--always")
    refusal("approve", "appr_000000000000")
    refusal("deny", "nonsense")
    refusal("approvals", "extra")
    refusal("approvals", "--follow")
    refusal("approvals", "--follow", "--all")
    refusal("audit", "-n", "0")


def test_a_hostile_command_cannot_write_to_the_terminal(home: Path) -> None:
    run_cli("run", "--gate", "-d", "-c", f"{RISKY} $'\x1b[2J\u202e'")
    shown = out("approvals")
    assert "\x1b" not in shown and "\u202e" not in shown


@pytest.mark.parametrize("answer", [b"approve\r", b"yes\r", b"Y\r"], ids=repr)
def test_on_a_terminal_a_clear_yes_approves(home: Path, answer: bytes) -> None:
    with Terminal("approvals", "--follow") as person:
        person.see("waiting for requests")
        with ask() as start:
            person.see("> ")
            person.type(answer)
            person.see("is approved: once")
            person.type(b"\x04")
            assert person.end() == 0
            assert b"done" in said(start)


@pytest.mark.parametrize("answer", [b"\r", b"no\r", b"yy\r", b"yes please\r", b"\x04", b"approve it\r"], ids=repr)
def test_anything_else_is_a_no(home: Path, answer: bytes) -> None:
    with Terminal("approvals", "--follow") as person:
        person.see("waiting for requests")
        with ask() as start:
            person.see("> ")
            person.type(answer)
            person.see("is denied")
            assert b"the user denied" in said(start)
    assert [one["state"] for one in as_json("approvals", "--all", "--json")][-1] == "denied"


def test_what_was_typed_before_it_was_shown_is_no_answer(home: Path) -> None:
    with Terminal("approvals", "--follow") as person:
        person.see("waiting for requests")
        person.type(b"approve")
        asking = [sys.executable, "-m", "holdfast", "run", "--gate", "-c", RISKY]
        with subprocess.Popen(asking, stderr=subprocess.PIPE) as start:
            person.see("> ")
            person.type(b"\r")
            person.see("is denied")
            assert start.wait(20) == 125


def test_who_waits_behind_another_is_asked_next(home: Path) -> None:
    """Also where something older was never answered: it can wait."""
    run_cli("run", "--gate", "-d", "-c", f"{RISKY} old")
    asking = [sys.executable, "-m", "holdfast", "run", "--gate", "-c", f"{RISKY} new"]
    with Terminal("approvals", "--follow") as person:
        person.see("> ")
        with subprocess.Popen(asking, stderr=subprocess.PIPE) as start:
            person.see("next: appr_")
            person.type(b"\r")
            person.see("is denied")
            person.see("> ")
            person.type(b"\r")
            assert start.stderr is not None and b"the user denied" in start.stderr.read()


def test_a_long_command_is_shortened_in_what_is_printed(home: Path) -> None:
    run_cli("run", "--gate", "-d", "-c", f"{RISKY} {'x ' * 30_000}")
    assert len(out("approvals")) < 2000
    (request,) = as_json("approvals", "--json")
    assert len(request["command"]) > 60_000
    assert len(run_cli("deny", request["id"]).stderr) < 400


def test_a_program_can_follow_as_well(home: Path) -> None:
    """Whether it was there before the question or came after it."""
    follow = [sys.executable, "-m", "holdfast", "approvals", "--follow", "--json"]
    with subprocess.Popen(follow, stdout=subprocess.PIPE) as surface, ask() as start:
        assert surface.stdout is not None
        request = json.loads(surface.stdout.readline())
        eventually(lambda: as_json("approvals", "--json")[0]["shown_at"])
        out("approve", request["id"])
        heard = said(start)
        if b"no approver is connected" in heard:
            with ask() as again:
                heard = said(again)
        assert b"done" in heard
        surface.kill()


def test_the_audit_log_is_complete(asked: str, home: Path) -> None:
    out("approve", asked)
    out("run", "--gate", "-d", "-c", RISKY)
    entries = as_json("audit", "--json")
    assert [entry["what"] for entry in entries] == ["approval.requested", "approval.decided", "approval.used"]
    assert (entries[1]["by"], entries[1]["state"], entries[0]["command"]) == ("cli", "approved", RISKY)
    assert asked in out("audit")
    assert as_json("audit", "--verify", "--json")["entries"] == 3
    assert "3 entries" in out("audit", "--verify")


@pytest.mark.parametrize(
    ("harm", "named"),
    [
        ("UPDATE audit SET entry = replace(entry, 'approved', 'denied') WHERE seq = 2", "entry 2 was changed"),
        ("UPDATE audit SET at = at + 1 WHERE seq = 1", "entry 1 was changed"),
        ("DELETE FROM audit WHERE seq = 2", "entry 2 is missing"),
        ("DELETE FROM audit WHERE seq = 3", "entry 3 and what follows it are missing"),
        ("DELETE FROM audit", "entry 1 and what follows it are missing"),
        ("UPDATE audit SET prev = hash, hash = prev WHERE seq = 3", "entry 3 was changed"),
    ],
)
def test_what_was_changed_or_is_missing_is_found(asked: str, home: Path, harm: str, named: str) -> None:
    out("approve", asked)
    out("run", "--gate", "-d", "-c", RISKY)
    with sqlite3.connect(home / "store.db", timeout=10) as store:
        store.execute(harm)
    store.close()
    assert named in refusal("audit", "--verify")
    assert as_json("audit", "--verify", "--json", code=125)["error"]["code"] == "audit_broken"


def test_judge_explains_a_verdict_and_runs_nothing(home: Path, tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    asked = as_json("judge", "--json", "--cwd", "/home/user/project", "cd .. && git push --force")
    assert asked == {
        "action": "ask",
        "rule": "git-force",
        "reason": "rewrites or deletes what others have",
        "part": "git push --force",
        "word": "--force",
        "level": "default",
        "sandbox": None,
    }
    allowed = as_json("judge", "ls", "--json")
    assert (allowed["action"], allowed["rule"], allowed["level"]) == ("allow", None, None)
    assert out("judge", "--", "rm", "-rf", str(tmp_path / "precious"), "/") == (
        "deny\n  rule    delete-system (default)\n  reason  deletes the system or a whole home directory\n"
        f"  part    rm -rf {tmp_path / 'precious'} /\n  word    /\n"
    )
    assert (tmp_path / "precious").exists() and as_json("approvals", "--json") == []


def test_judge_uses_the_policy_of_the_instance_and_its_profile(home: Path) -> None:
    assert as_json("judge", "frobnicate", "--json")["action"] == "allow"
    assert as_json("judge", "frobnicate", "--profile", "strict", "--json")["rule"] == "strict"
    (home / "policy.toml").write_text('profile = "strict"\n')
    assert as_json("judge", "frobnicate", "--json")["level"] == "user"
    assert as_json("judge", "frobnicate", "--profile", "default", "--json")["action"] == "allow"
    (home / "policy.toml").write_text("profile = 1\n")
    assert "profile has to be default, strict or sandbox" in refusal("judge", "ls")


@pytest.mark.parametrize("is_file_kept", [True, False])
def test_a_log_that_was_lost_with_a_damaged_store_is_found(asked: str, home: Path, is_file_kept: bool) -> None:
    out("approve", asked)
    assert as_json("audit", "--verify", "--json")["entries"] > 0
    out("daemon", "stop")
    for path in home.glob("store.db*"):
        path.unlink() if path.name != "store.db" else path.write_bytes(b"no database" * 1000)
    assert "set aside" in refusal("audit", "--verify")
    (aside,) = home.glob("store.db.corrupt-*")
    if not is_file_kept:
        aside.unlink()
    out("daemon", "stop")
    assert "set aside" in refusal("audit", "--verify")
    assert as_json("audit", "--verify", "--json", code=125)["error"]["code"] == "audit_broken"
