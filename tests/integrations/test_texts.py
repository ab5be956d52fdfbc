"""Edits of JSON and TOML texts: what is changed is changed, and no other character."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.integrations import json_text, toml_text

_keys = st.text(alphabet='abc"\\{}[],: \n\tü', min_size=1, max_size=6)
_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_keys, inner, max_size=3),
    max_leaves=12,
)
_layouts: Any = st.sampled_from([{"indent": 2}, {"indent": 4}, {"indent": "\t"}, {}, {"separators": (",", ":")}])


@given(st.dictionaries(_keys, _values, max_size=4), _layouts, _keys.map(lambda key: f"new {key}"), _values)
def test_a_member_put_and_dropped_leaves_the_text_as_it_was(
    value: dict[str, Any], layout: dict[str, Any], key: str, new: object
) -> None:
    text = json.dumps(value, **layout) + "\n"
    changed = json_text.put(text, (key, "inner"), new)
    assert json.loads(changed) == {**value, key: {"inner": new}}
    assert list(json.loads(changed)) == [*value, key]
    assert json_text.drop(changed, (key,)) == text


@given(st.dictionaries(_keys, _values, min_size=1, max_size=4), _layouts, _values)
def test_a_value_is_replaced_where_it_stands(value: dict[str, Any], layout: dict[str, Any], new: object) -> None:
    key = list(value)[len(value) // 2]
    changed = json_text.put(json.dumps(value, **layout), (key,), new)
    assert json.loads(changed) == {**value, key: new}
    assert list(json.loads(changed)) == list(value)


@given(st.lists(_values, max_size=3), _layouts, _values)
def test_an_item_is_appended_and_dropped(items: list[Any], layout: dict[str, Any], new: object) -> None:
    text = json.dumps({"a": {"b": items}, "z": 1}, **layout)
    changed = json_text.append(text, ("a", "b"), new)
    assert json.loads(changed) == {"a": {"b": [*items, new]}, "z": 1}
    assert json_text.drop(changed, ("a", "b", len(items))) == text


def test_a_new_member_looks_like_its_brothers() -> None:
    assert json_text.put('{\n\t"a": 1\n}', ("b",), {"c": 2}) == '{\n\t"a": 1,\n\t"b": {\n\t\t"c": 2\n\t}\n}'
    assert json_text.put('{"a": 1}', ("b",), {"c": 2}) == '{"a": 1, "b": {"c": 2}}'
    assert json_text.put('{\r\n  "a": 1\r\n}\r\n', ("b",), [2]) == '{\r\n  "a": 1,\r\n  "b": [\r\n    2\r\n  ]\r\n}\r\n'


@pytest.mark.parametrize("text", ["", "[]", "1", "{", '{"a": 1,}', '{"a": 1} // why', "\ufeff{}", "NaN"])
def test_what_is_no_json_object_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        json_text.load(text)


_TABLE = ("servers", "ours")
_TEXTS = [
    "",
    "a = 1\n",
    "# mine\na = 1 # one\n\n[servers.other]\nargs = [\n  'x', # why\n]\n",
    'text = """\n[b]\n"""\n\n[z]\n\n[[list]]\nc = 2\n',
    "[servers]\nx = 1\n",
    "a = 1",
    "a = 1 # one",
    "a = 1\r\n\r\n",
    "a = 1\n\n\n",
    "\n",
    "  ",
    '# a\u2028[x]\na = """\n[servers.ours]\nx\n"""\n',
    'a = """\n[servers.ours]\n[z]\n"""',
]
_PIECES = ["\n", "#", "[servers.ours]", "'''", " ", "\r\n", "b = 2", "[servers]"]


@pytest.mark.parametrize("text", _TEXTS)
def test_a_table_put_and_dropped_leaves_the_text_as_it_was(text: str) -> None:
    values = {"command": "/a 'b' \"c\" \\ ü", "args": ["x", "y"], "limit": 3, "env": {"A": "b"}, "is": True}
    changed = toml_text.put(text, _TABLE, values)
    assert tomllib.loads(changed)["servers"]["ours"] == values
    assert changed.startswith(text)
    assert toml_text.put(changed, _TABLE, values) == changed
    assert toml_text.drop(changed, _TABLE) == text
    renewed = toml_text.put(changed, _TABLE, {**values, "is": False, "limit": 4})
    assert toml_text.put(renewed, _TABLE, values) == changed


@given(st.lists(st.sampled_from(_TEXTS[1:] + _PIECES), max_size=5).map("".join))
def test_a_table_returns_any_text_that_it_accepts(text: str) -> None:
    try:
        is_there = toml_text.find(text, _TABLE) is not None
        changed = toml_text.put(text, _TABLE, {"command": "x", "limit": 3})
    except ValueError:
        return
    assert is_there or toml_text.drop(changed, _TABLE) == text


def test_text_of_the_user_behind_a_table_stays() -> None:
    text = toml_text.put("a = 1\n", _TABLE, {"command": "x"})
    assert toml_text.drop(f"{text}\n# mine\n", _TABLE) == "a = 1\n\n# mine\n"
    behind = "[z]\nb = '''\n[servers.ours]\n'''\n"
    assert toml_text.drop(text + behind, _TABLE) == "a = 1\n" + behind


def test_a_table_in_the_middle_is_changed_and_dropped_alone() -> None:
    text = (
        "[servers.ours] # by me\n# the place\ncommand = 'old'\nmine = 1\n\n[servers.ours.env]\nA = 'b'\n\n"
        "# of others\n[servers.other]\nb = 2\n"
    )
    changed = toml_text.put(text, _TABLE, {"command": "new", "more": 1})
    assert changed == text.replace("command = 'old'", 'command = "new"').replace("by me\n", "by me\nmore = 1\n")
    assert toml_text.drop(text, _TABLE) == "\n# of others\n[servers.other]\nb = 2\n"


@pytest.mark.parametrize(
    "text",
    [
        "servers = { ours = { command = 'x' } }\n",
        "servers.ours.command = 'x'\n",
        'a = """\n[servers.ours]\n"""\n[servers]\nours.command = "x"\n',
        "[servers.ours]\ncommand = '''\nx'''\n",
    ],
)
def test_a_table_that_is_written_in_another_way_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        toml_text.put(text, _TABLE, {"command": "new"})


def test_what_is_no_toml_is_refused() -> None:
    with pytest.raises(ValueError):
        toml_text.put("a = \n", _TABLE, {"command": "new"})
