"""Names in the source: class names are unique, and packages that are clean of private words stay clean."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"
#: Packages and modules that use plain words only. Add one when it is clean.
CLEAN = (
    *("cli", "daemon", "dashboard", "events", "http", "integrations", "logs", "machine", "mcp", "places", "project"),
    *("safety", "screen", "secrets", "sinks", "tools", "watch", "wire", "session_log.py", "session_pages.py"),
    *("errors.py", "extras.py", "file_trees.py", "files.py", "paths.py", "peers.py", "settings.py", "tar_reader.py"),
)
WORDS = re.compile(
    r"\b(told|whoever|whatever|nobody|somebody|anybody|everybody|farewell|papers|doorman|patience|bur(y|ied))\b",
    re.IGNORECASE,
)
#: Keys in messages and on disk, which stay, and names of packages that are not listed.
ALLOWED = {'"told": state.notified,'}


def files(*parts: str) -> Iterator[Path]:
    for part in parts:
        path = SOURCE / "holdfast" / part
        yield from path.rglob("*.py") if path.is_dir() else [path]


def test_every_class_has_a_name_of_its_own() -> None:
    """The replies of operations are called `Reply`, inside their operation."""
    names = Counter(
        node.name
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef) and node.name != "Reply"
    )
    assert len(names) > 100
    assert not [name for name, count in names.items() if count > 1]


@pytest.mark.parametrize("part", CLEAN)
def test_clean_packages_use_plain_words(part: str) -> None:
    """Also as parts of names, such as `was_told`."""
    lines = [
        (path.name, number, line.strip())
        for path in files(part)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if WORDS.search(line.replace("_", " ")) and line.strip() not in ALLOWED
    ]
    assert not lines
