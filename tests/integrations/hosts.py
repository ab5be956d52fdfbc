"""A person's computer with an agent program on it, joined with holdfast, and a scripted model behind it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from tests.integrations import programs
from tests.integrations.scripted import ScriptedModel
from tests.support import eventually, run_cli

#: Runs until the file `go` is there.
JOB = "while [ ! -e go ]; do sleep 0.02; done; echo finished well"
TOLD = "completed normally (exit code 0)"


class Host:
    """The person's home directory, and the project in which the program works."""

    def __init__(self, home: Path, model: ScriptedModel) -> None:
        self.home = home
        self.project = home / "project"
        self.project.mkdir(parents=True)
        self.model = model

    def environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "HOLDFAST_HOME")}
        return {**kept, "HOME": str(self.home), "SCRIPTED_KEY": "none"}

    def integrate(self, name: str) -> None:
        done = run_cli("integrate", name, env={"HOME": str(self.home)})
        assert done.returncode == 0, done.stderr.decode()

    def run(self, command: list[str], **more: str) -> str:
        """What the program printed, once it ended well."""
        done = subprocess.run(
            command,
            env={**self.environment(), **more},
            cwd=self.project,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        return done.stdout

    def claude(self, version: str, prompt: str, *options: str) -> dict[str, Any]:
        """Claude Code with one prompt; what it says in the end."""
        words = ["-p", prompt, "--output-format", "json", "--allowedTools", "mcp__holdfast__terminal,Bash", *options]
        told = self.run([*programs.claude_code(version), *words], **self.for_claude())
        answer: dict[str, Any] = json.loads(told)
        return answer

    def for_claude(self) -> dict[str, str]:
        """Claude Code's environment: the scripted model, and nobody else to speak to."""
        return {
            "ANTHROPIC_BASE_URL": self.model.url,
            "ANTHROPIC_API_KEY": "sk-ant-scripted",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
        }

    def codex(self, version: str, prompt: str, *options: str) -> str:
        """Codex with one prompt; its events."""
        flags = ["--skip-git-repo-check", "--json", "--dangerously-bypass-approvals-and-sandbox", *options]
        return self.run([*programs.codex(version), "exec", *flags, prompt])

    def configure_codex(self) -> None:
        """To use the scripted model."""
        provider = f'name = "scripted"\nbase_url = "{self.model.url}/v1"\nwire_api = "responses"\n'
        text = f'model = "scripted"\nmodel_provider = "scripted"\n\n[model_providers.scripted]\n{provider}'
        text += 'env_key = "SCRIPTED_KEY"\n'
        (self.home / ".codex").mkdir()
        (self.home / ".codex/config.toml").write_text(text)


def sessions() -> dict[str, dict[str, Any]]:
    return {row["session"]: row for row in json.loads(run_cli("sessions", "--json").stdout)}


def until_pending() -> None:
    """Until a session has something to be told."""
    eventually(lambda: any(row["pending"] for row in sessions().values()), timeout=30.0, pause=0.1)
