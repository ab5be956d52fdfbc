"""What the files are made of: name of the file -> its text, from the current code."""

from __future__ import annotations

import contextlib
import http.client
import inspect
import io
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import holdfast
from holdfast.cli.main import main
from holdfast.extras import docs
from holdfast.tools import anthropic_schemas, openai_schemas
from tests.golden.calls import record_calls
from tests.support import end_instance

FILES = Path(__file__).parent / "files"
HOW = "an intended change is written with: python -m tests.golden --write"
_EVENTS_PAGE = Path(__file__).parents[2] / "docs" / "events.md"


def surface() -> dict[str, str]:
    """Every file. Starts instances of its own, and ends them."""
    with tempfile.TemporaryDirectory(prefix="golden-") as directory:
        below = Path(directory)
        return help_pages() | python_calls() | documented_events() | served(below / "served") | wire(below)


def help_pages() -> dict[str, str]:
    overview = _printed("--help")
    verbs = re.findall(r"^    ([a-z]+)  ", overview.partition("\nVERBS\n")[2].partition("\n\n")[0], re.MULTILINE)
    assert len(verbs) > 30
    return {"help.txt": overview} | {f"help/{verb}.txt": _printed(verb, "--help") for verb in verbs}


def _printed(*words: str) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert main(words) == 0
    return out.getvalue().replace(docs(), "DOCS")


def python_calls() -> dict[str, str]:
    """The calls of both clients: names of the arguments, and which may be left out."""
    found = {}
    for client in (holdfast.Client, holdfast.AsyncClient):
        methods = {name: value for name, value in inspect.getmembers(client, callable) if not name.startswith("_")}
        found[client.__name__] = {name: _arguments(method) for name, method in methods.items()}
    names = {"holdfast": sorted(holdfast.__all__)}
    return {"python.json": _pretty({"names": names, "calls": found})}


def _arguments(method: Any) -> list[str]:
    parameters = list(inspect.signature(method).parameters.values())[1:]
    return [str(one.replace(annotation=one.empty)) for one in parameters]


def documented_events() -> dict[str, str]:
    text = _EVENTS_PAGE.read_text(encoding="utf-8").partition("## Topics")[2]
    row = r"^\| (`[a-z._]+`(?:, `[a-z._]+`)*) \| `([a-z_ ]+)`(?:, and [a-z ]+ `([a-z_ ]+)`)? \|"
    topics = {
        topic: sorted([*fields.split(), *(f"{field}?" for field in optional.split())])
        for several, fields, optional in re.findall(row, text, re.MULTILINE)
        for topic in re.findall(r"[a-z._]+", several)
    }
    assert len(topics) > 20
    return {"events-documented.json": _pretty(topics)}


def served(home: Path) -> dict[str, str]:
    """What a daemon and an MCP server of an instance of their own answer."""
    environ = {**os.environ, "HOLDFAST_HOME": str(home)}
    try:
        with holdfast.connect("golden", home=home):
            document = _get(home / "daemon.sock", "/api/v1/openapi.json")
        mcp = _mcp(environ)
    finally:
        end_instance(str(home))
    document["info"]["version"] = "*"
    tools = {"openai": openai_schemas(), "anthropic": anthropic_schemas(), "mcp": mcp}
    return {"openapi.json": _pretty(document), "tools.json": _pretty(tools)}


def _get(path: Path, target: str) -> dict[str, Any]:
    connection = http.client.HTTPConnection("localhost")
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(str(path))
    connection.request("GET", target)
    found: dict[str, Any] = json.load(connection.getresponse())
    connection.close()
    return found


def _mcp(environ: Mapping[str, str]) -> dict[str, Any]:
    """What a client is told when it comes, and what it can use."""
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "golden", "version": "1"}}
    asked = {"initialize": hello, **{f"{part}/list": {} for part in ("tools", "resources/templates")}}
    call = [sys.executable, "-m", "holdfast", "mcp", "--session", "golden"]
    found: dict[str, Any] = {}
    with subprocess.Popen(call, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=dict(environ)) as server:
        assert server.stdin is not None and server.stdout is not None
        for number, (method, params) in enumerate(asked.items()):
            question = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            server.stdin.write(json.dumps(question).encode() + b"\n")
            server.stdin.flush()
            while (answer := json.loads(server.stdout.readline())).get("id") != number:
                continue
            found[method] = answer["result"]
            if method == "initialize":
                server.stdin.write(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
        server.stdin.close()
    found["initialize"]["serverInfo"]["version"] = "*"
    return found


def wire(directory: Path) -> dict[str, str]:
    recorded = record_calls(directory)
    return {
        "requests.json": _pretty(recorded.requests),
        "replies.json": _pretty(recorded.replies),
        "events-seen.json": _pretty(recorded.events),
        "notices-seen.json": _pretty({"fields": recorded.notice, "data": recorded.notices}),
    }


def _pretty(document: object) -> str:
    """Sorted. A short list of texts stands on one line."""
    text = json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False)
    return re.sub(r"\[\n((?:\s+\"[^\"\n]*\",?\n)+)\s+\]", _on_one_line, text) + "\n"


def _on_one_line(found: re.Match[str]) -> str:
    line = f"[{' '.join(found[1].split())}]"
    return line if len(line) <= 100 else found[0]
