"""The hint that says how to install what is missing fits the installation."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from holdfast import extras
from holdfast.cli.main import main


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The code stands in an environment, and not in a clone."""
    monkeypatch.setattr(extras, "__file__", str(tmp_path / "lib/python3/site-packages/holdfast/extras.py"))
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    return tmp_path


def test_a_clone_installs_from_its_own_directory() -> None:
    root = Path(__file__).parents[2]
    assert extras.clone() == str(root)
    assert extras.install_hint("mcp").startswith(f"cd {root} && ")
    assert extras.install_hint("mcp").endswith("pip install '.[mcp]'")
    assert extras.install_hint().endswith("pip install .")
    assert (Path(extras.docs()) / "architecture.md").exists()


def test_an_environment_uses_its_own_pip(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    assert extras.install_hint("mcp") == f"{installed}/bin/pip install 'holdfast-runtime[mcp]'"
    monkeypatch.setenv("VIRTUAL_ENV", str(installed))
    assert extras.install_hint("mcp") == "pip install 'holdfast-runtime[mcp]'"
    assert extras.install_hint() == "pip install holdfast-runtime"
    assert extras.package_hint("uvloop") == "pip install uvloop"
    assert extras.docs() == f"{installed}/lib/python3/site-packages/holdfast/docs"


def test_pipx_is_asked_where_it_made_the_environment(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", "/home/user/.local/share/pipx/venvs/holdfast-runtime")
    assert extras.install_hint("all") == "pipx install --force 'holdfast-runtime[all]'"
    assert extras.install_hint() == "pipx install --force holdfast-runtime"
    assert extras.package_hint("uvloop") == "pipx inject holdfast-runtime uvloop"


def test_only_one_module_says_how_to_install() -> None:
    source = Path(extras.__file__).parent
    says = {
        path.name for path in source.rglob("*.py") if "pip install " in path.read_text() or "pipx " in path.read_text()
    }
    assert says == {"extras.py", "pages.py"}  # and a page of HTML, which has both commands


def test_bench_says_in_one_line_that_it_needs_a_clone(installed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--quick"]) == 125
    message = capsys.readouterr().err
    assert message.count("\n") == 1 and "needs a clone" in message and "scripts/setup" in message
