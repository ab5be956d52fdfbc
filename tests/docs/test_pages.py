"""README, the index of the docs and the architecture page match the repository."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.cli.options import load, parse
from holdfast.cli.verbs import VERBS

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
ARCHITECTURE = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
#: Where the paths on the architecture page may begin; a path below one package is given without its prefix.
BASES = ("", "src/holdfast", "src/holdfast/daemon", "src/holdfast/cli", "docs")


def commands(text: str) -> Iterator[list[str]]:
    """Each `holdfast` command in the console blocks, as its words."""
    for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL):
        for line in re.findall(r"^\$ (.*)$", block, re.MULTILINE):
            words: list[str] = []
            for word in [*shlex.shlex(line, posix=True, punctuation_chars=True), ";"]:
                if re.fullmatch(r"[();<>|&]+", word):
                    if words[:1] == ["holdfast"]:
                        yield words
                    words = []
                else:
                    words.append(word)


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) < 150


@pytest.mark.parametrize("words", list(commands(README)), ids=" ".join)
def test_the_commands_in_the_readme_exist(words: list[str]) -> None:
    _, verb, *rest = words
    assert verb in VERBS
    parse(load(verb), rest)


def test_commands_are_found_in_console_blocks() -> None:
    text = (
        "```console\n$ kill $(holdfast daemon status | awk '{print}')  # all\n$ holdfast wait web; holdfast ps -a\n```"
    )
    assert list(commands(text)) == [
        ["holdfast", "daemon", "status"],
        ["holdfast", "wait", "web"],
        ["holdfast", "ps", "-a"],
    ]
    assert len(list(commands(README))) > 15


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs/README.md").read_text(encoding="utf-8")
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert sorted(re.findall(r"^\| \[(.*?)\]\(\1\) \| .", index, re.MULTILINE)) == sorted(pages)


def test_every_file_on_the_architecture_page_exists() -> None:
    named = set(re.findall(r"(?<![\w/.])[\w/]*\w+\.(?:py|md)\b", ARCHITECTURE))
    assert len(named) > 30
    directories = [Path(name).parent for name in named] + [Path()]
    missing = [name for name in named if not any((ROOT / b / d / name).exists() for b in BASES for d in directories)]
    assert missing == []
