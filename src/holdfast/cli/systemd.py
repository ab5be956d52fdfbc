"""Speaking with the systemd of this user, where there is one."""

from __future__ import annotations

import os
import shutil
import subprocess

from holdfast.errors import HoldfastError, Unsupported

_LIMIT = 120.0


class Systemctl:
    """`systemctl --user`. Raises Unsupported where there is none."""

    def __init__(self, without: str) -> None:
        """`without` says what to do where there is no systemd."""
        found = shutil.which("systemctl")
        if found is None:
            raise Unsupported("there is no systemctl on this machine, so nothing was done", next=without)
        self._program = found

    def call(self, *words: str) -> None:
        """Raises HoldfastError with what it said when it fails."""
        done = self._run(words)
        if done.returncode:
            said = " ".join(done.stderr.split()) or f"it ended with {done.returncode}"
            raise HoldfastError(f"systemctl --user {' '.join(words)} failed: {said[:300]}")

    def properties(self, unit: str, *names: str) -> dict[str, str] | None:
        """What systemd knows of a unit; None when it does not answer."""
        done = self._run(("show", unit, f"--property={','.join(names)}"))
        if done.returncode:
            return None
        pairs = (line.partition("=") for line in done.stdout.splitlines())
        return {name: value for name, _, value in pairs}

    def _run(self, words: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run(
                [self._program, "--user", *words],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_LIMIT,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise HoldfastError(f"systemctl --user {' '.join(words)} takes longer than {_LIMIT:.0f} s") from None


def lingers() -> bool:
    """Whether the services of this user run without anybody logged in."""
    user = os.environ.get("USER") or os.environ.get("LOGNAME") or ""
    return bool(user) and os.path.exists(f"/var/lib/systemd/linger/{user}")
