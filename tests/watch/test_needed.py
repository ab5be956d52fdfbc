"""Which texts a match has to contain."""

from __future__ import annotations

import pytest

from holdfast.watch.needed import needed


@pytest.mark.parametrize(
    ("expression", "texts"),
    [
        ("listening on", {"listening on"}),
        (r"took \d+ms for job", {"ms for job"}),
        (r"(ERROR|FATAL): \w+", {"ERROR", "FATAL"}),
        (r"(?:error|fail(ed|ure))+ in", {"error", "fail"}),
        (r"^E\d{4}.*corrupt(ed)?$", {"corrupt"}),
        (r"warn|error", {"warn", "error"}),
        (r"abc+d", {"abc"}),
        (r"abcd?e", {"abc"}),
        (r"1\.2\.3", {"1.2.3"}),
        ("(?P<what>panic): ", {"panic"}),
        ("(?i)Exception in", {"Exception in"}),
        ("(abc){2}", {"abc"}),
    ],
)
def test_one_for_each_alternative(expression: str, texts: set[str]) -> None:
    found = needed(expression)
    assert found is not None and found.texts == texts
    assert found.is_caseless == expression.startswith("(?i)")


@pytest.mark.parametrize(
    "expression",
    ["ab", "error|x", "(error)?", "(error|)", "[a-z]+", "(?i)é€ürich", "a(?i)bcd", r"\Qerror\E", r"\x41bcd", "(abc)*"],
)
def test_none_where_that_cannot_be_told(expression: str) -> None:
    assert needed(expression) is None
