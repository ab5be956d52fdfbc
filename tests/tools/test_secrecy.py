"""What a model is shown has its secrets masked, and what it starts does not get them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.model import Model

TOKEN = "ghp_" + "a1B2c3D4e5F6" * 3
PLAIN = "correct-horse-battery-staple-42"


@pytest.fixture
def secretive(instance: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Model:
    monkeypatch.setenv("DEPLOY_PASSWORD", PLAIN)
    return Model("secretive", str(tmp_path))


def test_commands_do_not_get_them(secretive: Model) -> None:
    with secretive as model:
        answer = model.terminal("echo [$DEPLOY_PASSWORD]; env | grep -c DEPLOY_PASSWORD")
        assert answer["output"] == "[]\n0\n"
        assert "DEPLOY_PASSWORD" in answer["note"]
        assert "note" not in model.terminal("true"), "that is said once"


@pytest.mark.parametrize("secret", [TOKEN, PLAIN])
def test_no_answer_shows_them(secretive: Model, secret: str) -> None:
    with secretive as model:
        model.terminal("true")  # from here on the daemon knows what is secret in our environment
        shown = [model.terminal(f"echo is {secret}")]
        process_id = model.background(f"echo is {secret}; sleep 60", watch_patterns=["is"])
        shown += [model.process("wait", process_id, "output"), model.process("poll", process_id)]
        shown += [model.process("log", process_id), model.process("search", process_id, "is")]
        shown += [model.process("list"), model.process("inbox", timeout=10), model.process("kill", process_id)]
        assert not [answer for answer in shown if secret in str(answer)]
        assert "is " in shown[0]["output"]


def test_pieces_do_not_put_them_together(secretive: Model) -> None:
    with secretive as model:
        done = model.terminal(f"echo {PLAIN}")
        pieces = [
            model.process("log", done["session_id"], "bytes", offset=at, limit=4)["output"]
            for at in range(0, len(PLAIN), 4)
        ]
        assert PLAIN[8:20] not in "".join(pieces) and not [piece for piece in pieces if PLAIN[12:24] in piece]
        assert "clamped to 1024" in model.process("log", done["session_id"], "bytes", offset=0, limit=4)["note"]
