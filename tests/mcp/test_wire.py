"""`holdfast mcp` as a program: what it writes, when it ends, and what it makes of clients that are old or odd."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import holdfast
from tests.mcp.wire import Wire
from tests.support import eventually, run_cli
from tests.tools.model import checked


def test_an_old_protocol(instance: Path) -> None:
    with Wire() as wire:
        hello = wire.greet("2024-11-05")
        assert hello["protocolVersion"] == "2024-11-05"
        assert "experimental" not in hello["capabilities"]
        assert hello["capabilities"]["resources"] == {"subscribe": True, "listChanged": True}
        assert "Do not poll" in hello["instructions"] and len(hello["instructions"]) < 700
        tools = wire.ask("tools/list")["result"]["tools"]
        assert [tool["name"] for tool in tools] == ["terminal", "process"]
        result = wire.ask("tools/call", name="terminal", arguments={"command": "echo old"})["result"]
        assert checked(result["content"][0]["text"])["output"] == "old\n"


@pytest.mark.parametrize(
    ("line", "id", "code"),
    [
        ("nonsense", None, -32700),
        ('{"jsonrpc": "2.0", "id": 3, "method": "ping"', None, -32700),
        ("[" * 100_000, None, -32700),
        ("[]", None, -32600),
        ('{"jsonrpc": "2.0", "method": 7}', None, -32600),
        ('{"jsonrpc": "2.0", "id": 5, "method": 5}', 5, -32600),
        ('{"jsonrpc": "2.0", "id": "a", "method": "ping", "params": []}', "a", -32600),
        ('{"id": 6, "method": "ping"}', 6, -32600),
        ('{"jsonrpc": "2.0", "id": null, "method": "ping"}', None, -32600),
        ('{"jsonrpc": "2.0", "id": [1], "method": "ping"}', None, -32600),
        (f'{{"jsonrpc": "2.0", "id": {"9" * 5000}, "method": 5}}', None, -32700),
        (f'{{"jsonrpc": "2.0", "id": {"9" * 30}, "method": 5}}', int("9" * 30), -32600),
        ('{"jsonrpc": "2.0", "id": true, "method": "ping"}', None, -32600),
        ('{"jsonrpc": "2.0", "id": 7, "result": 5}', None, -32600),  # whose 7 would be one of ours
    ],
)
def test_what_is_no_message_is_said_at_once(shared_wire: Wire, line: str, id: object, code: int) -> None:
    shared_wire.write("")
    shared_wire.write(line)
    answer = shared_wire.read()
    assert (answer["id"], answer["error"]["code"]) == (id, code)
    assert shared_wire.ask("ping")["result"] == {}


@pytest.fixture(scope="module")
def shared_wire(instance: Path) -> Iterator[Wire]:
    with Wire() as wire:
        wire.greet("2025-11-25")
        yield wire


def test_odd_clients_are_answered_all_the_same(instance: Path) -> None:
    with Wire() as wire:
        wire.write("nonsense")
        wire.write("[]")
        wire.write('{"jsonrpc": "2.0", "method": 7}')
        hello = wire.greet("2099-01-01")
        assert (hello["protocolVersion"], hello["serverInfo"]["name"]) == ("2025-11-25", "holdfast")
        assert wire.ask("no/such/method")["error"]["code"] == -32601
        for name, arguments in _ODD:
            result = wire.ask("tools/call", name=name, arguments=arguments)["result"]
            assert result["isError"] is True
            assert checked(result["content"][0]["text"]) == result["structuredContent"]
        arguments = {"command": r"printf '\xff\xfe\x00 \xed\xa0\x80 end'"}  # which is no text
        result = wire.ask("tools/call", name="terminal", arguments=arguments)["result"]
        assert result["structuredContent"]["output"].endswith(" end")


_ODD: list[tuple[Any, Any]] = [
    ("terminal", ["ls"]),
    ("terminal", "ls"),
    ("process", 7),
    (None, {}),
    ({"a": 1}, {}),
    ("terminal", {"command": "\ud800", "workdir": "\udfff"}),
    ("terminal", {"command": "a" * 200_000}),
]


def end_of_input(wire: Wire) -> None:
    assert wire.process.stdin is not None
    wire.process.stdin.close()


def terminated(wire: Wire) -> None:
    wire.process.send_signal(signal.SIGTERM)


@pytest.mark.parametrize("end", [end_of_input, terminated])
def test_it_ends_with_its_client_and_leaves_the_background(home: Path, end: Callable[[Wire], None]) -> None:
    with Wire("--session", "s") as wire:
        wire.greet("2025-11-25")
        wire.ask("tools/call", name="terminal", arguments={"command": "sleep 300", "background": True})
        wire.notify("nothing")
        foreground = {"name": "terminal", "arguments": {"command": "sleep 299"}}
        wire.write(json.dumps({"jsonrpc": "2.0", "id": 99, "method": "tools/call", "params": foreground}))
        with holdfast.connect() as client:
            eventually(lambda: len(client.ps(session="s")) == 2)
            begun = time.monotonic()
            end(wire)
            assert wire.process.wait(60) == 0
            assert time.monotonic() - begun < 30
            eventually(lambda: [one.command for one in client.ps(session="s")] == ["sleep 300"])
        assert wire.process.stderr is not None and wire.process.stderr.read() == ""


def test_without_the_sdk_one_line_says_what_to_install(home: Path, tmp_path: Path) -> None:
    (tmp_path / "mcp.py").write_text("raise ImportError('as if it were not there')")
    result = run_cli("mcp", env={"PYTHONPATH": str(tmp_path)})
    assert result.returncode == 125 and result.stdout == b""
    assert result.stderr.decode().count("\n") <= 2 and "pip install '.[mcp]'" in result.stderr.decode()


def test_no_other_package_imports_the_sdk() -> None:
    source = Path(holdfast.__file__).parent
    users = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*.py")
        if any(
            line.strip().startswith(("import mcp", "from mcp ", "from mcp.")) for line in path.read_text().splitlines()
        )
    }
    assert {user for user in users if not user.startswith("mcp/")} == {"cli/verbs/mcp.py", "agent/mcp_servers.py"}
