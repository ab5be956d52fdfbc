"""Which modules one `holdfast run -d` passes, from the command line to the inbox: `python -m bench.trace_run`.

All processes are traced: the command line, the daemon, the keeper and the anchor. A module counts where one of its
functions is called between the call and the moment when the notification of the end is in the store; importing it does
not count. The interpreter comes from a temporary environment with a hook, so that every process that holdfast starts is
traced, too.
"""

from __future__ import annotations

import mmap
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
_SETTLED = 1.0
_LIMIT = 30.0

#: Runs in every interpreter of the environment. The first byte of `phase` says which trace is under way; 0 for none.
_HOOK = """
import mmap, os, subprocess, sys, threading
_dir, _hook = "{directory}", "{hook}"
if os.path.isdir(_dir):
    with open(os.path.join(_dir, "phase"), "r+b") as _file:
        _phase = mmap.mmap(_file.fileno(), 1)
    _seen = set()
    def _is_import(frame):
        # The body of a module or class, or what a module calls while it is imported.
        above = frame.f_back
        if not frame.f_code.co_flags & 1:  # CO_OPTIMIZED is set for functions only
            return True
        return above is not None and above.f_code.co_name == "<module>" and above.f_globals is frame.f_globals
    def _trace(frame, event, arg):
        if event == "call" and _phase[0]:
            name = frame.f_globals.get("__name__", "")
            if name.startswith("holdfast") and name not in _seen and not _is_import(frame):
                _seen.add(name)
                fd = os.open(_dir + "/" + str(os.getpid()), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
                os.write(fd, (name + "\\n").encode())
                os.close(fd)
    def _traced(*arguments, popen=subprocess.Popen.__init__, **options):
        words = arguments[1]
        if isinstance(words, list) and "-S" in words:  # the keeper's interpreter reads no .pth files
            at = words.index("-c") + 1
            words[at] = "exec(open(" + repr(_hook) + ").read())\\n" + words[at]
        popen(*arguments, **options)
    subprocess.Popen.__init__ = _traced
    sys.setprofile(_trace)
    threading.setprofile(_trace)
"""


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="hf-trace-") as directory:
        python = _environment(Path(directory))
        env = {**os.environ, "HOLDFAST_HOME": f"{directory}/home"}
        holdfast = (python, "-m", "holdfast")
        try:
            for _ in range(3):  # what happens once for each daemon is over then
                _run_and_wait(holdfast, env, directory)
            time.sleep(_SETTLED)
            with open(f"{directory}/env/trace/phase", "r+b") as file, mmap.mmap(file.fileno(), 1) as phase:
                phase[0] = 1
                _run_and_wait(holdfast, env, directory)
                phase[0] = 0
        finally:
            subprocess.run([*holdfast, "daemon", "stop"], env=env, check=True, stdout=subprocess.DEVNULL)
        _report(Path(directory, "env", "trace"))


def _environment(directory: Path) -> str:
    """A virtual environment that imports this tree, with this interpreter's packages and the hook."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", f"{directory}/env"], check=True)
    (packages,) = Path(directory, "env", "lib").glob("python*/site-packages")
    others = [path for path in sys.path if path.endswith("site-packages")]
    Path(packages, "tree.pth").write_text("\n".join([str(_ROOT / "src"), *others, "import trace_hook", ""]))
    hook = Path(packages, "trace_hook.py")
    hook.write_text(_HOOK.replace("{directory}", f"{directory}/env/trace").replace("{hook}", str(hook)))
    Path(directory, "env", "trace").mkdir()
    Path(directory, "env", "trace", "phase").write_bytes(b"\0")
    return f"{directory}/env/bin/python"


def _run_and_wait(holdfast: tuple[str, ...], env: dict[str, str], directory: str) -> None:
    """Until the notification of the end is committed. The store is read here, so that no request is traced for it."""
    before = _notices(directory)
    subprocess.run([*holdfast, "run", "-d", "--notify", "--", "true"], env=env, check=True, stdout=subprocess.DEVNULL)
    until = time.monotonic() + _LIMIT
    while _notices(directory) == before:
        if time.monotonic() > until:
            raise TimeoutError("no notification came")
        time.sleep(0.01)


def _notices(directory: str) -> int:
    path = f"{directory}/home/store.db"
    if not os.path.exists(path):
        return 0
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
        return int(connection.execute("select count(*) from inbox").fetchone()[0])


def _report(traces: Path) -> None:
    every: dict[str, None] = {}
    for trace in sorted(traces.iterdir()):
        if trace.name != "phase":
            modules = trace.read_text().split()
            print(f"process {trace.name}: {len(modules)} modules", *modules, sep="\n  ")
            every |= dict.fromkeys(modules)
    print(f"all together: {len(every)} modules")


if __name__ == "__main__":
    main()
