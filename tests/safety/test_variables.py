"""Variables that change which code a command runs."""

from __future__ import annotations

import pytest

from holdfast.safety.variables import code_variable


@pytest.mark.parametrize(
    "name", ["PATH", "LD_PRELOAD", "BASH_FUNC_ls%%", "CDPATH", "GIT_SSH_COMMAND", "NODE_OPTIONS", "PYTHONPATH"]
)
def test_variables_that_change_code(name: str) -> None:
    assert code_variable({"A": "1", name: "x", "Z": "2"}) == name


@pytest.mark.parametrize(
    "name", ["PORT", "NODE_ENV", "PYTHONUNBUFFERED", "GIT_TERMINAL_PROMPT", "DATABASE_URL", "CI", "TERM"]
)
def test_harmless_variables(name: str) -> None:
    assert code_variable({name: "x"}) is None


def test_harmless_programs() -> None:
    assert code_variable({"PAGER": "cat", "EDITOR": "true", "CC": "clang", "SHELL": "/bin/bash"}) is None
    assert code_variable({"PAGER": "sh -c x"}) == "PAGER"
