"""The package is as its documentation says: dependencies, imports, content of the wheel."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli.help import manual
from holdfast.extras import DISTRIBUTION
from holdfast.version import VERSION

ROOT = Path(__file__).parents[2]


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_the_distribution_has_its_name_and_all_brings_every_extra() -> None:
    table = project()["project"]
    assert table["name"] == DISTRIBUTION
    extras = table["optional-dependencies"].keys() - {"all", "dev"}
    (every,) = table["optional-dependencies"]["all"]
    assert set(every.partition("[")[2].rstrip("]").split(",")) == extras


def test_every_dependency_has_a_line_in_the_docs() -> None:
    page = (ROOT / "docs/dependencies.md").read_text(encoding="utf-8")
    table = project()["project"]
    named = [*table["dependencies"], *(name for extra in table["optional-dependencies"].values() for name in extra)]
    others = [name for name in named if not name.startswith(f"{DISTRIBUTION}[")]
    missing = [name for name in others if f"`{re.split('[<>=~!;[ ]', name)[0]}`" not in page]
    assert not missing


def test_the_keeper_and_the_command_line_need_only_the_standard_library() -> None:
    packages = ["holdfast.cli", "holdfast.client", "holdfast_keeper"]
    found = subprocess.run([sys.executable, "-c", IMPORT_ALL, *packages], capture_output=True, check=True, text=True)
    assert found.stdout.split() == []


#: Imports every module of some packages, and prints other packages that were imported and are not of Python.
IMPORT_ALL = """
import importlib, pkgutil, sys
sys.modules["msgspec"] = None  # used where it is installed, and not needed
before = set(sys.modules)
for name in sys.argv[1:]:
    package = importlib.import_module(name)
    for module in pkgutil.walk_packages(package.__path__, name + "."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
roots = {name.split(".")[0] for name in set(sys.modules) - before}
print(*(roots - sys.stdlib_module_names - {"holdfast", "holdfast_keeper"}))
"""


@pytest.mark.parametrize("module", ["holdfast", "holdfast.client.sync", "holdfast.cli.main", "holdfast_keeper.keeper"])
def test_only_the_daemon_imports_its_dependencies(module: str) -> None:
    names = [re.split("[<>=~!;[ ]", name)[0] for name in project()["project"]["dependencies"]]
    packages = [{"google-re2": "re2"}.get(name, name.replace("-", "_")) for name in names]
    look = f"import sys, {module}; print([name for name in {packages!r} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True).stdout
    assert found.strip() == "[]"


def test_the_changelog_has_the_version() -> None:
    assert f"## {VERSION}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_no_link_is_broken() -> None:
    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")]
    broken = [f"{page.name}: {link}" for page in pages for link in _links(page) if not (page.parent / link).exists()]
    assert not broken


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(directory), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = directory.glob("holdfast_runtime-*.whl")
    return wheel


@pytest.mark.slow
def test_the_wheel_holds_both_packages_with_their_types(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {"holdfast/py.typed", "holdfast_keeper/py.typed", "holdfast/version.py"} <= names
    assert {f"holdfast/docs/{page.name}" for page in (ROOT / "docs").glob("*.md")} <= names
    assert {f"holdfast_runtime-{VERSION}.data/data/share/man/man1/{page}" for page in manual.pages()} <= names
    assert not [name for name in names if name.split(os.sep)[0] in ("tests", "bench") or "/bench/" in name]


@pytest.mark.slow
@pytest.mark.skipif(not (ROOT / "web").exists(), reason="needs web/")
def test_the_wheel_holds_the_page_of_the_dashboard(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    page = archive.read("holdfast/dashboard/static/index.html").decode()
    scripts = re.findall(r'src="/(assets/[^"]+)"', page)
    assert scripts and all(archive.read(f"holdfast/dashboard/static/{script}") for script in scripts)


@pytest.mark.slow
def test_an_installation_has_manual_pages_and_leaves_nothing_behind(wheel: Path, tmp_path: Path) -> None:
    place = tmp_path / "venv"
    venv.create(place, with_pip=True)
    before = files_in(place)
    pip = [str(place / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
    install = ["install", "--no-deps", "--no-index", "--no-compile", str(wheel)]
    subprocess.run([*pip, *install], check=True, capture_output=True)
    environ = {**os.environ, "HOLDFAST_HOME": str(tmp_path / "home"), "PYTHONDONTWRITEBYTECODE": "1"}
    for words in (["docs", "configuration"], ["docs", "run"], ["docs"], ["version"]):
        command = [str(place / "bin" / "holdfast"), *words]
        assert subprocess.run(command, env=environ, capture_output=True, check=True).stdout
    assert (place / "share/man/man1/holdfast-run.1").is_file()
    if (man := shutil.which("man")) is not None:
        search = {**environ, "MANPATH": str(place / "share/man"), "LC_ALL": "C.UTF-8"}
        for page in ("holdfast-run", "hold"):
            shown = subprocess.run([man, page], env=search, capture_output=True, text=True, check=True).stdout
            assert "SYNOPSIS" in shown
    subprocess.run([*pip, "uninstall", "--yes", DISTRIBUTION], check=True, capture_output=True)
    assert files_in(place) - before == set()
    assert not (tmp_path / "home").exists(), "no daemon was started"


def files_in(directory: Path) -> set[Path]:
    return {path for path in directory.rglob("*") if path.is_file() and "__pycache__" not in path.parts}


def _links(page: Path) -> list[str]:
    found = re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")) if page.exists() else []
    return [link for link in found if "://" not in link]
