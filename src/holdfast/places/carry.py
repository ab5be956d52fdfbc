"""The runtime: a copy of the running Python that also runs where there is no Python, or another libc.

    ld.so                 the loader of the interpreter; absent where the interpreter is static
    python                the interpreter
    lib/*.so*             the libraries that it and its native modules need
    lib/pythonXY.zip      compiled modules: those that `holdfast.places.carried` needs, and nothing of site-packages
    lib/pythonX.Y/        native modules, and the package `holdfast_keeper` with its fork server
    in-use                is locked while something runs from there (`holdfast.places.carried`)

The target needs a kernel of the same architecture and nothing else. The environment of the program must have no LD_*
variables: they are meant for the libc of the target.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import io
import json
import marshal
import os
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any, NamedTuple

from holdfast.places.carried import IN_USE, remove_unused

#: Changed when the same inputs make another runtime.
_FORMAT = "3"
_ROOT = "holdfast.places.carried"
_KEEPER = "holdfast_keeper"
_OWN = ("holdfast", _KEEPER)
_BOOT = f"import sys; from {_ROOT} import main; main(sys.argv[1], sys.argv[2:])"

#: Modules that the standard library imports late: for errors, for other encodings, for names of hosts, for threads.
_IMPLIED = (
    *("traceback", "linecache", "tokenize", "encodings.ascii", "encodings.latin_1", "encodings.idna", "zipimport"),
    "concurrent.futures.thread",
)
#: Imports modules and prints where each module that is loaded then comes from.
_LIST = """
import importlib, importlib.machinery, json, sys
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except ImportError:
        pass
found = {}
for name, module in list(sys.modules.items()):
    spec = getattr(module, "__spec__", None)
    if spec is not None and name != "__main__":
        found[spec.name] = getattr(getattr(spec, "loader_state", None), "filename", None) or spec.origin
        parent = sys.modules.get(name.rpartition(".")[0])
        if spec.name != name and hasattr(parent, "__path__"):  # a module that replaces itself by another one
            spec = importlib.machinery.PathFinder.find_spec(name, parent.__path__)
            found[name] = spec and spec.origin
