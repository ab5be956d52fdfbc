"""Fork bombs, found by their shape: a function that starts itself in parallel without a condition, and endless loops
that start programs in the background.
"""

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
    """`@fork-bomb`, and `@fork-loop` for a loop that starts programs without end."""
    if "&" not in script.text and "|" not in script.text:
        return
    nodes, todo = [], [script.root]
    while todo:
        nodes.append(todo.pop())
        todo.extend(nodes[-1].children)
    starts_itself = any(name in _SELF and parallel for name, parallel in _calls(script, script.root))
    if starts_itself or _functions_multiply(script, nodes):
        yield "@fork-bomb"
    if any(_loops(script, node) for node in nodes):
        yield "@fork-loop"


def _calls(script: Script, root: Node) -> Iterator[tuple[str, bool]]:
    """Names that are called without a condition, and whether the caller goes on in parallel."""
    todo = [(root, _in_background(root))]
    while todo:
        node, parallel = todo.pop()
        if node.type == "command":
            if name := node.child_by_field_name("name"):
                yield script.source(name), parallel
        elif node.type not in _CONDITIONS:
            parallel = parallel or node.type == "pipeline"
            todo += [(child, parallel or _in_background(child)) for child in node.named_children]


def _in_background(node: Node) -> bool:
    return node.next_sibling is not None and node.next_sibling.type == "&"


def _functions_multiply(script: Script, nodes: list[Node]) -> bool:
    """Whether a function reaches itself through at least one parallel call."""
    reached: dict[str, set[str]] = {}
    multiplied: list[tuple[str, str]] = []
    for node in nodes:
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if node.type == "function_definition" and name and body:
            for called, parallel in _calls(script, body):
                reached.setdefault(script.source(name), set()).add(called)
                multiplied += [(script.source(name), called)] if parallel else []
    for caller, called in multiplied:
        seen: set[str] = set()
        todo = {called}
        while todo - seen:
            seen |= todo
            todo = {other for name in todo for other in reached.get(name, ())}
        if caller in seen:
            return True
    return False


def _loops(script: Script, node: Node) -> bool:
    body = node.child_by_field_name("body")
    if body is None or not _is_endless(script, node):
        return False
    waiting = [child for child in body.named_children if not _in_background(child)]
    waits = any(name in _PAUSES for child in waiting for name, _ in _calls(script, child))
    return len(waiting) < len(body.named_children) and not waits


def _is_endless(script: Script, node: Node) -> bool:
    condition = node.child_by_field_name("condition")
    if node.type == "c_style_for_statement":
        return condition is None
    if node.type != "while_statement" or condition is None:
        return False
    text = script.source(condition).strip()
    return text in ("false", "! true") if script.source(node).startswith("until") else text in _ENDLESS
