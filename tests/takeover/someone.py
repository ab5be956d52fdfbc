"""Another user of this machine, and holdfast as they use it."""

from __future__ import annotations

import json
import os
import pwd
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.cli.calling import Terminal

#: In a mount namespace of its own, directories of root on the way to our interpreter can be passed.
_ENTER = """
set -e
mount --make-rprivate /
mkdir -p {hold}
mount --bind /root {hold}
mount -t tmpfs -o mode=755 none /root
for name in $(ls -A {hold}); do
    [ -d {hold}/$name ] && mkdir /root/$name && mount --bind {hold}/$name /root/$name
done
exec setpriv --reuid {uid} --regid {uid} --clear-groups {command}
"""
_AS_THEY_ARE = "exec setpriv --reuid {uid} --regid {uid} --clear-groups {command}"


class Someone:
    def __init__(self, name: str, home: Path) -> None:
        self.name = name
        self.home = home
        self.uid = pwd.getpwnam(name).pw_uid
        self.password = f"canary-{os.urandom(8).hex()}"
        self._count = 0

    def set_password(self) -> None:
        subprocess.run(["chpasswd"], input=f"{self.name}:{self.password}\n".encode(), check=True)

    def instance(self, config: str = "") -> Instance:
        self._count += 1
        home = self.home / f"instance{self._count}"
        home.mkdir(mode=0o700)
        (home / "config.toml").write_text(config)
        for path in (home, home / "config.toml"):
            os.chown(path, self.uid, self.uid)
        return Instance(self, home)

    def command(self, argv: list[str]) -> list[str]:
        """How root runs a command as this user."""
        needs_namespace = not os.stat("/root").st_mode & 0o001 and os.path.realpath(sys.executable).startswith("/root/")
        text = _ENTER if needs_namespace else _AS_THEY_ARE
        words = {"hold": self.home / "root", "uid": self.uid, "command": shlex.join(argv)}
        enter = ["unshare", "--mount"] if needs_namespace else []
        return [*enter, "sh", "-c", text.format(**words)]


class Instance:
    """holdfast of this user, with a home of its own."""

    def __init__(self, someone: Someone, home: Path) -> None:
        self.someone = someone
        self.home = home

    @property
    def environ(self) -> dict[str, str]:
        path = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
        return {"HOLDFAST_HOME": str(self.home), "HOME": str(self.home), "PATH": path, "USER": self.someone.name}

    def popen(self, argv: list[str], **options: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen(self.someone.command(argv), env=self.environ, cwd="/", **options)

    def terminal(self, *arguments: str) -> Terminal:
        """This user's, with holdfast on it."""
        whole = self.someone.command([sys.executable, "-m", "holdfast", *arguments])
        return Terminal(whole=whole, env={**self.environ, "TERM": "dumb"})

    def holdfast(self, *arguments: str, input: bytes = b"", timeout: float = 60) -> subprocess.CompletedProcess[bytes]:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with self.popen([sys.executable, "-m", "holdfast", *arguments], **pipes) as running:
            try:
                out, err = running.communicate(input, timeout)
            finally:
                running.kill()
        return subprocess.CompletedProcess(arguments, running.returncode, out, err)

    def json(self, *arguments: str) -> Any:
        done = self.holdfast(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)