print(json.dumps(found))
"""
_PYTHON_BUDGET = 60.0

#: Files of the target that the loader must not read: they are meant for another libc.
_LOADER_FILES = (b"/etc/ld.so.preload", b"/etc/ld.so.cache")
_NOWHERE = b"/dev/null/"
#: Loaded by the C library itself, when a thread ends.
_LATE_LIBRARY = "libgcc_s.so.1"

_PT_INTERP = 3
_TEMPORARY = ".runtime-"
_STALE = 3600.0


class CannotCarry(OSError):
    """The running Python cannot be carried to a place."""


class Runtime(NamedTuple):
    directory: str
    digest: str
    """Identifies its content."""

    def argv(self, at: str, program: str, *arguments: str) -> list[str]:
        """The command that runs a program of `holdfast.places.carried` where the runtime is at the path `at`."""
        python = [f"{at}/python", "-I", "-S", "-c", _BOOT, program, *arguments]
        if not os.path.exists(f"{self.directory}/ld.so"):
            return python
        return [f"{at}/ld.so", "--library-path", f"{at}/lib", *python]


def make_runtime(cache: str) -> Runtime:
    """The runtime of this Python and this release, made in the directory `cache` where it is not there yet.

    It blocks: for about a second when it is made. A process always gets the same one: its release may be replaced on
    disk while it runs. Raises CannotCarry, OSError.
    """
    with _making:
        made = _known.get(cache)
        if made is None or not os.path.isdir(made.directory):
            made = _known[cache] = _make(cache)
    return made


_known: dict[str, Runtime] = {}
#: Threads make it one after the other.
_making = threading.Lock()


def _make(cache: str) -> Runtime:
    plan = _plan()
    digest = plan.digest()
    directory = os.path.join(cache, f"runtime-{digest}")
    os.makedirs(cache, exist_ok=True)
    os.chmod(cache, 0o755)  # it is mounted into containers, which have users of their own
    if not os.path.isdir(directory):
        _remove_stale(cache)
        _make_directory(directory, plan.write)
        remove_unused(cache, os.path.basename(directory))
    return Runtime(directory, digest)


def _make_directory(directory: str, write: Callable[[str], None]) -> None:
    """It is there with its whole content, or not at all."""
    made = tempfile.mkdtemp(prefix=_TEMPORARY, dir=os.path.dirname(directory))
    try:
        write(made)
        _write(f"{made}/{IN_USE}", b"", 0o644)
        os.rename(made, directory)
    except OSError:
        if not os.path.isdir(directory):  # else another process was faster
            raise
    finally:
        shutil.rmtree(made, ignore_errors=True)


class Sources(NamedTuple):
    """The modules of a runtime as sources, for a Python that is there already."""

    files: dict[str, tuple[bytes, int]]
    """By path: content and mode."""
    digest: str
    """Identifies its content."""

    def archive(self, is_packed: bool) -> bytes:
        """As a tar archive, with the same bytes each time."""
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as file:
            for path, (data, mode) in self.files.items():
                entry = tarfile.TarInfo(path)
                entry.size, entry.mode = len(data), mode
                file.addfile(entry, io.BytesIO(data))
        return _packed(buffer.getvalue(), is_packed)


def make_sources(has_programs: bool) -> Sources:
    """With the fork server, where the target has this machine's architecture. As with a runtime, a process always gets
    the same ones. Raises CannotCarry, OSError.
    """
    with _making:
        return _sources(has_programs)


@functools.cache
def _sources(has_programs: bool) -> Sources:
    found, _ = own_modules()
    files = {IN_USE: (b"", 0o644)}
    for name, path in sorted(found.items()):
        module = name.replace(".", "/")
        files[f"{module}/__init__.py" if path.endswith("/__init__.py") else f"{module}.py"] = (_read(path), 0o644)
    server = _fork_server(found)
    if server is not None and has_programs:
        files[f"{_KEEPER}/fork_server"] = (_stripped(server), 0o755)
    total = hashlib.sha256()
    for path, (data, _) in files.items():
        total.update(path.encode() + b"\0" + hashlib.sha256(data).digest())
    return Sources(files, total.hexdigest()[:16])


class _Plan(NamedTuple):
    """All that a runtime is made of."""

    binaries: dict[str, bytes]
    """By path in the runtime."""
    modules: dict[str, tuple[str, str, bytes]]
    """By path in the runtime: the path of the module without its end, the path of its source, and its source."""

    def digest(self) -> str:
        """Of what goes in: compiled modules differ from one compilation to the next."""
        total = hashlib.sha256(f"{_FORMAT} {sys.version} {sys.flags.optimize}".encode())
        for path, data in sorted(self.binaries.items()):
            total.update(path.encode() + b"\0" + hashlib.sha256(data).digest())
        for path, (name, _, source) in sorted(self.modules.items()):
            total.update(f"{path}\0{name}\0".encode() + hashlib.sha256(source).digest())
        return total.hexdigest()[:16]

    def write(self, directory: str) -> None:
        """Every user may read it: a container has users of its own."""
        below = f"{sys.platlibdir}/{_stdlib_name()}"
        files: dict[str, bytes] = {f"{below}/os.py": b""}  # by this file the interpreter knows its directory
        archived: dict[str, bytes] = {}
        for path, (name, origin, source) in sorted(self.modules.items()):
            (files if _is_keeper(name) else archived)[path] = _compiled(name, origin, source)
        for path, data in files.items():
            _write(f"{directory}/{path}", data, 0o644)
        for path, data in self.binaries.items():
            _write(f"{directory}/{path}", data, 0o755)
        archive = f"{directory}/{sys.platlibdir}/{_stdlib_name().replace('.', '')}.zip"
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as file:
            for path, data in archived.items():
                file.writestr(zipfile.ZipInfo(path), data)
        _write(archive, None, 0o644)
        for parent, _, _ in os.walk(directory):
            os.chmod(parent, 0o755)


def _plan() -> _Plan:
    sources, mentioned = own_modules()
    listed = _output_of(_LIST, *sorted({*mentioned, *_IMPLIED}))
    loaded = {name: path for name, path in listed.items() if path}
    below = f"{sys.platlibdir}/{_stdlib_name()}"
    modules: dict[str, tuple[str, str, bytes]] = {}
    natives: list[str] = []
    for name, path in {**loaded, **sources}.items():
        if path.endswith(".py"):
            module = name.replace(".", "/") + ("/__init__" if path.endswith("/__init__.py") else "")
            prefix = f"{below}/" if _is_keeper(module) else ""
            modules[f"{prefix}{module}.pyc"] = (module, path, _read(path))
        elif path.endswith(".so"):
            natives.append(path)
    binaries = {f"{below}/lib-dynload/{os.path.basename(path)}": _stripped(path) for path in natives}
    binaries |= _interpreter(natives)
    server = _fork_server(sources)
    if server is not None:
        binaries[f"{below}/{_KEEPER}/fork_server"] = _stripped(server)
    return _Plan(binaries, modules)


def _fork_server(modules: dict[str, str]) -> str | None:
    """None where it needs the C library that it was made for, or was not made."""
    path = os.path.join(os.path.dirname(modules[_KEEPER]), "fork_server")
    return path if os.path.exists(path) and _loader_of(path) is None else None


# Modules.


def own_modules() -> tuple[dict[str, str], list[str]]:
    """The path of each module of holdfast that is needed, and all modules of the standard library that they import."""
    tops = {name: _path_of_package(name) for name in _OWN}
    ahead = [_ROOT, _KEEPER]
    folder = os.path.dirname(tops[_KEEPER])
    ahead += [f"{_KEEPER}.{name[:-3]}" for name in sorted(os.listdir(folder)) if name.endswith(".py")]
    found: dict[str, str] = {}
    others: set[str] = set()
    while ahead:
        name = ahead.pop()
        if name in found:
            continue
        top = name.partition(".")[0]
        if top not in tops:
            if top in sys.stdlib_module_names:
                others.add(name)
            continue
        path = _path_of_module(os.path.dirname(tops[top]), name)
        if path is None:  # not a module: what is imported from one
            continue
        found[name] = path
        if "." in name:
            ahead.append(name.rpartition(".")[0])
        ahead.extend(imports(_read(path).decode()))
    return found, sorted(others)


def _path_of_package(name: str) -> str:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise CannotCarry(f"the sources of {name} are not on disk")
    return spec.origin


def _path_of_module(package: str, name: str) -> str | None:
    base = os.path.join(package, *name.split(".")[1:])
    return next((path for path in (f"{base}/__init__.py", f"{base}.py") if os.path.isfile(path)), None)


#: Blocks that only the type checker reads.
_TYPES_ONLY = re.compile(r"^( *)if TYPE_CHECKING:\n(?:\1 +.*\n|\n)+", re.MULTILINE)
_IMPORT = re.compile(r"^ *(?:from ([\w.]+) )?import (?:\(([^)]*)\)|([^\n#(]+))", re.MULTILINE)
_COMMENT = re.compile(r"#.*")


def imports(source: str) -> Iterator[str]:
    """All modules that a source may import, also within functions; not those for the type checker.

    By the text, which is formatted alike in all our sources: a parser takes longer than all the rest.
    """
    for found in _IMPORT.finditer(_TYPES_ONLY.sub("", source)):
        module, within, plain = found.groups()
        words = [part.split()[0] for part in _COMMENT.sub("", within or plain).split(",") if part.strip()]
        if module is None:
            yield from words
        else:
            yield module
            yield from (f"{module}.{word}" for word in words)


def _output_of(code: str, *arguments: str) -> Any:
    """The JSON that Python code prints, run with the standard library alone."""
    command = [sys.executable, "-I", "-S", "-c", code, *arguments]
    try:
        done = subprocess.run(
            command, capture_output=True, check=True, stdin=subprocess.DEVNULL, timeout=_PYTHON_BUDGET
        )
    except (OSError, subprocess.SubprocessError) as failed:
        raise CannotCarry(f"{sys.executable or 'this Python'} does not run by itself: {failed}") from None
    return json.loads(done.stdout)


def _compiled(name: str, path: str, source: bytes) -> bytes:
    """A pyc file that is never compared with its source. What this Python has compiled before is taken."""
    shown = f"<carried>/{name}.py"
    code = _known_code(path, source)
    code = _renamed(code, shown) if code else compile(source, shown, "exec", dont_inherit=True, optimize=0)
    return importlib.util.MAGIC_NUMBER + struct.pack("<I", 1) + bytes(8) + marshal.dumps(code)


def _known_code(path: str, source: bytes) -> CodeType | None:
    """What is in the pyc file of a source; None where there is none, or one of another source."""
    try:
        data = _read(importlib.util.cache_from_source(path, optimization=""))
        flags, first, second = struct.unpack_from("<III", data, 4)
        time_and_size = (int(os.stat(path).st_mtime) & 0xFFFFFFFF, len(source) & 0xFFFFFFFF)
        is_valid = importlib.util.source_hash(source) == data[8:16] if flags else (first, second) == time_and_size
        if data[:4] != importlib.util.MAGIC_NUMBER or not is_valid:
            return None
        code = marshal.loads(data[16:])
    except (OSError, NotImplementedError, ValueError, EOFError, TypeError, struct.error):
        return None
    return code if isinstance(code, CodeType) else None


def _renamed(code: CodeType, name: str) -> CodeType:
    """With the name of another file, in its functions too."""
    inner = tuple(_renamed(one, name) if isinstance(one, CodeType) else one for one in code.co_consts)
    return code.replace(co_filename=name, co_consts=inner)


def _is_keeper(name: str) -> bool:
    """The keeper's package is a directory: its fork server lies beside its modules."""
    return name.partition("/")[0] == _KEEPER


