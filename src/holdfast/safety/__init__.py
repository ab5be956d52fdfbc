"""Judges commands before they run: `judge`, `judge_argv`, `judge_input`, by a policy that is data.

A seat belt for models that err, not a sandbox: see docs/safety.md. Importing it loads the grammar only when something
is judged.
"""

from __future__ import annotations

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
