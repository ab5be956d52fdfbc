"""Makes `sudo` in a command ask holdfast for the password, where there is no terminal to ask on.

A directory with a `sudo` shim comes first in PATH. The shim calls the real sudo, which runs the askpass helper in the
same directory when it needs a password.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Mapping

from holdfast import files

_DIRECTORY = "sudo"
_SHIM, _HELPER = "sudo", "askpass"

_SHIM_TEXT = """\
#!/bin/sh
# Made by holdfast: has sudo ask holdfast for the password, where there is no terminal to ask on.
set -f
real=
before=$IFS
IFS=:
for directory in $PATH; do
    if [ "$directory" != {here} ] && [ -x "$directory/sudo" ]; then real=$directory/sudo; break; fi
done
IFS=$before
[ -n "$real" ] || {{ echo "sudo: command not found" >&2; exit 127; }}
if [ -z "${{SUDO_ASKPASS:-}}" ] || ( : < /dev/tty ) 2> /dev/null; then exec "$real" "$@"; fi
skip=
for word do
    if [ -n "$skip" ]; then skip=; continue; fi
    case $word in
        --) break ;;
        --stdin | --askpass | --non-interactive) exec "$real" "$@" ;;
        --user | --group | --host | --prompt | --chdir | --chroot | --close-from | --role | --type) skip=1 ;;
        --other-user | --command-timeout) skip=1 ;;
        --*) ;;
        -[ughpDRCrtUT]) skip=1 ;;
        -[ughpDRCrtUT]*) ;;
        -*[ASn]*) exec "$real" "$@" ;;
        -* | *=*) ;;
        *) break ;;
    esac
done
exec "$real" -A "$@"
"""
_HELPER_TEXT = """\
#!/bin/sh
# Made by holdfast: prints the password that sudo asks for. Only sudo gets one.
HOLDFAST_HOME={home} exec {python} -E -P -m holdfast.client.askpass "$@"
"""


class SudoHelper:
    """For the instance with this home."""

    def __init__(self, home: str) -> None:
        self._home = home
        self._directory = f"{home}/{_DIRECTORY}"
        self._is_made = False

    @property
    def may_help(self) -> bool:
        """False where sudo never asks."""
        return os.geteuid() != 0 and ":" not in self._directory

    def with_helper(self, env: Mapping[str, str]) -> dict[str, str] | None:
        """The environment with the helper; None where there is no sudo, or it never asks. To be called in a thread."""
        path = env.get("PATH", os.defpath)
        if not self.may_help or shutil.which("sudo", path=path) is None:
            return None
        if not self._is_made:
            self._make()
        return {**env, "PATH": f"{self._directory}:{path}", "SUDO_ASKPASS": f"{self._directory}/{_HELPER}"}

    def _make(self) -> None:
        os.makedirs(self._directory, mode=0o700, exist_ok=True)
        here, home, python = map(shlex.quote, (self._directory, self._home, sys.executable))
        texts = {_SHIM: _SHIM_TEXT.format(here=here), _HELPER: _HELPER_TEXT.format(home=home, python=python)}
        for name, text in texts.items():  # others may be calling it
            files.replace(f"{self._directory}/{name}", os.fsencode(text), 0o700)
        self._is_made = True