def _stdlib_name() -> str:
    """`python3.11`, or what a build of its own kind calls it."""
    return os.path.basename(os.path.dirname(os.__file__))


# The interpreter and its libraries.


def _interpreter(natives: list[str]) -> dict[str, bytes]:
    python = os.path.realpath(sys.executable)
    loader = _loader_of(python)
    if loader is None:
        return {"python": _stripped(python)}
    libraries = _libraries_of(loader, python, natives)
    for folder in sorted({os.path.dirname(path) for path in libraries.values()}):
        if os.path.exists(f"{folder}/{_LATE_LIBRARY}"):
            libraries.setdefault(_LATE_LIBRARY, f"{folder}/{_LATE_LIBRARY}")
    return {
        "python": _stripped(python),
        "ld.so": _blinded(_stripped(loader)),
        **{f"lib/{name}": _stripped(path) for name, path in libraries.items()},
    }


def _libraries_of(loader: str, path: str, natives: list[str]) -> dict[str, str]:
    """The libraries that a program and native modules need, by the name under which they ask for them."""
    environ = {name: value for name, value in os.environ.items() if name[:3] != "LD_" or name == "LD_LIBRARY_PATH"}
    # Not those for the processor of this machine.
    plain = ["--glibc-hwcaps-mask", ""] if b"--glibc-hwcaps-mask" in _read(loader) else []
    command = [loader, *plain, "--list", path]
    if natives:  # one program lists them all: each one is a process
        environ["LD_PRELOAD"] = ":".join(natives)
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environ, timeout=_PYTHON_BUDGET)
    except subprocess.TimeoutExpired:
        raise CannotCarry(f"{loader} does not list the libraries of {path}") from None
    found: dict[str, str] = {}
    for line in done.stdout.splitlines():
        name, arrow, target = line.strip().partition(" => ")
        target = os.path.realpath(target.partition(" (")[0])
        if "not found" in line:
            raise CannotCarry(f"{path} needs {name}, which is not found")
        if arrow and target != loader:  # musl's loader is its C library
            found[os.path.basename(name)] = target
    for native in natives:
        if native not in done.stdout:  # its path has a blank or a colon
            found.update(_libraries_of(loader, native, []))
    return {name: target for name, target in found.items() if not name.startswith("ld-")}


