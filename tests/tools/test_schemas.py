"""What a model is told: valid, lean, and true."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest

from holdfast.model.shortening import estimate
from holdfast.tools import PROCESS_SCHEMA, TERMINAL_SCHEMA, anthropic_schemas, openai_schemas

#: Every request of every conversation pays this. The predecessor's two tools are some 2,500.
_BUDGET = 900


def _parameters(schema: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = schema["function"]["parameters"]
    return found


@pytest.mark.parametrize("schema", [TERMINAL_SCHEMA, PROCESS_SCHEMA], ids=["terminal", "process"])
def test_they_are_valid_in_the_shape_of_openai(schema: dict[str, Any]) -> None:
    assert schema["type"] == "function"
    assert set(schema["function"]) == {"name", "description", "parameters"}
    jsonschema_rs.meta.validate(_parameters(schema))
    jsonschema_rs.Draft202012Validator(_parameters(schema))
    assert set(_parameters(schema)["required"]) <= set(_parameters(schema)["properties"])


def test_the_same_in_the_shape_of_anthropic() -> None:
    for ours, theirs in zip(openai_schemas(), anthropic_schemas(), strict=True):
        assert set(theirs) == {"name", "description", "input_schema"}
        assert theirs["input_schema"] == _parameters(ours)
        assert (theirs["name"], theirs["description"]) == (ours["function"]["name"], ours["function"]["description"])


def test_what_is_handed_out_is_the_callers_to_change() -> None:
    openai_schemas()[0]["function"]["parameters"]["properties"].clear()
    anthropic_schemas()[1]["input_schema"].clear()
    assert _parameters(TERMINAL_SCHEMA)["properties"] and _parameters(PROCESS_SCHEMA)["properties"]


@pytest.mark.parametrize(
    ("schema", "arguments", "fits"),
    [
        (TERMINAL_SCHEMA, {"command": "ls"}, True),
        (TERMINAL_SCHEMA, {"command": "make", "background": True, "notify_on_complete": True, "timeout": 60}, True),
        (TERMINAL_SCHEMA, {"command": "npm run dev", "background": True, "watch_patterns": ["listening"]}, True),
        (TERMINAL_SCHEMA, {}, False),
        (TERMINAL_SCHEMA, {"command": 1}, False),
        (TERMINAL_SCHEMA, {"command": "ls", "shell": "zsh"}, False),
        (PROCESS_SCHEMA, {"action": "list"}, True),
        (PROCESS_SCHEMA, {"action": "log", "session_id": "proc_0123456789ab", "offset": 0, "limit": 10}, True),
        (PROCESS_SCHEMA, {"action": "explode"}, False),
    ],
)
def test_they_take_what_they_should(schema: dict[str, Any], arguments: dict[str, Any], fits: bool) -> None:
    assert jsonschema_rs.is_valid(_parameters(schema), arguments) is fits


def test_the_actions_and_arguments_are_those_of_the_contract() -> None:
    assert list(_parameters(TERMINAL_SCHEMA)["properties"]) == [
        *("command", "background", "timeout", "workdir", "pty", "notify_on_complete", "watch_patterns"),
        "check_interval",
    ]
    assert list(_parameters(PROCESS_SCHEMA)["properties"]) == [
        *("action", "session_id", "data", "timeout", "offset", "limit")
    ]
    assert _parameters(PROCESS_SCHEMA)["properties"]["action"]["enum"] == [
        *("list", "poll", "log", "wait", "kill", "write", "submit", "close"),
        *("screen", "search", "signal", "resize", "restart", "transfer", "inbox", "ack"),
    ]


def test_they_stay_within_their_budget_of_tokens() -> None:
    assert sum(estimate(json.dumps(schema)) for schema in openai_schemas()) <= _BUDGET


def test_they_teach_not_to_poll_and_not_to_leave_the_tools() -> None:
    terminal, process = (schema["function"]["description"] for schema in openai_schemas())
    assert "Do not run it again" in terminal and "notify_on_complete=true" in terminal and "nohup" in terminal
    assert "do not poll" in process and "You are notified" in process


def test_they_teach_strikes_digests_and_the_exclusion_on_both_parameters() -> None:
    properties = _parameters(TERMINAL_SCHEMA)["properties"]
    watch, notify = (properties[name]["description"] for name in ("watch_patterns", "notify_on_complete"))
    assert "15 s" in watch and "digest" in watch and "strikes" in watch
    assert "excludes notify_on_complete" in watch and "Excludes watch_patterns" in notify
