"""What counts as a question, and how it is shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.probes import prompts
from holdfast.model.probes.prompts import Reader, Terminal

LINES = Terminal(echo=True, canonical=True)
HIDDEN = Terminal(echo=False, canonical=True)
KEYS = Terminal(echo=False, canonical=False)
ONE_KEY = Terminal(echo=True, canonical=False)


@pytest.mark.parametrize(
    ("terminal", "reader", "line", "asks"),
    [
        (LINES, "reading", "Your name: ", True),
        (LINES, "reading", "go on [Y/n] ", True),
        (LINES, "reading", "", False),
        (LINES, "reading", "   ", False),
        (LINES, "busy", "working ... ", False),
        (LINES, "polling", "listening ", False),
        (LINES, "hidden", "something ", False),
        (LINES, "reading", "user@host:~$ ", False),
        (LINES, "reading", "# ", False),
        (LINES, "reading", ">>> ", False),
        (HIDDEN, "reading", "Password: ", True),
        (HIDDEN, "reading", "", True),
        (HIDDEN, "polling", "Password: ", True),
        (HIDDEN, "hidden", "[sudo] password for me: ", True),
        (HIDDEN, "busy", "Password: ", False),
        (KEYS, "reading", "Search: ", False),
        (KEYS, "polling", ":", False),
        (ONE_KEY, "reading", "go on? [y/N] ", True),
        (None, "reading", "continue? ", True),
        (None, "reading", "Name: ", True),
        (None, "reading", '{"jsonrpc":"2.0"}', False),
        (None, "reading", ">>> ", False),
        (None, "busy", "continue? ", False),
    ],
)
def test_what_is_a_question(terminal: Terminal | None, reader: Reader, line: str, asks: bool) -> None:
    assert prompts.asks(terminal, reader, line) is asks


def test_what_is_typed_is_hidden_only_where_a_line_is_read_without_echo_or_on_a_pipe() -> None:
    assert [prompts.hides(one) for one in (None, HIDDEN, LINES, KEYS, ONE_KEY)] == [True, True, False, False, False]


def test_an_editor_at_rest_is_not_looked_at_again() -> None:
    assert prompts.rests(KEYS, "reading") and prompts.rests(KEYS, "polling")
    assert not prompts.rests(LINES, "busy") and not prompts.rests(LINES, "polling")


def test_looks_become_rare() -> None:
    pauses = [prompts.pause(looks) for looks in range(2000)]
    assert pauses[0] <= 0.5 and pauses == sorted(pauses) and pauses[-1] == 60.0


def test_a_prompt_is_the_last_line_that_says_something() -> None:
    assert prompts.prompt_of("one\nPassword:\n\n") == "Password:"
    assert prompts.prompt_of("") == ""
    assert prompts.prompt_of("token abc: ", lambda text: text.replace("abc", "***")) == "token ***:"


@given(st.text())
def test_a_prompt_is_one_printable_line_of_bounded_length(text: str) -> None:
    shown = prompts.prompt_of(text)
    assert len(shown) <= prompts.LONGEST
    assert shown.isprintable() or shown == ""
