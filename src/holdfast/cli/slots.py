"""What a word of a verb can be, read from its synopsis: so that a new verb is completed without being told about."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.cli.options import Verb

#: Stands for any number of words.
_AGAIN = "…"


def slots_at(verb: Verb, before: Sequence[str]) -> list[str]:
    """What can stand after the words `before`: literal words in lower case, or names of slots such as ID."""
    found: list[str] = []
    for line in verb.synopsis:
        for slot in _at(_positions(line), before):
            if slot not in found:
                found.append(slot)
    return found


def is_literal(slot: str) -> bool:
    return slot == slot.lower()


def _at(positions: list[list[str]], before: Sequence[str]) -> list[str]:
    if positions and positions[-1][0].endswith(_AGAIN) and len(before) >= len(positions):
        return [positions[-1][0].removesuffix(_AGAIN)]
    if len(before) >= len(positions):
        return []
    for word, slots in zip(before, positions, strict=False):
        if all(map(is_literal, slots)) and word not in slots:
            return []
    return [slot.removesuffix(_AGAIN) for slot in positions[len(before)]]


def _positions(line: str) -> list[list[str]]:
    """`send ID [TEXT] [--eof]` -> [["ID"], ["TEXT"]]; `daemon start|stop` -> [["start", "stop"]]."""
    positions: list[list[str]] = []
    for token in _without_options(line).split()[1:]:
        bare = token.strip("[]")
        if bare.startswith("-"):  # from here on the line is about options
            break
        positions.append(bare.split("|"))
    return positions


def _without_options(line: str) -> str:
    """Without the groups in brackets that begin with a dash, whatever is nested in them."""
    kept: list[str] = []
    depth = 0
    for at, character in enumerate(line):
        if character == "[" and (depth or line[at + 1 : at + 2] == "-"):
            depth += 1
        elif character == "]" and depth:
            depth -= 1
        elif not depth:
            kept.append(character)
    return "".join(kept)
