"""Environment variables that change which program or code a command runs. No I/O."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_NAMES = frozenset([
    "PATH", "BASH_ENV", "ENV", "IFS", "SHELLOPTS", "BASHOPTS", "PROMPT_COMMAND", "PS0", "PS1", "PS2", "PS4",
    "CDPATH", "GLOBIGNORE", "ZDOTDIR", "INPUTRC", "LESSOPEN", "LESSCLOSE", "MAKEFLAGS", "MAKEFILES", "TAR_OPTIONS",
    "RSYNC_RSH", "JAVA_TOOL_OPTIONS", "SSH_ASKPASS", "SUDO_ASKPASS", "PSQLRC", "LUA_INIT", "RUSTC_WRAPPER",
])  # fmt: skip
_PREFIXES = ("LD_", "DYLD_", "BASH_FUNC_", "PYTHON", "NODE_", "RUBY", "PERL", "GIT_", "npm_config_")
#: Names with these prefixes that only affect output or metadata.
_HARMLESS = frozenset([
    "NODE_ENV", "NODE_DEBUG", "NODE_NO_WARNINGS", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED",
    "PYTHONIOENCODING", "PYTHONUTF8", "PYTHONFAULTHANDLER", "PYTHONASYNCIODEBUG", "PYTHONDEVMODE",
    "GIT_TERMINAL_PROMPT", "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE", "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL", "GIT_COMMITTER_DATE", "GIT_TRACE",
])  # fmt: skip
#: Variables that name a program, and the programs that are harmless as their value.
_PROGRAM_NAMES = frozenset([
    "EDITOR", "VISUAL", "PAGER", "MANPAGER", "GIT_PAGER", "GIT_EDITOR", "BROWSER", "SHELL", "CC", "CXX", "RUSTC",
])  # fmt: skip
_HARMLESS_PROGRAMS = frozenset([
    ":", "true", "cat", "less", "more", "vi", "vim", "nvim", "nano", "gcc", "g++", "clang", "clang++", "cc", "c++",
    "rustc", "firefox", "chromium", "none", "echo", "sh", "bash", "zsh", "dash", "/bin/sh", "/bin/bash", "/bin/zsh",
    "/usr/bin/bash", "/usr/bin/zsh",
])  # fmt: skip


def code_variable(given: Mapping[str, str]) -> str | None:
    """The first of these variables that may change which code a command runs; None when none does."""
    return next((name for name in sorted(given) if _changes_code(name, given[name])), None)


def _changes_code(name: str, value: str) -> bool:
    if name in _PROGRAM_NAMES:
        return value not in _HARMLESS_PROGRAMS and value != ""
    return name in _NAMES or (name.startswith(_PREFIXES) and name not in _HARMLESS)