def _loader_of(path: str) -> str | None:
    """The loader that a program names; None for a static one."""
    data = _read(path)
    for kind, offset, length in _segments(path, data):
        if kind == _PT_INTERP:
            return os.path.realpath(data[offset : offset + length].rstrip(b"\0").decode())
    return None


def _segments(path: str, data: bytes) -> list[tuple[int, int, int]]:
    """Kind, offset and length of each segment of an ELF file."""
    if data[:6] != b"\x7fELF\x02\x01":
        raise CannotCarry(f"{path} is not a 64-bit program for Linux, and cannot be carried to another place")
    at, size, count = struct.unpack_from("<Q", data, 32)[0], *struct.unpack_from("<HH", data, 54)
    rows = (struct.unpack_from("<IIQQQQ", data, at + number * size) for number in range(count))
    return [(kind, offset, length) for kind, _, offset, _, _, length in rows]


def _stripped(path: str) -> bytes:
    """A program or library without what is behind its last segment: symbols, debug information, the section table."""
    data = bytearray(_read(path))
    at, size, count = struct.unpack_from("<Q", data, 32)[0], *struct.unpack_from("<HH", data, 54)
    end = max([at + size * count, *(offset + length for _, offset, length in _segments(path, bytes(data)))])
    struct.pack_into("<Q", data, 40, 0)  # e_shoff
    struct.pack_into("<HHH", data, 58, 0, 0, 0)  # e_shentsize, e_shnum, e_shstrndx
    return bytes(data[:end])


def _blinded(loader: bytes) -> bytes:
    for name in _LOADER_FILES:
        loader = loader.replace(name + b"\0", _NOWHERE.ljust(len(name), b"-") + b"\0")
    return loader


# Files.


def archive(source: str, is_packed: bool) -> bytes:
    """The directory as a tar archive, with the same bytes each time."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as file:
        file.add(source, arcname=".", filter=_plain)
    return _packed(buffer.getvalue(), is_packed)


def _packed(data: bytes, is_packed: bool) -> bytes:
    if not is_packed:
        return data
    import gzip

    return gzip.compress(data, 1, mtime=0)


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _write(path: str, data: bytes | None, mode: int) -> None:
    """Write a file; with None, only complete one that is written. It is on disk afterwards."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "ab") as file:
        if data is not None:
            file.write(data)
            file.flush()
        os.fchmod(file.fileno(), mode)
        os.fsync(file.fileno())


def _remove_stale(cache: str) -> None:
    """Remove what a process left that was killed while it made a runtime."""
    for entry in os.scandir(cache):
        if entry.name.startswith((_TEMPORARY, ".sources-")) and time.time() - entry.stat().st_mtime > _STALE:
            shutil.rmtree(entry.path, ignore_errors=True)
