"""Hooks: commands of the owner that run when something happens."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

import holdfast
from holdfast.daemon.hooks import description
from holdfast.errors import BadValue
from tests.support import eventually


def write_hook(home: Path, name: str, text: str, **files: str) -> Path:
    directory = home / "hooks" / name
    directory.mkdir(parents=True)
    for file, content in files.items():
        (directory / file.replace("_", ".")).write_text(content)
    (directory / "hook.toml").write_text(text)
    return directory


def test_a_command_runs_on_what_it_wants_and_on_nothing_else(home: Path) -> None:
    hook = write_hook(home, "ends", 'topics = ["process.ended"]\ncommand = "cat >> seen; echo $HOLDFAST_EVENT >> seen"')
    with holdfast.connect() as hf:
        for code in (3, 4):
            hf.wait(hf.run(f"exit {code}").id)

        def seen() -> list[str] | None:
            lines = (hook / "seen").read_text().splitlines() if (hook / "seen").exists() else []
            return lines if len(lines) == 4 else None

        first, topic, second, _ = eventually(seen)
    assert [json.loads(line)["exit_code"] for line in (first, second)] == [3, 4]
    assert topic == "process.ended"


def test_a_python_handler_gets_the_event(home: Path) -> None:
    hook = write_hook(
        home,
        "py",
        'topics = "made.*"\npython = "handler.py:heard"',
        handler_py="def heard(event):\n    open('seen', 'w').write(event['type'])\n",
    )
    with holdfast.connect() as hf:
        hf.publish("made.up")
        assert eventually(lambda: (hook / "seen").exists() and (hook / "seen").read_text()) == "made.up"


def test_a_slow_one_is_ended_and_a_broken_one_changes_nothing_else(home: Path) -> None:
    write_hook(home, "slow", 'topics = ["a"]\ncommand = "echo $$ > pid; sleep 600"\ntimeout = 0.2')
    write_hook(home, "broken", 'topics = ["a"]\ncommand = ["/nowhere/at/all"]')
    write_hook(home, "failing", 'topics = ["a"]\ncommand = "echo oh no; exit 3"')
    fine = write_hook(home, "fine", 'topics = ["a"]\ncommand = "touch seen"')
    with holdfast.connect() as hf:
        hf.publish("a")
        eventually((fine / "seen").exists)
        eventually(lambda: "hook-too-slow" in (home / "daemon.log").read_text())
        assert eventually(lambda: "oh no" in (home / "hooks" / "failing" / "hook.log").read_text())
        pid = int((home / "hooks" / "slow" / "pid").read_text())
        eventually(lambda: not Path(f"/proc/{pid}").exists())
        hf.publish("a")
        eventually(lambda: (home / "daemon.log").read_text().count("hook=failing") == 2)


def test_what_happened_while_the_daemon_was_dead_is_run_on_afterwards(home: Path) -> None:
    hook = write_hook(home, "ends", 'topics = ["process.ended"]\ncommand = "cat >> seen"')
    with holdfast.connect() as hf:
        hf.wait(hf.run("exit 1").id)
        eventually((hook / "seen").exists)
        slow = hf.run("sleep 0.3; exit 2")
        os.kill(hf.status()["pid"], signal.SIGKILL)
        hf.wait(slow.id)

        def codes() -> list[int] | None:
            found = [json.loads(line)["exit_code"] for line in (hook / "seen").read_text().splitlines()]
            return found if found[-1] == 2 else None

        assert list(dict.fromkeys(eventually(codes))) == [1, 2]  # the one under way at the kill may come again


@pytest.mark.parametrize(
    "text",
    [
        "",
        "topics = []\ncommand = 'x'",
        "topics = ['a']",
        "topics = ['a']\ncommand = ''",
        "topics = ['a']\ncommand = 5",
        "topics = ['a']\ncommand = 'x'\npython = 'a.py:b'",
        "topics = ['a']\npython = 'a.py'",
        "topics = ['']\ncommand = 'x'",
        "topics = ['a']\ncommand = 'x'\ntimeout = 0",
        "topics = ['a']\ncommand = 'x'\ntimeout = 'long'",
        "topics = ['a']\ncommand = 'x'\ncolour = 'green'",
        "topics = [",
    ],
)
def test_what_a_hook_cannot_mean_is_said(tmp_path: Path, text: str) -> None:
    (tmp_path / "hook.toml").write_text(text)
    with pytest.raises(BadValue, match=r"hook\.toml"):
        description.read("name", str(tmp_path))


def test_one_that_is_not_enabled_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "hook.toml").write_text("topics = ['a']\ncommand = 'x'\nenabled = false")
    assert description.read("name", str(tmp_path)) is None
