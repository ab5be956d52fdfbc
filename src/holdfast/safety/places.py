"""Paths, and whether they are in a place of a rule. Only text: the file system is not read."""

from __future__ import annotations

import functools
import re
import warnings

from holdfast.safety.marks import BRACKET, HOME, QUESTION, STAR, UNKNOWN, has_glob, without_braces

#: The directory of a text if the caller gives none.
SOMEWHERE = "/@here"
MOST_PATH = 1024
HOMES = re.compile(r"^(?:/home/[^/]+|/Users/[^/]+|/root)(?=/|$)")
_OTHER_ROOT = re.compile(r"^/proc/[^/]+/root(?=/|$)")
#: The directory of a project, or of several, below a temporary directory.
_TEMPORARY = re.compile(r"(?:/tmp|/var/tmp|/dev/shm)/[^/]+")
_ONLY_GLOB = re.compile(
    f"^\\.?[{STAR}{QUESTION}]*{STAR}[{STAR}{QUESTION}]*$|^\\.?{BRACKET}.*{STAR}$|^\\.{QUESTION}+{STAR}?$"
)


def resolve(marked: str, cwd: str) -> str:
    """The absolute, normalised path: it begins with `/`, with HOME, or with UNKNOWN."""
    path = without_braces(marked)[:MOST_PATH]
    if path.startswith(HOME):
        _, slash, rest = path.partition("/")
        path = HOME + slash + rest if not path.startswith(HOME + "+") else cwd + slash + rest
    elif not path.startswith(("/", UNKNOWN)):
        path = f"{cwd}/{path}"
    return _straight(HOMES.sub(HOME, _straight(_OTHER_ROOT.sub("/", path))))


def _straight(path: str) -> str:
    top = path[0] if path[:1] in (HOME, "/") else ""
    parts: list[str] = []
    for part in path[len(top) :].split("/"):
        if part == "..":
            if parts:
                parts.pop()
            elif top == HOME:
                top, parts = "/", ["home"]
        elif part not in ("", "."):
            parts.append(part)
    return top + ("/" if top == HOME and parts else "") + "/".join(parts)


def children_of(path: str) -> str:
    """`x/*` means everything in x: the path of x. Any other path is itself."""
    parent, _, last = path.rpartition("/")
    return (parent or "/") if _ONLY_GLOB.match(last) else path


def below(path: str, top: str) -> str | None:
    """The path relative to a directory: `.`, `./x`, or None if it is outside."""
    if path == top:
        return "."
    if path.startswith(top.rstrip("/") + "/"):
        return "." + path[len(top.rstrip("/")) :]
    return None


def spellings(path: str, start: str) -> list[str]:
    """The spellings of a path that a pattern may match."""
    found = [path]
    if (inside := below(path, start)) is not None:
        found.append(inside)
    if path.startswith(UNKNOWN + "/"):
        found.append(HOME + path[1:])
    return found


def surely_in(path: str, patterns: tuple[str, ...], start: str) -> bool:
    """Whether a path is in one of the places for all values of its globs and unknown parts."""
    # An unknown part may be empty: /tmp/$x is /tmp then.
    if UNKNOWN in path[1:] and not path.startswith(UNKNOWN):
        emptied = _straight(path.replace(UNKNOWN, ""))
        if not surely_in(emptied, patterns, start):
            return False
    if _is_own(path, start):
        patterns = tuple(pattern for pattern in patterns if pattern.startswith("."))
    found = spellings(children_of(path), start)[: None if not path.startswith(UNKNOWN) else 1]
    return bool(patterns) and any(map(_any_of(patterns).fullmatch, found))


def _is_own(path: str, start: str) -> bool:
    """Whether a path is in the tree of a project that is itself in a temporary directory: there it is not scratch."""
    top = _TEMPORARY.match(start)
    return top is not None and below(path, top[0]) is not None


def may_be_in(path: str, patterns: tuple[str, ...], start: str) -> bool:
    """Whether a path is in one of the places; a glob counts if it could match one."""
    found = spellings(path, start)
    if has_glob(path):
        found += spellings(children_of(path), start)
        if any(_could_meet(spelling, pattern) for spelling in found for pattern in patterns):
            return True
    return any(map(_any_of(patterns).fullmatch, found))


@functools.lru_cache(maxsize=512)
def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{_pattern(pattern).pattern})" for pattern in patterns), re.DOTALL)


@functools.lru_cache(maxsize=2048)
def _pattern(pattern: str) -> re.Pattern[str]:
    if pattern.startswith("~"):
        pattern = HOME + pattern[1:]
    pieces = re.split(r"(/\*\*$|\*\*/|\*\*|\*|\?)", pattern)
    signs = {"/**": r"(?:/.*)?", "**/": r"(?:[^/]+/)*", "**": r".*", "*": r"[^/]*", "?": r"[^/]"}
    return re.compile("".join(signs.get(piece, re.escape(piece)) for piece in pieces), re.DOTALL)


def _could_meet(path: str, pattern: str) -> bool:
    """Whether a path with globs and a pattern could match the same name, part by part."""
    if pattern.startswith("~"):
        pattern = HOME + pattern[1:]
    parts, expected = path.split("/"), pattern.split("/")
    if "**" in expected:
        head, tail = (
            expected[: expected.index("**")],
            [part for part in expected[expected.index("**") :] if part != "**"],
        )
        if len(parts) < len(head) + len(tail):
            return False
        return all(map(_part_meets, parts, head)) and all(map(_part_meets, parts[len(parts) - len(tail) :], tail))
    return len(parts) == len(expected) and all(map(_part_meets, parts, expected))


def _part_meets(part: str, expected: str) -> bool:
    if not has_glob(part):
        return bool(_pattern(expected).fullmatch(part))
    if expected.startswith(".") and part[0] in (STAR, QUESTION):
        return False
    if "*" not in expected and "?" not in expected:
        return bool(_glob(part).fullmatch(expected))
    fixed, other = re.split(f"[{STAR}{QUESTION}{BRACKET}]", part)[0], re.split(r"[*?]", expected)[0]
    return fixed.startswith(other) or other.startswith(fixed)


@functools.lru_cache(maxsize=256)
def _glob(part: str) -> re.Pattern[str]:
    signs = {STAR: ".*", QUESTION: ".", BRACKET: "["}
    text = "".join(
        signs.get(letter, "]" if letter == "]" and BRACKET in part else re.escape(letter)) for letter in part
    )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            return re.compile(text, re.DOTALL)
    except re.error:
        return re.compile(".*", re.DOTALL)
