"""The protocol's own inspector, which is no client of ours, drives the tools from its command line."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import node
from tests.mcp.host import command, open_http
from tests.tools.model import checked

INSPECTOR = ("@modelcontextprotocol/inspector", "2.12.0", "mcp-inspector")
#: Its first test installs it.
pytestmark = pytest.mark.timeout(600)


def stdio() -> tuple[list[str], list[str]]:
    """The server, and further options. The inspector starts it with few variables, so ours is named in the command."""
    return ["env", f"HOLDFAST_HOME={os.environ['HOLDFAST_HOME']}", *command("--session", "inspected")], []


def http() -> tuple[list[str], list[str]]:
    url, key = open_http()
    return [url], [
        "--transport",
        "http",
        "--header",
        f"Authorization: {key['authorization']}",
        "Holdfast-Session: inspected",
    ]


@pytest.fixture(params=[stdio, http])
def inspect(instance: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Callable[..., Any]:
    program = node.program(*INSPECTOR)
    target, options = request.param()

    def call(*words: str) -> Any:
        done = subprocess.run(
            [*program, "--cli", *target, *options, *words],
            env={**node.environment(), "MCP_CATALOG_PATH": str(tmp_path / "catalog.json")},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == 0, (done.stdout + done.stderr).decode()
        return json.loads(done.stdout)

    return call


def test_it_drives_both_tools(inspect: Callable[..., Any]) -> None:
    def tool(name: str, *arguments: str) -> dict[str, Any]:
        result = inspect("--method", "tools/call", "--tool-name", name, "--tool-arg", *arguments)
        made = checked(result["content"][0]["text"])
        assert result["structuredContent"] == made
        return made

    tools = inspect("--method", "tools/list", "--strict")["tools"]
    assert [one["name"] for one in tools] == ["terminal", "process"]
    made = tool("terminal", "command=sleep 300", "background=true")
    assert made["status"] == "running"
    assert tool("process", "action=kill", f"session_id={made['session_id']}")["status"] == "ended"
