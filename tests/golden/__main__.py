"""`python -m tests.golden [--write]`: what differs from the files, or the files written again."""

from __future__ import annotations

import sys

from tests.golden.surface import FILES, surface


def differing(found: dict[str, str]) -> list[str]:
    """Names of files that differ, are missing, or are there for nothing."""
    there = {str(path.relative_to(FILES)): path for path in FILES.rglob("*") if path.is_file()}
    same = {name for name, path in there.items() if found.get(name) == path.read_text(encoding="utf-8")}
    return sorted((there.keys() | found.keys()) - same)


def write(found: dict[str, str]) -> None:
    for name in differing(found):
        path = FILES / name
        if name in found:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(found[name], encoding="utf-8")
        else:
            path.unlink()


if __name__ == "__main__":
    made = surface()
    for changed in differing(made):
        print(changed)
    if sys.argv[1:] == ["--write"]:
        write(made)
