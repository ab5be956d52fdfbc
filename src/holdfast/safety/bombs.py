"""Fork bombs, found by their shape: a function that starts itself twice, or in the background, without a condition."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

    from holdfast.safety.syntax import Script

_SELF = ("$0", '"$0"', "${0}", '"${0}"')
_CONDITIONS = ("if_statement", "while_statement", "for_statement", "c_style_for_statement", "case_statement", "list")
_ENDLESS = ("true", ":", "[ 1 ]", "[[ 1 ]]", "((1))", "(( 1 ))", "[ true ]", "/bin/true")
_PAUSES = ("sleep", "wait", "read", "break", "exit", "return", "inotifywait", "timeout")


def find(script: Script) -> Iterator[str]:
    """The bombs in a script: `@fork-bomb`, and `@fork-loop` for a loop that starts programs without end."""
    if "&" not in script.text and "|" not in script.text:
        return
    nodes = list(_all(script.root))
    if _functions_bomb(script, nodes) or any(_starts_itself(script, node) for node in nodes):
        yield "@fork-bomb"
    if any(_loops(script, node) for node in nodes):
        yield "@fork-loop"


def _all(root: Node) -> Iterator[Node]:
    todo = [root]
    while todo:
        node = todo.pop()
        yield node
        todo.extend(node.children)


def _functions_bomb(script: Script, nodes: list[Node]) -> bool:
    calls: dict[str, set[str]] = {}
    multiplied: list[tuple[str, str]] = []
    for node in nodes:
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if node.type == "function_definition" and name and body:
            edges = list(_unconditional_calls(script, body, parallel=False))
            calls.setdefault(script.source(name), set()).update(called for called, _ in edges)
            multiplied += [(script.source(name), called) for called, parallel in edges if parallel]
    return any(_reaches(calls, called, caller) for caller, called in multiplied)


def _unconditional_calls(script: Script, root: Node, *, parallel: bool) -> Iterator[tuple[str, bool]]:
    """Names called below a node whatever happens, and whether the caller goes on beside them."""
    todo = [(root, parallel)]
    while todo:
        node, beside = todo.pop()
        if node.type == "command":
            if name := node.child_by_field_name("name"):
                yield script.source(name), beside
        elif node.type not in _CONDITIONS:
            beside = beside or node.type == "pipeline"
            todo += [(child, beside or _in_background(child)) for child in node.named_children]


def _in_background(node: Node) -> bool:
    return bool(node.next_sibling) and node.next_sibling.type == "&" if node.next_sibling else False


def _reaches(calls: dict[str, set[str]], start: str, goal: str) -> bool:
    seen, todo = set(), [start]
    while todo:
        name = todo.pop()
        if name == goal:
            return True
        if name not in seen:
            seen.add(name)
            todo.extend(calls.get(name, ()))
    return False


def _starts_itself(script: Script, node: Node) -> bool:
    if node.type != "command" or not (name := node.child_by_field_name("name")) or script.source(name) not in _SELF:
        return False
    parent = node.parent
    return _in_background(node) or (parent is not None and (parent.type == "pipeline" or _in_background(parent)))


def _loops(script: Script, node: Node) -> bool:
    body = node.child_by_field_name("body")
    if body is None or not _is_endless(script, node):
        return False
    started = [child for child in body.named_children if _in_background(child)]
    waits = any(
        name in _PAUSES
        for child in body.named_children
        if not _in_background(child)
        for name, _ in _unconditional_calls(script, child, parallel=False)
    )
    return bool(started) and not waits


def _is_endless(script: Script, node: Node) -> bool:
    if node.type == "c_style_for_statement":
        return node.child_by_field_name("condition") is None
    condition = node.child_by_field_name("condition")
    if node.type != "while_statement" or condition is None:
        return False
    text = script.source(condition).strip()
    return text in ("false", "! true") if script.source(node).startswith("until") else text in _ENDLESS
