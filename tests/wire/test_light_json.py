"""The light JSON says what `json` says."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast
from holdfast import light_json

_SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(holdfast.__file__)))

_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(_values)
def test_it_says_and_reads_the_same(value: object) -> None:
    text = light_json.dumps(value)
    assert text == json.dumps(value, separators=(",", ":"))
    assert light_json.loads(text) == value
    assert light_json.loads(json.dumps(value, indent=2, ensure_ascii=False)) == value


@given(st.text(max_size=30))
def test_what_is_no_json_is_a_value_error(text: str) -> None:
    try:
        expected = json.loads(text, parse_constant=lambda _: 1 / 0)
    except (ValueError, ZeroDivisionError):
        with pytest.raises(ValueError):
            light_json.loads(text)
    else:
        assert light_json.loads(text) == expected


@pytest.mark.parametrize(
    "text", ["", "{", "[1,]", "{}{}", "NaN", "[Infinity]", "'x'", "[" * 100_000, "1" * 5000, '"\x01"']
)
def test_hostile_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError):
        light_json.loads(text)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), b"x", {1}, object(), {(1,): 2}])
def test_what_json_cannot_say_is_refused(value: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        light_json.dumps(value)


def test_what_is_broken_is_a_value_error_also_where_json_was_never_imported() -> None:
    script = """
import sys
from holdfast import light_json
assert "json" not in sys.modules
for text in ("{", "[1,", '{"a"', '"\\\\ud8', "nul", "", "[1] 2"):
    try:
        light_json.loads(text)
    except ValueError:
        continue
    raise AssertionError(text)
"""
    subprocess.run([sys.executable, "-S", "-c", script], check=True, env={"PYTHONPATH": _SOURCE})


@pytest.mark.parametrize("value", [{"n": 1 << 70}, {"name": "\udce9"}, {"é": [1.5, None, True]}, {1: 2}])
def test_bytes_have_what_a_fast_encoder_refuses(value: object) -> None:
    data = light_json.dump_bytes(value)
    assert b" " not in data
    assert light_json.load_bytes(data) == json.loads(json.dumps(value))


@pytest.mark.parametrize("data", [b"{", b"NaN", b"\xff", b"[" * 100_000])
def test_bytes_that_are_not_json_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError):
        light_json.load_bytes(data)
