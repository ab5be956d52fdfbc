"""The runtime: a copy of this Python that runs in a root directory which has none."""

from __future__ import annotations

import ast
import fcntl
import importlib.util
import os
import py_compile
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.places import carry
from holdfast.places.base import ExecutionPlace
from holdfast.places.carried import remove_unused
from holdfast.places.carry import Runtime, make_runtime
from holdfast.places.local import LocalPlace
from tests.contracts.engines import make_root, needs
from tests.contracts.staged import StagedPlace
from tests.support import eventually

PATH = {"PATH": "/bin:/usr/bin"}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_root(tmp_path_factory.mktemp("root"))


@pytest.fixture(scope="module")
def runtime(root: Path) -> Runtime:
    """In the root, so that it is there after a chroot."""
    return make_runtime(str(root / "cache"))


def inside(root: Path, *argv: str) -> list[str]:
    """The command that runs another one below a root, as process 2 of its own namespaces."""
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    mounts = 'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev"'
    script = f'{mounts} && cd "$0" && exec {needs("busybox")} chroot . "$@"'
    spaces = ["--mount", "--pid", "--fork", "--kill-child"]
    return [needs("unshare"), *user, *spaces, "sh", "-c", script, str(root), *argv]


def at(root: Path, runtime: Runtime) -> str:
    return runtime.directory.removeprefix(str(root))


def run(root: Path, *argv: str, env: dict[str, str] = PATH) -> subprocess.CompletedProcess[str]:
    return subprocess.run(inside(root, *argv), capture_output=True, text=True, env=env, timeout=60)


def evaluate(root: Path, runtime: Runtime, code: str) -> subprocess.CompletedProcess[str]:
    """Python code, by the carried interpreter."""
    argv = runtime.argv(at(root, runtime), "?")
    return run(root, *argv[: argv.index("-c")], "-c", code)


@pytest.fixture
def kept(root: Path, runtime: Runtime) -> Iterator[StagedPlace]:
    """The keeper runs in the root; this side only connects to its socket."""
    place = root / "place"
    place.mkdir()
    argv = runtime.argv(at(root, runtime), "keeper", "1024", "/place", "1.0")
    keeper = subprocess.Popen(inside(root, *argv), env=PATH, start_new_session=True)
    eventually((place / "keeper.sock").exists)

    def make(staged: StagedPlace) -> ExecutionPlace:
        return LocalPlace(
            str(place),
            PATH,
            hello={"version": 1, "log_total": None, "revive": None},
            note=lambda event, **_: staged.notes.append(event),
            running=lambda: staged.processes,
            login_file=str(root / "login-env.json"),
        )

    staged = StagedPlace(make, root)
    yield staged
    keeper.kill()  # and with the first process of its namespace, all of them
    keeper.wait()
    staged.close()


def test_a_command_is_kept_in_a_root_without_python(kept: StagedPlace, runtime: Runtime) -> None:
    assert is_locked(Path(runtime.directory))
    process = kept.start("sh", "-c", "echo in; readlink /proc/$$/exe; env; exit 7")
    assert kept.report_at_end(process)["exit"]["code"] == 7
    first, shell, *variables = kept.output(process).decode().splitlines()
    assert (first, shell) == ("in", "/bin/busybox")
    assert not [line for line in variables if line.startswith("LD_")]
    assert kept.place.keeper.about["fork_server"]


def test_all_that_is_carried_can_be_imported(root: Path, runtime: Runtime) -> None:
    """Also what is only imported within functions, such as for https and for names of hosts."""
    (archive,) = Path(runtime.directory).glob("lib*/*.zip")
    paths = zipfile.ZipFile(archive).namelist()
    names = [path.removesuffix(".pyc").removesuffix("/__init__").replace("/", ".") for path in paths]
    assert len(names) > 50
    code = (
        f"import importlib, socket\nfor name in {names}: importlib.import_module(name)\n"
        "print(socket.getaddrinfo('127.0.0.1', 1)[0][4][0])"
    )
    done = evaluate(root, runtime, code)
    assert (done.stdout, done.stderr) == ("127.0.0.1\n", "")


def test_the_loader_ignores_what_the_target_preloads(root: Path, runtime: Runtime) -> None:
    preload = root / "etc/ld.so.preload"
    preload.write_text("/lib/of-another-libc.so\n")
    try:
        done = evaluate(root, runtime, "print(6 * 7)")
    finally:
        preload.unlink()
    assert (done.stdout, done.stderr) == ("42\n", "")


