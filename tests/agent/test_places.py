"""An agent whose commands run in another place: its file tools work there, and nothing of it runs here."""

from __future__ import annotations

import json
from pathlib import Path

import holdfast
from tests.agent.endpoint import Call, Endpoint, Say, call
from tests.agent.stage import Conversation, configure
from tests.contracts import sshd


def test_commands_and_files_of_an_agent_are_on_its_host(
    home: Path, endpoint: Endpoint, talk: Conversation, tmp_path: Path
) -> None:
    server = sshd.shared_server()
    options = {**server.options, "kind": "ssh", "directory": str(tmp_path / "place")}
    lines = [f"{name} = {json.dumps(value)}" for name, value in options.items()]
    (home / "config.toml").write_text("\n".join(["[backends.box]", *lines, ""]))
    configure(home, endpoint, backend="box")
    (tmp_path / "there").mkdir()
    path = str(tmp_path / "there/file.txt")
    endpoint.script(
        call("write", path=path, content="one\ntwo\n"),
        Say(calls=[Call("read", {"path": path}), Call("search", {"pattern": "tw.", "path": f"{tmp_path}/there"})]),
        call("edit", path=path, old="two", new="three"),
        call("terminal", command=f"cat {path}; pwd"),
        call("read", path="/nonexistent/file"),
        Say("done"),
    )
    assert talk.say("go", timeout=110) == "done"
    results = talk.results()
    assert results[0]["status"] == "ok", results[0]
    by_name = {entry.content["name"]: json.loads(entry.content["text"]) for entry in talk.of("tool_result")[:4]}
    assert by_name["search"]["output"] == f"{path}:2:two\n"
    assert by_name["edit"]["reason"] == "edited"
    assert results[4]["output"].startswith("one\nthree\n") and str(Path.cwd()) not in results[4]["output"]
    with holdfast.connect() as client:
        assert {one.backend for one in client.ps(all=True, session="A")} == {"box"}
    assert results[5]["status"] == "not_found"
