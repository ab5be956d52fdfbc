"""What tests of containers need: real engines of their own, and an image with busybox and nothing else."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from abc import ABC, abstractmethod
from pathlib import Path
from typing import IO, Any

import pytest

from tests.support import eventually

#: The image that every engine has.
IMAGE = "bb"

#: The programs that tests run in a root without anything else.
_APPLETS = (
    *("cat", "chmod", "cp", "dd", "echo", "env", "false", "grep", "head", "id", "kill", "ls", "mkdir", "mount", "mv"),
    *("nc", "printf", "ps", "pwd", "readlink", "rm", "seq", "setsid", "sh", "sleep", "stat", "stty", "test", "touch"),
    *("tr", "true", "tty", "umask", "uname", "wc", "yes"),
)


def needs(program: str) -> str:
    """The path of a program; the test is skipped where it is missing, which is a failure in CI."""
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not installed; scripts/test installs it when root")
    return found


def make_root(directory: Path) -> Path:
    """A root directory with busybox, without Python and without a C library."""
    busybox = needs("busybox")
    for name in ("bin", "etc", "proc", "tmp", "root", "dev", "sys", "var/empty"):
        (directory / name).mkdir(parents=True, exist_ok=True)
    (directory / "tmp").chmod(0o1777)
    shutil.copy(busybox, directory / "bin/busybox")
    for name in _APPLETS:
        os.symlink("busybox", directory / "bin" / name)
    (directory / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\nme:x:1234:1234::/tmp:/bin/sh\n")
    (directory / "etc/group").write_text("root:x:0:\nme:x:1234:\n")
    return directory


class TestEngine(ABC):
    """An engine of the tests: its images, containers and state are in a directory of its own."""

    __test__ = False
    kind: str

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.environ = {"PATH": os.environ["PATH"], "HOME": str(directory)}
        self.program = needs(self.kind)
        self.begin()
        self.import_image(make_root(directory / "root"))

    @abstractmethod
    def begin(self) -> None:
        """Write its configuration, and start its server."""

    def import_image(self, root: Path) -> None:
        with subprocess.Popen(["tar", "-C", str(root), "-c", "."], stdout=subprocess.PIPE) as archive:
            self.run("import", "-", IMAGE, stdin=archive.stdout)

    def run(self, *arguments: str, stdin: IO[bytes] | int | None = subprocess.DEVNULL) -> str:
        """What the client prints. AssertionError when it fails."""
        command = [self.program, *arguments]
        done = subprocess.run(command, stdin=stdin, capture_output=True, text=True, env=self.environ, timeout=60)
        assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
        return done.stdout.strip()

    @property
    def options(self) -> dict[str, Any]:
        """The options of a backend that uses this engine."""
        return {"image": IMAGE, "network": "none", "program": self.program}

    def inside(self, container: str, *argv: str) -> str:
        """What a command in a container prints."""
        return self.run("exec", container, *argv)

    def remove_all(self) -> None:
        for container in self.run("ps", "--all", "--quiet").split():
            self.run("rm", "--force", container)

    def close(self) -> None:
        self.remove_all()


class TestPodman(TestEngine):
    kind = "podman"

    def begin(self) -> None:
        needs("runc")
        own = self.directory
        (own / "containers.conf").write_text(
            '[containers]\ndefault_ulimits = ["nofile=20000:20000", "nproc=32768:32768"]\n'
            '[engine]\nruntime = "runc"\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\nlock_type = "file"\n'
            f'static_dir = "{own}/static"\ntmp_dir = "{own}/tmp"\nvolume_path = "{own}/volumes"\n'
            f'[network]\nnetwork_config_dir = "{own}/networks"\n'
        )
        (own / "storage.conf").write_text(
            f'[storage]\ndriver = "vfs"\ngraphroot = "{own}/graph"\nrunroot = "{own}/run"\n'
        )
        self.environ |= {
            "CONTAINERS_CONF": f"{own}/containers.conf",
            "CONTAINERS_STORAGE_CONF": f"{own}/storage.conf",
        }


class TestDocker(TestEngine):
    kind = "docker"

    def begin(self) -> None:
        own = self.directory
        address = f"unix://{own}/docker.sock"
        self.environ["DOCKER_HOST"] = address
        command = [needs("setpriv"), "--pdeathsig", "TERM", needs("dockerd"), "--host", address]
        command += ["--data-root", f"{own}/data", "--exec-root", f"{own}/state", "--pidfile", f"{own}/pid"]
        command += ["--bridge=none", "--iptables=false", "--ip6tables=false", "--storage-driver=vfs"]
        with (own / "dockerd.log").open("wb") as log:
            self._server = subprocess.Popen(command, stdout=log, stderr=log, env=self.environ)
        eventually(self._answers, timeout=30.0, pause=0.05)

    def _answers(self) -> bool:
        assert self._server.poll() is None, (self.directory / "dockerd.log").read_text()
        command = [self.program, "version"]
        return subprocess.run(command, capture_output=True, env=self.environ, timeout=30).returncode == 0

    def close(self) -> None:
        super().close()
        self._server.terminate()
        self._server.wait(30)


class TestApptainer(TestEngine):
    """Its images are files: one with busybox, which is made from a directory."""

    kind = "apptainer"

    def begin(self) -> None:
        needs("mksquashfs")
        for name in ("CONFIGDIR", "CACHEDIR"):
            self.environ[f"APPTAINER_{name}"] = str(self.directory / name.lower())
        self.image = str(self.directory / "bb.sif")

    def import_image(self, root: Path) -> None:
        self.run("build", self.image, str(root))

    @property
    def options(self) -> dict[str, Any]:
        # Root of the test machines lacks this capability, and instances of root have all others.
        return {**super().options, "image": self.image, "cap_drop": ["CAP_SYS_RESOURCE"]}

    def inside(self, container: str, *argv: str) -> str:
        words = ("exec", "--cleanenv", "--pwd", "/", "--drop-caps", "CAP_SYS_RESOURCE")
        return self.run(*words, f"instance://{container}", *argv)

    def remove_all(self) -> None:
        for one in json.loads(self.run("instance", "list", "--json"))["instances"] or ():
            self.run("instance", "stop", "--force", one["instance"])


_KINDS = {engine.kind: engine for engine in (TestPodman, TestDocker, TestApptainer)}
_running: dict[str, TestEngine] = {}


def engine(kind: str) -> TestEngine:
    """The engine of this kind, begun with its first use. The test is skipped where it is not installed."""
    if kind not in _running:
        if os.geteuid() != 0:
            pytest.skip("the engines of the tests need root")
        _running[kind] = _KINDS[kind](Path(tempfile.mkdtemp(prefix=f"holdfast-{kind}-")))
    return _running[kind]


def close_engines() -> None:
    while _running:
        _, one = _running.popitem()
        one.close()
        shutil.rmtree(one.directory, ignore_errors=True)