def test_the_same_sources_make_the_same_runtime(runtime: Runtime, tmp_path: Path) -> None:
    code = "import sys; from holdfast.places.carry import make_runtime; print(make_runtime(sys.argv[1]).digest)"
    env = {**os.environ, "PYTHONHASHSEED": "5"}
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, env=env)
    assert done.stdout.strip() == runtime.digest
    assert os.listdir(tmp_path) == [f"runtime-{runtime.digest}"]


def test_the_imports_of_a_source_are_found_by_its_text() -> None:
    """All that a parser finds in the sources that are carried, also within functions."""
    found, _ = carry.own_modules()
    assert len(found) > 50
    for path in found.values():
        source = Path(path).read_text()
        assert set(carry.imports(source)) >= set(_parsed_imports(source)), path


def _parsed_imports(source: str) -> Iterator[str]:
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import os, sys as system\n", {"os", "sys"}),
        ("def f():\n    from a.b import (\n        c,  # why\n        d as e,\n    )\n", {"a.b", "a.b.c", "a.b.d"}),
        ("if TYPE_CHECKING:\n    from a import b\n\nimport c\n", {"c"}),
        ("if TYPE_CHECKING:\n    import a\nelse:\n    import c\n", {"c"}),
    ],
)
def test_every_form_of_an_import_is_found_but_those_for_the_type_checker(source: str, expected: set[str]) -> None:
    assert set(carry.imports(source)) == expected


def test_what_python_compiled_is_carried_unless_its_source_has_changed(tmp_path: Path) -> None:
    source = tmp_path / "module.py"
    source.write_text("value = 1\n")
    py_compile.compile(str(source), doraise=True)
    known = carry._known_code(str(source), source.read_bytes())
    assert known is not None
    source.write_text("value = 22\n")
    assert carry._known_code(str(source), source.read_bytes()) is None
    py_compile.compile(str(source), doraise=True, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    assert carry._known_code(str(source), source.read_bytes()) is not None
    assert carry._known_code(str(source), b"value = 33\n") is None
    Path(importlib.util.cache_from_source(str(source))).write_bytes(b"broken")
    assert carry._known_code(str(source), source.read_bytes()) is None


def test_a_traceback_there_names_no_path_of_this_machine(root: Path, runtime: Runtime) -> None:
    done = evaluate(root, runtime, "import json; json.loads('{')")
    assert "<carried>/json/decoder.py" in done.stderr and os.path.dirname(os.__file__) not in done.stderr


def test_an_interrupted_build_is_not_taken_for_a_runtime(runtime: Runtime, tmp_path: Path) -> None:
    (tmp_path / ".runtime-x").mkdir()
    os.utime(tmp_path / ".runtime-x", (0, 0))
    assert os.path.isfile(f"{make_runtime(str(tmp_path)).directory}/python")
    assert not (tmp_path / ".runtime-x").exists()


def test_other_users_may_read_it(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        make_runtime(str(tmp_path / "cache"))
    finally:
        os.umask(before)
    for parent, _, names in os.walk(tmp_path / "cache"):
        assert os.stat(parent).st_mode & 0o777 == 0o755
        assert all(os.stat(f"{parent}/{name}").st_mode & 0o044 == 0o044 for name in names)


def test_a_python_that_is_no_program_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "python"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script))
    with pytest.raises(carry.CannotCarry, match=f"{script} is not a 64-bit program"):
        make_runtime(str(tmp_path / "cache"))


# What nothing uses any more.


def old_runtime(cache: Path, name: str, age: float = 7200.0) -> Path:
    (cache / name).mkdir(parents=True)
    mark = cache / name / "in-use"
    mark.touch()
    os.utime(mark, (time.time() - age,) * 2)
    return cache / name


def test_runtimes_that_nothing_uses_are_removed_when_another_one_is_made(
    runtime: Runtime, root: Path, tmp_path: Path
) -> None:
    unused, young = old_runtime(tmp_path, "runtime-1"), old_runtime(tmp_path, "runtime-2", 60.0)
    earlier = tmp_path / "runtime-3"  # of a release that does not lock it
    earlier.mkdir()
    other = tmp_path / "other"
    other.mkdir()
    used = tmp_path / "runtime-4"
    shutil.copytree(runtime.directory, used)
    os.utime(used / "in-use", (0, 0))
    command = runtime.argv(str(used), "wait", str(tmp_path), "1000")
    with subprocess.Popen(command, env=PATH) as running:
        eventually(lambda: is_locked(used))
        made = make_runtime(str(tmp_path))
        assert not unused.exists()
        assert all(path.exists() for path in (young, earlier, other, used, Path(made.directory)))
        running.terminate()
    remove_unused(str(tmp_path), os.path.basename(made.directory))
    assert not used.exists()


def is_locked(runtime: Path) -> bool:
    with open(runtime / "in-use") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
