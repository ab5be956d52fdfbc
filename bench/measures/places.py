"""Commands in a container of Podman and on a host over SSH, beside `podman exec` and `ssh` themselves.

The engine and the server are those of the tests: an image with busybox, and sshd on loopback. What is missing on this
machine is left out.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.child import HERE
from bench.figure import Figure, ratio
from bench.instance import Instance
from bench.measures.first_byte import TICK_MS, delays
from bench.measures.flood import size
from bench.run import Run
from bench.series import Series, interleave
from tests.contracts.engines import IMAGE, TestPodman
from tests.contracts.sshd import SshServer
from tests.support import kill_instance

#: Starts of each kind; one of `podman exec` takes a third of a second.
MOST_ROUNDS = 40
MOST_FLOODS = 3
FIRST_USES = 3


@dataclass
class Reached:
    """A backend that can be used here. `config` makes its table, with a directory for an instance of its own."""

    backend: str
    client: str
    """The name of its own program, as the figures have it."""
    environ: dict[str, str]
    config: Callable[[str], str]
    argv: Callable[[list[str]], list[str]]
    """The command line of its own program that runs a command in the place of the instance that is measured."""
    shared: str
    """A directory of this machine, which the place sees as `there`."""
    there: str


def measure(run: Run) -> list[Figure]:
    return [figure for one in (podman, ssh) for figure in _measured(run, one)]


def _measured(run: Run, reach: Callable[[Run], Iterator[Reached]]) -> list[Figure]:
    with ExitStack() as stack:
        try:
            reached = stack.enter_context(contextmanager(reach)(run))
        except FileNotFoundError as missing:
            print(f"bench: places: {missing}", file=sys.stderr)
            return []
        before = {name: os.environ.get(name) for name in reached.environ}
        os.environ.update(reached.environ)
        try:
            return _figures(run, reached)
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value


def _figures(run: Run, reached: Reached) -> list[Figure]:
    first = Series("holdfast", tuple(_first_use(run, reached) for _ in range(min(FIRST_USES, run.scale.rounds))))
    tick, flood = _child(reached), f"{reached.there}/flood"
    _fill(f"{reached.shared}/flood", run.scale.flood_bytes)
    with Instance(run.directory, reached.config("warm")) as instance:
        floor = reached.argv(["true"])
        instance.finish(instance.client.run(["true"], backend=reached.backend).id)
        subprocess.run(floor, check=True, stdin=subprocess.DEVNULL, capture_output=True)
        started = interleave(
            min(MOST_ROUNDS, run.scale.rounds),
            {
                "holdfast": lambda: _start(instance, reached.backend),
                reached.client: lambda: _timed(floor, subprocess.DEVNULL),
                "holdfast, run + wait": lambda: _run_and_wait(instance, reached.backend),
            },
        )
        lines = Series("holdfast", tuple(_lines(instance, reached.backend, [tick, "tick", "100", str(TICK_MS)])))
        floods = interleave(
            min(MOST_FLOODS, run.scale.flood_rounds),
            {
                "holdfast": lambda: _flood(instance, reached.backend, ["cat", flood], run.scale.flood_bytes),
                reached.client: lambda: _flood_floor(run, reached.argv(["cat", flood])),
            },
        )
    ours, theirs, whole = started.values()
    copied, plain = floods.values()
    return [
        ratio(
            f"start in a warm place of {reached.backend}, to {reached.client}",
            ours,
            theirs,
            1.0,
            _AIMS[reached.backend],
        ),
        Figure(f"the same with wait, to {reached.client}", whole.p50 / theirs.p50, "×", series=(whole, theirs)),
        Figure(f"a line in {reached.backend} visible here, p50", lines.p50 * 1000, "ms", 50.0, 10.0, (_in_ms(lines),)),
        ratio(f"{size(run)} of output in {reached.backend}, to {reached.client} cat", copied, plain, 1.4, 1.1),
        Figure(f"first use of {reached.backend}, carrying the keeper", first.p50, "s", 5.0, 1.0, (first,)),
    ]


_AIMS = {"podman": 0.1, "ssh": 0.2}


def _start(instance: Instance, backend: str) -> float:
    begun = time.monotonic()
    process = instance.client.run(["true"], backend=backend)
    took = time.monotonic() - begun
    instance.finish(process.id)
    return took


def _run_and_wait(instance: Instance, backend: str) -> float:
    begun = time.monotonic()
    process = instance.client.run(["true"], backend=backend)
    instance.client.wait(process.id)
    took = time.monotonic() - begun
    instance.client.remove(process.id)
    return took


def _timed(argv: list[str], output: int) -> float:
    begun = time.monotonic()
    subprocess.run(argv, check=True, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.DEVNULL)
    return time.monotonic() - begun


def _lines(instance: Instance, backend: str, argv: list[str]) -> list[float]:
    process = instance.client.run(argv, backend=backend)
    found = delays(instance.follow(process.id))
    instance.finish(process.id)
    return found


def _flood(instance: Instance, backend: str, argv: list[str], expected: int) -> float:
    _touch_cache(instance.home, expected)
    begun = time.monotonic()
    process = instance.client.run(argv, backend=backend, log_cap=2 * expected)
    ended = instance.client.wait(process.id)
    took = time.monotonic() - begun
    assert (ended.output_bytes, ended.dropped_bytes) == (expected, 0), ended
    instance.client.remove(process.id)
    return took


def _flood_floor(run: Run, argv: list[str]) -> float:
    with tempfile.NamedTemporaryFile(dir=run.directory, prefix="holdfast-bench-") as file:
        _touch_cache(run.directory, run.scale.flood_bytes)
        return _timed(argv, file.fileno())


def _touch_cache(directory: str, size: int) -> None:
    """Have the machine hand out memory for files, as `touch_memory` does for processes: for two of this size.

    A host on loopback keeps its log on this machine, too.
    """
    os.sync()
    block = bytes(1 << 20)
    with tempfile.TemporaryFile(dir=directory, buffering=0) as file:
        for _ in range(0, 2 * size + size // 4, len(block)):
            file.write(block)


def _first_use(run: Run, reached: Reached) -> float:
    """Of an instance that has no runtime and no container, and nothing on the host."""
    with Instance(run.directory, reached.config(f"first-{time.monotonic_ns()}")) as instance:
        return _start(instance, reached.backend)


def _child(reached: Reached) -> str:
    """The command of the measures, linked so that it runs in an image without a C library."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise FileNotFoundError("no C compiler")
    command = [compiler, "-O2", "-static", "-o", f"{reached.shared}/child", str(HERE / "child.c")]
    subprocess.run(command, check=True)
    return f"{reached.there}/child"


