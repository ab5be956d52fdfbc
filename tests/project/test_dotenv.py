"""Environment files."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.project.dotenv import BadLine, parse


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A=1", {"A": "1"}),
        ("A=1\nB=2\n", {"A": "1", "B": "2"}),
        ("A=1\r\nB=2\r\n", {"A": "1", "B": "2"}),
        ("\ufeffA=1", {"A": "1"}),
        ("\n\n  # a comment\n\t\nA=1", {"A": "1"}),
        ("export A=1", {"A": "1"}),
        ("  export\tA=1", {"A": "1"}),
        ("exported=1", {"exported": "1"}),
        ("export=1", {"export": "1"}),
        ("A = 1", {"A": "1"}),
        ("A=", {"A": ""}),
        ("A=\nB=2", {"A": "", "B": "2"}),
        ("A=  # nothing", {"A": ""}),
        ("A=#", {"A": ""}),
        ("A=some words  ", {"A": "some words"}),
        ("A=1 # one", {"A": "1"}),
        ("A=a#b", {"A": "a#b"}),
        ("URL=postgres://u:p@h/db?x=1#frag", {"URL": "postgres://u:p@h/db?x=1#frag"}),
        ("A=b=c", {"A": "b=c"}),
        ("A=it's", {"A": "it's"}),
        ("A=$HOME ${B} `x` $(y)", {"A": "$HOME ${B} `x` $(y)"}),
        (r"A=C:\new", {"A": r"C:\new"}),
        (r"A='as is: $X \n \" #'", {"A": r"as is: $X \n \" #"}),
        ("A='two\nlines'\nB=2", {"A": "two\nlines", "B": "2"}),
        ("A='1' # one", {"A": "1"}),
        (r'A="a\tb\nc\"d\\e\$f\r"', {"A": 'a\tb\nc"d\\e$f\r'}),
        (r'A="\d \ü"', {"A": r"\d \ü"}),
        ('A="two\nlines" # ok\nB=2', {"A": "two\nlines", "B": "2"}),
        ('A="joined \\\nline"', {"A": "joined line"}),
        ('A=""', {"A": ""}),
        ("A=1\nA=2", {"A": "2"}),
        ("a.b-c_D9=x", {"a.b-c_D9": "x"}),
        ("A=ümlaut 日本", {"A": "ümlaut 日本"}),
        ("", {}),
        ("# only", {}),
    ],
)
def test_variables_of_a_file(text: str, expected: dict[str, str]) -> None:
    assert parse(text) == expected


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("A", 1),
        ("A=1\nexport B\n", 2),
        ("=1", 1),
        ("1A=2", 1),
        ("A B=2", 1),
        ("A=1\n\nB='never closed\nC=3", 3),
        ('A="never closed \\"', 1),
        ("A='1' 2", 1),
        ('A="1\n2"3', 2),
        ("A=\0", 1),
        ("<html>", 1),
    ],
)
def test_invalid_lines_are_refused_with_their_number(text: str, line: int) -> None:
    with pytest.raises(BadLine) as refused:
        parse(text)
    assert refused.value.line == line


@given(st.text())
def test_any_text_is_parsed_or_refused(text: str) -> None:
    try:
        found = parse(text)
    except BadLine:
        return
    assert all(name and "=" not in name for name in found)


@given(st.text(st.characters(exclude_characters="'\0", exclude_categories=["Cs"])).filter(lambda t: "\r\n" not in t))
def test_single_quoted_values_are_unchanged(value: str) -> None:
    assert parse(f"A='{value}'\nB=2") == {"A": value, "B": "2"}
