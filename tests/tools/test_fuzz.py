"""Whatever is passed: no exception, and an answer of the one shape."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.tools import Limits, Tools
from holdfast.tools.arguments import ACTIONS
from tests.tools.model import checked

#: For each of two tools: 5,000 in all.
_DIRECTED, _SAID = 2000, 500
pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

_NAMES = {
    "terminal": [
        *("command", "background", "timeout", "workdir", "pty", "notify_on_complete", "watch_patterns"),
        *("check_interval", "session", "extra"),
    ],
    "process": ["action", "session_id", "data", "timeout", "offset", "limit", "session", "extra"],
}


class Hostile:
    """Lies about itself wherever it can."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")

    def __str__(self) -> str:
        raise RuntimeError("no str")

    def __bool__(self) -> bool:
        raise RuntimeError("no bool")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no eq")

    def __len__(self) -> int:
        return -1

    __hash__ = object.__hash__


class LyingText(str):
    def __len__(self) -> int:
        return 0

    def strip(self, *_: Any) -> str:
        raise RuntimeError("no strip")


def _nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


_VALUES: list[object] = [
    *(None, True, False, 0, -1, 1, 2**31, 2**63, 10**5000, -(10**5000)),
    *(0.0, -0.0, 1e308, -1e308, math.inf, -math.inf, math.nan, 1j),
    *("", " ", "\0", "a\0b", "\ud800", "\x1b[31m", "\u202e", "﷽" * 500),
    *("NaN", "1e999", "٣", "0x10", "true", "null", "None", "-0", "1_000"),
    *("../../etc/passwd", "/proc/self/fd/0", "~nobody/x", "a" * 300_000),
    *("proc_000000000000", "proc_", "proc_zzzzzzzzzzzz", "*", "%s%n", "'; --"),
    *("(" * 5000, "(a+)+$", "match:(", "output", "bytes", "99999x99999"),
    *("[", '["a"', '{"a": 1}', "[" * 100_000, b"\xff", bytearray(b"x")),
    *([], [None], [[]], ["", ""], ["a"] * 2000, (), set(), {}, {"a": {}}),
]


def _always(value: object) -> Callable[[], object]:
    return lambda: value


#: Each has broken a tool somewhere.
_HOSTILE: list[Callable[[], object]] = [
    *map(_always, _VALUES),
    lambda: _nested(5000),
    lambda: {1: 2, None: 3},
    lambda: object(),
    lambda: Hostile(),
    lambda: [Hostile()],
    lambda: LyingText("sleep 1"),
    lambda: range(10**9),
    lambda: (n for n in range(3)),
    lambda: ValueError("x"),
    lambda: len,
    lambda: Hostile,
]


@pytest.fixture(scope="module")
def tools(instance: Path) -> Any:
    """Nothing that they start lasts: windows and waits are short."""
    limits = Limits(window=0.2, longest_window=0.2, wait=0.05)
    with Tools("fuzz", cwd="/", limits=limits) as tools:
        yield tools


@pytest.fixture(scope="module")
def some_id(tools: Tools) -> str:
    return str(checked(tools.terminal("cat", background=True))["session_id"])


def _tame(tool: str, arguments: Any) -> Any:
    """What would really run is `true`, and seldom: this is about arguments, not about starting a thousand processes."""
    if tool == "terminal" and isinstance(arguments, dict) and isinstance(arguments.get("command"), str):
        arguments["command"] = "true" if len(str.__str__(arguments["command"])) % 10 == 5 else ""
    return arguments


@pytest.mark.parametrize("tool", ["terminal", "process"])
def test_directed_at_what_breaks_tools(tools: Tools, some_id: str, tool: str) -> None:
    chance = random.Random(f"directed {tool}")
    for _ in range(_DIRECTED):
        names = chance.sample(_NAMES[tool], chance.randint(0, len(_NAMES[tool])))
        arguments: dict[str, object] = {name: chance.choice(_HOSTILE)() for name in names}
        if tool == "process" and chance.random() < 0.8:
            arguments["action"] = chance.choice(ACTIONS)
            if chance.random() < 0.5:
                arguments["session_id"] = some_id
        if tool == "terminal" and chance.random() < 0.5:
            arguments["command"] = "true " * chance.randint(1, 4)
        checked(tools.call(tool, _tame(tool, arguments)))


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


def _arguments(tool: str) -> st.SearchStrategy[Any]:
    named = st.dictionaries(st.sampled_from(_NAMES[tool]), _JSON, max_size=6)
    likely = {"action": st.sampled_from(ACTIONS)} if tool == "process" else {"command": st.text()}
    return st.one_of(_JSON, named, st.tuples(named, st.fixed_dictionaries(likely)).map(lambda two: two[0] | two[1]))


@pytest.mark.parametrize("tool", ["terminal", "process"])
def test_any_json_value(tools: Tools, some_id: str, tool: str) -> None:
    @settings(max_examples=_SAID, database=None, suppress_health_check=list(HealthCheck))
    @given(_arguments(tool), st.booleans(), st.booleans())
    def holds(arguments: Any, as_text: bool, on_a_real_one: bool) -> None:
        if tool == "process" and on_a_real_one and isinstance(arguments, dict):
            arguments = {**arguments, "session_id": some_id}
        arguments = _tame(tool, arguments)
        checked(tools.call(tool, json.dumps(arguments) if as_text else arguments))

    holds()


def test_the_calls_themselves_take_anything(tools: Tools) -> None:
    for make in _HOSTILE:
        checked(tools.call(make(), make()))
        checked(
            tools.terminal(_tame("terminal", {"command": make()}).get("command"), background=make(), timeout=make())
        )
        checked(tools.process(make(), make(), make(), make(), make(), make(), make()))
