"""Start-up time is a feature: what a short call imports is counted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.calling import start

#: Each of these costs more than all of ours together, or brings in one that does.
COSTLY = {
    *("asyncio", "argparse", "ast", "collections", "contextlib", "dataclasses", "difflib", "enum", "functools"),
    *("gettext", "inspect", "json", "logging", "pathlib", "random", "re", "selectors", "shutil", "signal", "socket"),
    *("subprocess", "tempfile", "textwrap", "threading", "tokenize", "tomllib", "traceback", "typing", "urllib"),
}
_TELL = "import sys\nfrom holdfast.cli.main import main\nmain(sys.argv[1:])\nprint('\\n', *sys.modules)"


@pytest.fixture(scope="module")
def ended(instance: Path) -> str:
    process_id = start("-c", "echo hi")
    subprocess.run([sys.executable, "-m", "holdfast", "wait", process_id], stderr=subprocess.DEVNULL, check=True)
    return process_id


@pytest.mark.parametrize(
    "words",
    [
        ["ps", "-a"],
        ["ps", "-a", "--json"],
        ["run", "-d", "--", "true"],
        ["run", "--", "true"],
        ["wait", "ENDED"],
        ["logs", "ENDED"],
        ["logs", "--raw", "ENDED"],
        ["kill", "ENDED"],
        ["send", "ENDED", "x"],
        ["inspect", "ENDED"],
        ["why", "ENDED"],
        ["ps", "--short"],
        ["ps", "-a", "--filter", "status=ended", "--sort", "-age"],
        ["inbox", "--ack"],
        ["inbox", "--json"],
        ["digest"],
        ["version"],
        ["--complete", "kill", ""],
        ["--complete", "run", "--"],
    ],
    ids=" ".join,
)
def test_a_short_call_imports_next_to_nothing(ended: str, words: list[str]) -> None:
    call = [sys.executable, "-I", "-c", _TELL, *(ended if word == "ENDED" else word for word in words)]
    done = subprocess.run(call, capture_output=True, check=True)
    modules = set(done.stdout.decode().split("\n")[-2].split())
    bare = subprocess.run(
        [sys.executable, "-I", "-c", "import sys; print(*sys.modules)"], capture_output=True, check=True
    )
    assert "holdfast.cli.main" in modules
    assert not (modules - set(bare.stdout.decode().split())) & COSTLY
    assert len([name for name in modules if name.startswith("holdfast")]) <= 40


def test_importing_the_package_imports_nothing() -> None:
    code = "import holdfast, sys; print(*(m for m in sys.modules if m.startswith('holdfast')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout.split() == [b"holdfast"]


def test_every_public_name_is_there() -> None:
    code = "import holdfast\nfor name in holdfast.__all__: getattr(holdfast, name)\nprint(holdfast.__version__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout.strip()
