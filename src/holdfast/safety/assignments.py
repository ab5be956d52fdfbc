"""Assignments and declarations: `x=rm`, `a=(rm -rf /)`, `export D=/`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from holdfast.safety.marks import UNKNOWN, UNKNOWN_TEXT, letters
from holdfast.safety.redirects import spans
from holdfast.safety.state import NOTHING, Feed, JudgeState, SimulatedCall, Word
from holdfast.safety.tables import PATTERNS
from holdfast.safety.words import MOST_OUTCOMES, Words, stored

if TYPE_CHECKING:
    from tree_sitter import Node

    from holdfast.safety.reader import Reader
    from holdfast.safety.syntax import Script

_KINDS = ("variable_assignment", "variable_assignments", "declaration_command", "unset_command")
_KEY = re.compile(r"^\[[^\]]*\]\+?=")
_NAMED = re.compile(r"([A-Za-z_][\w%]*)(\+?)=(.*)", re.DOTALL)
_COMMANDS = re.compile(PATTERNS["command_variables"])
#: Variables of which a shell runs the substitutions.
_PROMPTS = re.compile(r"PS[0-4]|PROMPT|RPROMPT")


def handles(node: Node) -> bool:
    return node.type in _KINDS


def read(reader: Reader, script: Script, node: Node, state: JudgeState) -> Feed:
    """Set the variables, and report the assignments for the rules."""
    if node.type == "variable_assignment":
        _assign(reader, script, node, state)
    elif node.type == "variable_assignments":
        for child in node.named_children:
            read(reader, script, child, state)
    else:
        return _declare(reader, script, node, state)
    return NOTHING


def _declare(reader: Reader, script: Script, node: Node, state: JudgeState) -> Feed:
    words = Words(script, state, reader)
    arguments: list[Word] = []
    for child in node.children[1:]:
        if child.type == "variable_assignment":
            _assign(reader, script, child, state)
            arguments.append(Word(script.source(child), script.source(child)))
    others = [child for child in node.children[1:] if child.type != "variable_assignment"]
    for start, end in spans(script, others):
        for word in words.expand(start, end)[0]:
            arguments.append(word)
            declare_word(reader, word, state)
    program = script.source(node.children[0])
    if program != "export" and any(map(is_reference, arguments)):
        for word in arguments:
            state.values[word.text.partition("=")[0]] = (UNKNOWN,)
    reader.report(SimulatedCall(program, tuple(arguments), script.source(node), state.cwd))
    prints = all(word.text.startswith("-") for word in arguments)
    return Feed(None, script.source(node), (program,)) if prints else NOTHING


def is_reference(word: Word) -> bool:
    """`declare -n`: a variable that stands for another one."""
    return re.fullmatch(r"-[A-Za-z]*n[A-Za-z]*", word.text) is not None


def declare_word(reader: Reader, word: Word, state: JudgeState) -> None:
    """`export "x=y"`, where the grammar sees a word."""
    if found := _NAMED.fullmatch(word.marked):
        _set(reader, state, found[1], (stored(found[3]),), found[0])


def _assign(reader: Reader, script: Script, node: Node, state: JudgeState) -> None:
    name_node, value = node.child_by_field_name("name"), node.child_by_field_name("value")
    name = script.source(name_node).partition("[")[0] if name_node else ""
    words = Words(script, state, reader)
    if name_node and name_node.type == "subscript":
        words.scan(name_node.start_byte, name_node.end_byte, quoted=True)
    if value is not None and value.type == "array":
        elements = _elements(words, value)
        adds = any(child.type == "+=" for child in node.children)
        state.arrays[name] = (*(state.arrays.get(name, ()) if adds else ()), *elements)[:256]
        return
    end = max(value.end_byte, words.word_end(value.start_byte)) if value else 0
    values = words.values(value.start_byte, end) if value else ("",)
    if name_node and name_node.type == "subscript":
        state.arrays[name] = (*state.arrays.get(name, ()), *values)[:256]
        return
    if any(child.type == "+=" for child in node.children):
        before = state.values.get(name, ("",))
        values = tuple(old + new for old in before for new in values)[:MOST_OUTCOMES]
    if value is not None and any(UNKNOWN in one for one in values):
        state.origins[name] = script.source(value)[:500]
    _set(reader, state, name, values, script.source(node))


def _set(reader: Reader, state: JudgeState, name: str, values: tuple[str, ...], where: str) -> None:
    state.set(name, values)
    for value in values:
        reader.count()
        reader.report(SimulatedCall("@assign", (Word(f"{name}={value[:400]}", where),), where, state.cwd))
        if _COMMANDS.fullmatch(name):
            line = letters(value).lstrip("|")
            reader.read(line, state.copy(), Feed(None, where, (name,)) if name.endswith("PAGER") else None)
            if line.strip():
                # A program that runs the command gives it arguments.
                reader.read_quietly(f'{line} "{UNKNOWN_TEXT}"', state.copy())
        elif value.startswith("() {"):
            # A function that a shell imports from its environment.
            reader.read_quietly(f"f{letters(value)}; f", state.copy())
        elif _PROMPTS.fullmatch(name) and re.search(r"[$`]\(?", value):
            reader.read_quietly(f': "{letters(value)}"', state.copy())


def _elements(words: Words, array: Node) -> list[str]:
    found: list[str] = []
    for start, end in spans(words.script, array.children[1:-1]):
        found += [_KEY.sub("", stored(word.marked)) for word in words.expand(start, end)[0]]
    return found
