"""Lines of JSON with halves of characters."""

from __future__ import annotations

import json

from hypothesis import example, given
from hypothesis import strategies as st
from mcp import types

from holdfast.mcp.stdio import protocol_error, without_surrogates

_KEYS = ["jsonrpc", "id", "method", "params", "result", "error"]
_ANY = st.text(st.characters(exclude_categories=()))


@given(_ANY)
def test_what_is_mended_can_be_sent(text: str) -> None:
    made = json.loads(without_surrogates(json.dumps(text)))
    made.encode()
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    assert made.replace("\ufffd", "") == whole.replace("\ufffd", "")


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_what_is_whole_stays_as_it_is(text: str) -> None:
    assert without_surrogates(json.dumps(text)) == json.dumps(text)
    assert json.loads(without_surrogates(json.dumps("\\ud800" + text))) == "\\ud800" + text


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_KEYS), inner, max_size=5),
    max_leaves=8,
)


@given(_JSON | st.dictionaries(st.sampled_from(_KEYS), _JSON))
@example({"jsonrpc": "2.0", "id": 1, "method": "ping"})
@example({"jsonrpc": "2.0", "id": 7})
def test_any_json_is_a_message_or_is_answered(found: object) -> None:
    """Never with an id that is not the client's."""
    answer = protocol_error(json.dumps(found))
    if answer is None:
        assert isinstance(found, dict) and found["jsonrpc"] == "2.0"
    elif answer.id is not None:
        assert isinstance(found, dict) and found["id"] == answer.id


@given(_ANY)
def test_a_text_that_is_no_message_is_answered(text: str) -> None:
    answer = protocol_error(without_surrogates(text).encode(errors="replace").decode())
    assert answer is not None and answer.id is None
    assert answer.error.code in (types.PARSE_ERROR, types.INVALID_REQUEST)


def test_only_what_is_no_json_is_a_parse_error() -> None:
    for line, code in {"{": types.PARSE_ERROR, "[1]": types.INVALID_REQUEST, "{}": types.INVALID_REQUEST}.items():
        assert (answer := protocol_error(line)) is not None and answer.error.code == code
    assert protocol_error('{"jsonrpc": "2.0", "id": 1, "method": "ping"}') is None
