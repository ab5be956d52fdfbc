"""`holdfast down`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.calling import as_json, out, refusal, until_output
from tests.support import run_cli

FILE = """
[project]
name = "ends"
[processes.db]
command = "exec sleep 1000"
[processes.web]
command = "trap '' TERM; echo on; while :; do sleep 0.05; done"
depends_on = { db = "started" }
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "holdfast.toml").write_text(FILE)
    monkeypatch.chdir(tmp_path)
    assert run_cli("up", "-d").returncode == 0
    until_output("ends.web")
    return tmp_path


def running() -> list[str]:
    return [process["name"] for process in as_json("ps", "--json", "--task", "project:ends")]


def test_it_ends_all_and_says_how() -> None:
    done = run_cli("down", "--grace", "2.2")
    assert done.returncode == 0, done
    said = done.stderr.decode()
    assert said.index("web: stopping") < said.index("web: ended after 2.") < said.index("db: stopping")
    assert "web: has been asked to end 2." in said and "is waited for" in said and "by force" in said
    assert running() == []
    assert out("logs", "ends.web") == "on\n"
    assert b"no process of project ends runs" in run_cli("down").stderr


def test_some_of_it() -> None:
    assert run_cli("down", "--grace", "0", "web").returncode == 0
    assert running() == ["ends.db"]
    assert "project ends has no process 'wbe'" in refusal("down", "wbe")


def test_json_is_an_object_a_line() -> None:
    lines = [json.loads(line) for line in out("down", "--json", "--grace", "0").splitlines()]
    assert [(line["event"], line["member"]) for line in lines] == [
        ("stopping", "web"),
        ("ended", "web"),
        ("stopping", "db"),
        ("ended", "db"),
    ]
    assert lines[1]["process"]["forced"] is True


def test_a_file_with_mistakes_or_none_at_all(here: Path) -> None:
    (here / "holdfast.toml").write_text("[project]\nname = 'ends'\n[processes.x]\nenv_file = 'none'")
    assert run_cli("down", "--grace", "0", "db").returncode == 0
    (here / "holdfast.toml").unlink()
    assert "no holdfast.toml or Procfile" in refusal("down")
    assert "cannot be called" in refusal("down", "-p", "../../x")
    assert run_cli("down", "--grace", "0", "-p", "ends").returncode == 0
    assert running() == []
