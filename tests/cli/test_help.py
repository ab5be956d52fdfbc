"""Help: a page for every verb, and the way to it."""

from __future__ import annotations

import importlib

import pytest

from holdfast.cli import help
from holdfast.cli.main import main
from holdfast.cli.options import Verb
from holdfast.cli.verbs import VERBS
from tests.cli.calling import out


def verb_of(name: str) -> Verb:
    verb: Verb = importlib.import_module(f"holdfast.cli.verbs.{name}").VERB
    return verb


@pytest.mark.parametrize("name", VERBS)
def test_every_verb_has_a_page_like_a_manual_s(name: str) -> None:
    verb = verb_of(name)
    page = help.verb_page(verb)
    for section in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT CODES", "EXAMPLES"):
        assert f"\n{section}\n" in f"\n{page}"
    for option in verb.options:
        assert ", ".join(option.names) in page
    assert len(verb.examples) >= 2
    assert verb.name == name
    assert all(line.startswith(name) for line in verb.synopsis)
    assert max(map(len, page.split("\n"))) <= 120


@pytest.mark.parametrize("name", VERBS)
def test_every_option_with_a_value_tells_its_default_or_stands_for_itself(name: str) -> None:
    for option in verb_of(name).options:
        if option.choices and option.names[-1] != "--stream":
            assert "Default: " in option.help, option.names


@pytest.mark.parametrize("words", [["ps", "--help"], ["ps", "-h"], ["help", "ps"], ["ps", "-ah"]])
def test_the_ways_to_a_page(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 0
    assert capsys.readouterr().out == help.verb_page(verb_of("ps"))


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["help"]])
def test_the_overview_lists_every_verb(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 0
    text = capsys.readouterr().out
    assert all(f"\n    {name} " in text for name in VERBS)


def test_help_starts_no_daemon(home: object) -> None:
    assert "holdfast run" in out("run", "--help")
    assert "VERBS" in out("--help")
