"""Commands are judged before they run, by a policy that is data.

`judge`, `judge_argv` and `judge_input` protect against mistakes; they are no sandbox: see docs/safety.md. Modules are
imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.safety.judging import judge, judge_argv
    from holdfast.safety.keyboard import ShellState, judge_input, shell_state
    from holdfast.safety.policy import Policy, SandboxProfile, default_policy, load_policy, read_rules
    from holdfast.safety.rules import Action, Rule, Verdict
    from holdfast.safety.syntax import Script, parse

__all__ = [
    "Action", "Policy", "Rule", "SandboxProfile", "Script", "ShellState", "Verdict", "default_policy", "judge",
    "judge_argv", "judge_input", "load_policy", "parse", "read_rules", "shell_state",
]  # fmt: skip

_MODULES = {
    "judging": ("judge", "judge_argv"),
    "keyboard": ("ShellState", "judge_input", "shell_state"),
    "policy": ("Policy", "SandboxProfile", "default_policy", "load_policy", "read_rules"),
    "rules": ("Action", "Rule", "Verdict"),
    "syntax": ("Script", "parse"),
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(name)
