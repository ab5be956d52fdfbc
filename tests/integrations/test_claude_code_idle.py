"""Claude Code at its prompt: nobody types, a job ends, and the model is woken."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import holdfast
from tests.integrations import programs
from tests.integrations.hosts import JOB, TOLD, Host, sessions
from tests.integrations.scripted import Call, Say, ScriptedModel, seen
from tests.support import end_instance, eventually

_START = Call("holdfast__terminal", {"command": JOB, "background": True, "notify_on_complete": True})


class Prompt:
    """Claude Code on a terminal, as a person has it before them."""

    def __init__(self, hf: holdfast.Client, process: str) -> None:
        self._hf = hf
        self._process = process

    def until(self, text: str, timeout: float = 30.0, is_there: bool = True) -> None:
        """Until the screen shows that text, or no longer does."""
        try:
            eventually(lambda: (text in self._screen()) is is_there, timeout=timeout, pause=0.05)
        except AssertionError:
            raise AssertionError(f"no {text!r} on\n{self._screen()}") from None

    def type(self, text: str) -> None:
        self._hf.send(self._process, text, enter=False)
        self.until(text)
        self._hf.send(self._process, "\r", enter=False)

    def clear(self, last: str) -> None:
        """Begin another conversation. An Enter that comes while the menu opens only picks from it: then once more."""
        self.type("/clear")

        def is_done() -> bool:
            screen = self._screen()
            if "(no content)" in screen or (last not in screen and "/clear" not in screen):
                return True
            self._hf.send(self._process, "\r", enter=False)
            return False

        eventually(is_done, timeout=30.0, pause=1.0)

    def until_connected(self) -> None:
        """Until it has the tools: a person types later than a test does."""
        self.type("/mcp")
        self.until("✔", timeout=60.0)
        self._hf.send(self._process, "\x1b", enter=False)
        self.until("✔", is_there=False)

    def _screen(self) -> str:
        return self._hf.screen(self._process).text.replace("\xa0", " ")


@contextmanager
def _at_the_prompt(host: Host, version: str) -> Iterator[Prompt]:
    _answer_first_questions(host)
    # The terminal is that of another instance: a caller within a held command is bound to the session of that command.
    terminal = host.home / "terminal"
    free = ["env", "-u", "HOLDFAST_ID", "-u", "HOLDFAST_SESSION", f"HOLDFAST_HOME={os.environ['HOLDFAST_HOME']}"]
    command = [*free, *programs.claude_code(version), "--allowedTools", "mcp__holdfast__terminal"]
    environ = {**host.environment(), **host.for_claude(), "TERM": "xterm-256color"}
    with holdfast.connect("person", home=terminal) as hf:
        process = hf.run(command, pty=True, size=(120, 40), cwd=host.project, environ=environ, notify="never")
        prompt = Prompt(hf, process.id)
        try:
            prompt.until("Claude Code v", timeout=60.0)
            prompt.until("❯ ", timeout=60.0)
            prompt.until_connected()
            yield prompt
        finally:
            hf.kill(process.id)
    end_instance(str(terminal))


def _answer_first_questions(host: Host) -> None:
    """Which it asks in every new home: theme, key, and whether the directory is trusted."""
    file = host.home / ".claude.json"
    answers = {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "customApiKeyResponses": {"approved": ["sk-ant-scripted"], "rejected": []},
        "projects": {str(host.project): {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}},
    }
    file.write_text(json.dumps({**json.loads(file.read_text()), **answers}))


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.parametrize("version", programs.CLAUDE_CODE)
def test_an_idle_conversation_is_woken_by_an_end(home: Path, tmp_path: Path, version: str) -> None:
    with ScriptedModel([_START, Say("I leave it running"), Say("I was woken")]) as model:
        host = Host(tmp_path / "person", model)
        host.integrate("claude-code")
        with _at_the_prompt(host, version) as prompt:
            prompt.type("begin")
            prompt.until("I leave it running")
            eventually(lambda: list((home / "hosts").glob("*.lock")), timeout=30.0)  # somebody waits for news
            (host.project / "go").touch()
            eventually(lambda: len(model.asked) == 3, timeout=30.0)
            assert [seen(body).count(TOLD) for body in model.asked] == [0, 0, 1]
            prompt.until("I was woken")
            (host.project / "go").unlink()

            # Cleared, the conversation is another; its processes, and whoever waits for their news, go with it.
            model.script(_START, Say("Another one"), Say("I see"), Say("Woken again"))
            prompt.type("again")
            prompt.until("Another one")
            prompt.clear("Another one")
            prompt.type("what runs")
            prompt.until("I see")
            cleared = seen(model.asked[5])
            assert TOLD not in cleared and "still runs" in cleared
            (host.project / "go").touch()
            prompt.until("Woken again")
            # What a hook of the turn's end says, newer releases show in two places.
            assert seen(model.asked[6]).count(TOLD) in (1, 2)
        told = [row for row in sessions().values() if row["session"] != "person"]
        assert sum(row["ended"] for row in told) == 2 and not any(row["pending"] for row in told)
