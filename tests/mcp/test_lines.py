"""Lines of JSON with halves of characters."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from holdfast.mcp.lines import mended

_ANY = st.text(st.characters(exclude_categories=()))


@given(_ANY)
def test_what_is_mended_can_be_sent(text: str) -> None:
    made = json.loads(mended(json.dumps(text)))
    made.encode()
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    assert made.replace("\ufffd", "") == whole.replace("\ufffd", "")


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_what_is_whole_stays_as_it_is(text: str) -> None:
    assert mended(json.dumps(text)) == json.dumps(text)
    assert json.loads(mended(json.dumps("\\ud800" + text))) == "\\ud800" + text
