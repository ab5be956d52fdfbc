"""Help: a page for every verb, and the way to it."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from holdfast.cli.help import usage
from holdfast.cli.main import main
from holdfast.cli.options import Verb
from holdfast.cli.verbs import VERBS
from holdfast.ops.catalog import OPERATIONS
from tests.cli.calling import Terminal, out


def verb_of(name: str) -> Verb:
    verb: Verb = importlib.import_module(f"holdfast.cli.verbs.{name}").VERB
    return verb


@pytest.mark.parametrize("name", VERBS)
def test_every_verb_has_a_page_like_a_manual_s(name: str) -> None:
    verb = verb_of(name)
    page = usage.verb_page(verb)
    for section in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT CODES", "EXAMPLES"):
        assert f"\n{section}\n" in f"\n{page}"
    for option in verb.options:
        assert ", ".join(option.names) in page
    assert len(verb.examples) >= 2
    assert verb.name == name
    assert all(line.startswith(name) for line in verb.synopsis)


@pytest.mark.parametrize("name", ["", *VERBS])
@pytest.mark.parametrize("width", [60, 80, 96])
def test_pages_fit_the_terminal_and_commands_to_copy_stay_whole(name: str, width: int) -> None:
    page = usage.verb_page(verb_of(name), width) if name else usage.overview("somewhere", width)
    too_long = [line for line in page.split("\n") if len(line) > width]
    assert [line for line in too_long if width >= 80 or not line.startswith("        $ ")] == []


@pytest.mark.parametrize(("cols", "width"), [(40, 60), (70, 70), (80, 80), (200, 96)])
def test_a_page_is_as_wide_as_the_terminal_within_bounds(home: Path, cols: int, width: int) -> None:
    for words in ([], ["--help"], ["ps", "--help"]):
        with Terminal(*words, cols=cols) as terminal:
            lines = terminal.rest().split("\r\n")
        assert width - 16 < max(len(line) for line in lines if " $ " not in line and "/" not in line) <= width


def test_without_a_terminal_a_page_has_80_columns(home: Path) -> None:
    assert out("ps", "--help") == usage.verb_page(verb_of("ps"), 80)
    assert max(map(len, out().split("\n"))) <= 80


@pytest.mark.parametrize("name", VERBS)
def test_the_help_of_every_option_with_choices_names_its_default(name: str) -> None:
    for option in verb_of(name).options:
        if option.choices and option.names[-1] != "--stream":
            assert "Default: " in option.help, option.names


@pytest.mark.parametrize("words", [["ps", "--help"], ["ps", "-h"], ["help", "ps"], ["ps", "-ah"]])
def test_the_ways_to_a_page(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 0
    assert capsys.readouterr().out == usage.verb_page(verb_of("ps"))


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["help"]])
def test_the_overview_lists_every_verb(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 0
    text = capsys.readouterr().out
    assert all(f"\n    {name} " in text for name in VERBS)


def test_help_starts_no_daemon(home: object) -> None:
    assert "holdfast run" in out("run", "--help")
    assert "VERBS" in out("--help")


@pytest.mark.parametrize(
    ("verb", "operation"), [("run", "start"), *((name, name) for name in ("judge", "logs", "top", "wait"))]
)
def test_options_have_the_choices_of_the_operation(verb: str, operation: str) -> None:
    fields = OPERATIONS[operation].FIELDS
    options = {option.names[-1].strip("-").replace("-", "_"): option.choices for option in verb_of(verb).options}
    compared = {name: choices for name, choices in options.items() if choices and name in fields}
    assert compared
    assert compared == {name: tuple(fields[name].kind.schema()["enum"]) for name in compared}
