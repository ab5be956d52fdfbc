"""Names in source and tests: class names are unique, and private words do not come back."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
WORDS = re.compile(
    r"\b(told|whoever|whatever|nobody|nobodys|somebody|anybody|everybody|person|persons|news|farewell|papers|doorman|"
    r"patience|bur(y|ied)|nursery|whereabouts|kin|bells)\b",
    re.IGNORECASE,
)
#: Test names are sentences about programs: none of these does such a thing.
_SAID_OF_TESTS = re.compile(rf"{WORDS.pattern}|\b(tells?|hears?|rooms?)\b", re.IGNORECASE)
#: Keys and values in messages and on disk, which stay.
_KEYS = re.compile(r'"(deadline_)?told(_at)?"|told \(notifications sent\)|, "person"$|"(no )?news"')


def files(directory: Path) -> Iterator[Path]:
    yield from sorted(directory.rglob("*.py"))


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def test_every_class_has_a_name_of_its_own() -> None:
    """The replies of operations are called `Reply`, inside their operation."""
    names = Counter(
        node.name
        for path in files(SOURCE)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ClassDef) and node.name != "Reply"
    )
    assert len(names) > 100
    assert not [name for name, count in names.items() if count > 1]


def test_the_source_uses_plain_words() -> None:
    """Also as parts of names, such as `was_told`."""
    lines = [
        (path.name, number, line.strip())
        for path in files(SOURCE)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if WORDS.search(_KEYS.sub("", line).replace("_", " "))
    ]
    assert not lines


def test_tests_have_names_in_plain_words() -> None:
    names = [
        node.name
        for path in files(ROOT / "tests")
        for node in ast.walk(tree(path))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test_")
    ]
    assert len(names) > 1000
    assert not [name for name in names if _SAID_OF_TESTS.search(name.replace("_", " "))]
