"""Reading arguments."""

from __future__ import annotations

import pytest

from holdfast.cli.options import JSON, Option, Verb, count, parse
from holdfast.errors import BadValue


def verb(greedy: bool = False) -> Verb:
    return Verb(
        "try",
        synopsis=["try"],
        about="a",
        options=[
            Option("-a", "--all", help="h"),
            Option("-n", "--lines", metavar="N", convert=count, help="h"),
            Option("--env", metavar="K=V", repeat=True, help="h"),
            Option("--notify", choices=("any", "never"), implies="any", help="h"),
            Option("--until", choices=("exit", "output"), help="h"),
            JSON,
        ],
        examples=[],
        greedy=greedy,
    )


def test_every_way_to_write_an_option() -> None:
    for words in (["-n", "5"], ["-n5"], ["-n=5"], ["--lines", "5"], ["--lines=5"], ["-an5"], ["-an", "5"]):
        assert parse(verb(), words).lines == 5
    given = parse(verb(), ["x", "-a", "--env", "A=1", "--env=B=2", "y", "--json"])
    assert (given.all, given.env, given.json, given.words) == (True, ["A=1", "B=2"], True, ["x", "y"])


def test_an_option_that_implies_a_value_takes_another_with_an_equals_sign_alone() -> None:
    assert parse(verb(), ["--notify", "never"]).notify == "any"
    assert parse(verb(), ["--notify", "never"]).words == ["never"]
    assert parse(verb(), ["--notify=never"]).notify == "never"
    assert parse(verb(), []).notify is None
    with pytest.raises(BadValue):
        parse(verb(), ["--notify="])


def test_what_is_not_given_is_empty() -> None:
    given = parse(verb(), [])
    assert (given.all, given.lines, given.env, given.until, given.words) == (False, None, [], None, [])


def test_after_two_dashes_everything_is_a_word() -> None:
    assert parse(verb(), ["--", "-a", "--", "--json"]).words == ["-a", "--", "--json"]
    assert parse(verb(), ["-"]).words == ["-"]


def test_a_command_keeps_its_own_options() -> None:
    given = parse(verb(greedy=True), ["-a", "ls", "-a", "--", "--json"])
    assert (given.all, given.json, given.words) == (True, False, ["ls", "-a", "--", "--json"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--watch", "x"], "no option '--watch'"),
        (["-z"], "no option '-z'"),
        (["-az"], "no option '-z'"),
        (["--al"], "no option '--al'"),
        (["--lines"], "needs a value"),
        (["-n"], "needs a value"),
        (["--all=yes"], "takes no value"),
        (["--until", "never"], "cannot be 'never'"),
        (["-n", "-5"], "not a number"),
        (["-n", "٣"], "not a number"),
        (["-n", "9" * 30], "not a number"),
    ],
)
def test_what_the_verb_does_not_take_is_refused(words: list[str], said: str) -> None:
    with pytest.raises(BadValue, match=said):
        parse(verb(), words)


def test_too_few_and_too_many_words() -> None:
    with pytest.raises(BadValue, match="S is missing"):
        parse(verb(), ["end"]).only("end", "S")
    with pytest.raises(BadValue, match="unexpected argument"):
        parse(verb(), ["a", "b"]).only("ID")
    with pytest.raises(BadValue, match="ID is missing"):
        parse(verb(), []).some("ID")
