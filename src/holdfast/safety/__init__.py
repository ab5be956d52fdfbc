"""What commands may do, and what may be seen of secrets.

`judge`, `judge_argv` and `judge_input` look at commands before they run, by a policy that is data. A seat belt for
models that err, not a sandbox: see docs/safety.md. What is not used is not loaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.safety.judge import judge, judge_argv
    from holdfast.safety.keyboard import ShellState, judge_input, shell_state
    from holdfast.safety.policy import Policy, default_policy, load_policy, read_rules
    from holdfast.safety.rules import Rule
    from holdfast.safety.syntax import Script, parse
    from holdfast.safety.verdict import Action, Verdict

__all__ = [
    "Action",
    "Policy",
    "Rule",
    "Script",
    "ShellState",
    "Verdict",
    "default_policy",
    "judge",
    "judge_argv",
    "judge_input",
    "load_policy",
    "parse",
    "read_rules",
    "shell_state",
]

_ROOMS = {
    "judge": ("judge", "judge_argv"),
    "keyboard": ("ShellState", "judge_input", "shell_state"),
    "policy": ("Policy", "default_policy", "load_policy", "read_rules"),
    "rules": ("Rule",),
    "syntax": ("Script", "parse"),
    "verdict": ("Action", "Verdict"),
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    for room, names in _ROOMS.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{room}"), name)
    raise AttributeError(name)
