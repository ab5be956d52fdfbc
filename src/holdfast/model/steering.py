"""Variables that have something else run than what is written. No I/O."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_STEERING = frozenset(
    [
        "PATH",
        "BASH_ENV",
        "ENV",
        "IFS",
        "SHELLOPTS",
        "BASHOPTS",
        "PROMPT_COMMAND",
        "PS0",
        "PS1",
        "PS2",
        "PS4",
        "CDPATH",
        "GLOBIGNORE",
        "ZDOTDIR",
        "INPUTRC",
        "LESSOPEN",
        "LESSCLOSE",
        "MAKEFLAGS",
        "MAKEFILES",
        "TAR_OPTIONS",
        "RSYNC_RSH",
        "JAVA_TOOL_OPTIONS",
        "SSH_ASKPASS",
        "SUDO_ASKPASS",
        "PSQLRC",
        "LUA_INIT",
        "RUSTC_WRAPPER",
    ]
)
_FAMILIES = ("LD_", "DYLD_", "BASH_FUNC_", "PYTHON", "NODE_", "RUBY", "PERL", "GIT_", "npm_config_")
#: Of the families, those that only choose how much is printed, or for whom.
_HARMLESS = frozenset(
    [
        "NODE_ENV",
        "NODE_DEBUG",
        "NODE_NO_WARNINGS",
        "PYTHONUNBUFFERED",
        "PYTHONDONTWRITEBYTECODE",
        "PYTHONHASHSEED",
        "PYTHONIOENCODING",
        "PYTHONUTF8",
        "PYTHONFAULTHANDLER",
        "PYTHONASYNCIODEBUG",
        "PYTHONDEVMODE",
        "GIT_TERMINAL_PROMPT",
        "GIT_AUTHOR_NAME",
        "GIT_AUTHOR_EMAIL",
        "GIT_AUTHOR_DATE",
        "GIT_COMMITTER_NAME",
        "GIT_COMMITTER_EMAIL",
        "GIT_COMMITTER_DATE",
        "GIT_TRACE",
    ]
)
#: Variables that name a program, and programs that are harmless there.
_PROGRAMS = frozenset(
    ["EDITOR", "VISUAL", "PAGER", "MANPAGER", "GIT_PAGER", "GIT_EDITOR", "BROWSER", "SHELL", "CC", "CXX", "RUSTC"]
)
_USUAL = frozenset(
    [
        ":",
        "true",
        "cat",
        "less",
        "more",
        "vi",
        "vim",
        "nvim",
        "nano",
        "gcc",
        "g++",
        "clang",
        "clang++",
        "cc",
        "c++",
        "rustc",
        "firefox",
        "chromium",
        "none",
        "echo",
        "sh",
        "bash",
        "zsh",
        "dash",
        "/bin/sh",
        "/bin/bash",
        "/bin/zsh",
        "/usr/bin/bash",
        "/usr/bin/zsh",
    ]
)


def steering_variable(given: Mapping[str, str]) -> str | None:
    """The first of these variables that may have something else run; None where none does."""
    return next((name for name in sorted(given) if _steers(name, given[name])), None)


def _steers(name: str, value: str) -> bool:
    if name in _PROGRAMS:
        return value not in _USUAL and value != ""
    return name in _STEERING or (name.startswith(_FAMILIES) and name not in _HARMLESS)
