"""The environment of a command: the login environment, then the caller's variables, then granted ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping

TERM = "xterm-256color"
#: These describe the caller's terminal: its size, its window, the multiplexer or emulator that it belongs to.
_OF_A_TERMINAL = frozenset({
    "COLUMNS", "LINES", "TERMCAP", "COLORFGBG", "TMUX", "TMUX_PANE", "STY", "WINDOW", "WINDOWID", "VTE_VERSION",
    "TERM_SESSION_ID", "LC_TERMINAL", "LC_TERMINAL_VERSION", "TILIX_ID", "TERMINATOR_UUID", "WT_SESSION",
    "WT_PROFILE_ID", "SSH_TTY", "GPG_TTY", "INSIDE_EMACS",
})  # fmt: skip
_PREFIXES = (
    "ZELLIJ", "TERM_PROGRAM", "KITTY_", "WEZTERM_", "ALACRITTY_", "GHOSTTY_", "ITERM_", "KONSOLE_", "GNOME_TERMINAL_",
)  # fmt: skip


def merge(
    login: Mapping[str, str], caller: Mapping[str, str], grant: Mapping[str, str], own: Mapping[str, str], pty: bool
) -> dict[str, str]:
    """The environment of a command. `own` holds variables of holdfast, which cannot be overridden."""
    env = {**login, **caller}
    path = merge_path(caller.get("PATH"), login.get("PATH"))
    if path:
        env["PATH"] = path
    if pty:
        env = {name: value for name, value in env.items() if not _is_of_a_terminal(name)}
        env["TERM"] = TERM
    env.update(grant)
    env.setdefault("PYTHONUNBUFFERED", "1")
    env.update(own)
    return env


def _is_of_a_terminal(name: str) -> bool:
    return name in _OF_A_TERMINAL or name.startswith(_PREFIXES)


def merge_path(caller: str | None, login: str | None) -> str:
    """The caller's entries in their order, then those of the login environment that are missing."""
    entries = [*(caller or "").split(":"), *(login or "").split(":")]
    return ":".join(dict.fromkeys(entry for entry in entries if entry))


#: Most programs need these: they are kept even if they look like secrets.
NEEDED = frozenset({"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "TZ", "TMPDIR", "PWD"})


def without(env: Mapping[str, str], removed: Collection[str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name not in removed}
