"""Compiles the fork server into the wheel, and writes the manual pages.

Without a C compiler the wheel lacks the fork server, and the keeper forks itself.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_SOURCE = "src/holdfast_keeper/fork_server.c"
_PROGRAM = "src/holdfast_keeper/fork_server"
#: Listed as shared data in pyproject.toml.
_MANUAL = "build/man"


class ForkServerHook(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        # The command line needs only the standard library, so it can be imported here.
        write = "import sys; sys.path.insert(0, 'src'); from holdfast.cli import manual; manual.write(sys.argv[1])"
        subprocess.run([sys.executable, "-c", write, _MANUAL], cwd=self.root, check=True)
        if not sys.platform.startswith("linux"):
            return
        compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
        if compiler is None:
            self.app.display_warning("no C compiler: holdfast will start commands without its fork server, more slowly")
            return
        for linking in (["-static"], []):  # a static program also runs where the C library is another one
            command = [*compiler.split(), "-O2", *linking, "-o", f"{_PROGRAM}.new", _SOURCE]
            if subprocess.run(command, cwd=self.root, capture_output=True, check=False).returncode == 0:
                os.replace(f"{self.root}/{_PROGRAM}.new", f"{self.root}/{_PROGRAM}")
                build_data["artifacts"].append(_PROGRAM)
                build_data["pure_python"] = False
                build_data["tag"] = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
                return
        self.app.display_warning(f"{compiler} cannot compile the fork server: holdfast will start commands more slowly")