def _fill(path: str, length: int) -> None:
    block = b"".join(b"%063d\n" % number for number in range(1024))
    with open(path, "wb") as file:
        for _ in range(0, length, len(block)):
            file.write(block)
        file.truncate(length)


def _in_ms(series: Series) -> Series:
    return Series(series.name, tuple(value * 1000 for value in series.values))


def podman(run: Run) -> Iterator[Reached]:
    for program in ("podman", "runc", "busybox"):
        _needs(program)
    if os.geteuid() != 0:
        raise FileNotFoundError("podman of the tests needs root")
    shared = tempfile.mkdtemp(prefix="shared-", dir=run.directory)
    engine = TestPodman(Path(tempfile.mkdtemp(prefix="podman-", dir=run.directory)))
    table = f'[backends.podman]\nimage = "{IMAGE}"\nnetwork = "none"\nvolumes = ["{shared}:/shared"]\n'

    def exec_argv(argv: list[str]) -> list[str]:
        container = engine.run("ps", "--quiet", "--latest")
        return [engine.program, "exec", container, *argv]

    try:
        yield Reached("podman", "podman exec", engine.environ, lambda name: table, exec_argv, shared, "/shared")
    finally:
        engine.close()


def ssh(run: Run) -> Iterator[Reached]:
    _needs("sshd", f"{os.environ['PATH']}:/usr/sbin")
    shared = tempfile.mkdtemp(prefix="shared-", dir=run.directory)
    server = SshServer()
    table = "[backends.ssh]\n" + "".join(f"{name} = {value!r}\n" for name, value in server.options.items())

    def ssh_argv(argv: list[str]) -> list[str]:
        (master,) = server.masters()
        options = ["-F", str(server.config), "-p", str(server.port), "-o", f"ControlPath={master}"]
        return ["ssh", *options, "127.0.0.1", " ".join(argv)]

    def config(name: str) -> str:
        return f'{table}directory = "{shared}/{name}"\n'.replace("'", '"')

    environ = {"XDG_RUNTIME_DIR": str(server.directory)}
    try:
        yield Reached("ssh", "ssh", environ, config, ssh_argv, shared, shared)
    finally:
        kill_instance(shared)
        server.close()


def _needs(program: str, path: str | None = None) -> None:
    if shutil.which(program, path=path) is None:
        raise FileNotFoundError(f"{program} is not installed")
