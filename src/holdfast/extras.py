"""How this installation gets what is missing in it: the one place that knows the distribution's name."""

from __future__ import annotations

import os
import sys

DISTRIBUTION = "holdfast-runtime"


def install_hint(extra: str | None = None) -> str:
    """The command that adds an extra, or dependencies that are missing, to this installation.

    It is one of pipx, of a clone, or of a Python environment.
    """
    if _is_by_pipx():
        return f"pipx install --force {_quoted(DISTRIBUTION, extra)}"
    if (root := clone()) is not None:
        return f"cd {root} && {_pip()} install {_quoted('.', extra)}"
    return f"{_pip()} install {_quoted(DISTRIBUTION, extra)}"


def package_hint(package: str) -> str:
    """The command that adds a package to the environment of this installation."""
    return f"pipx inject {DISTRIBUTION} {package}" if _is_by_pipx() else f"{_pip()} install {package}"


def clone() -> str | None:
    """The root of the clone of the source that this code runs from; None where it is installed."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    is_clone = os.path.isfile(f"{root}/pyproject.toml") and os.path.isdir(f"{root}/src/holdfast")
    return root if is_clone else None


def docs() -> str:
    """The directory of the documentation, in Markdown."""
    installed = os.path.join(os.path.dirname(os.path.abspath(__file__)), "docs")
    return installed if (root := clone()) is None else f"{root}/docs"


def _is_by_pipx() -> bool:
    return f"{os.sep}pipx{os.sep}venvs{os.sep}" in f"{sys.prefix}{os.sep}"


def _quoted(distribution: str, extra: str | None) -> str:
    return distribution if extra is None else f"'{distribution}[{extra}]'"


def _pip() -> str:
    """`pip` of the environment that this runs in; an activated one has it on its PATH."""
    is_elsewhere = sys.prefix != sys.base_prefix and os.environ.get("VIRTUAL_ENV") != sys.prefix
    return f"{sys.prefix}/bin/pip" if is_elsewhere else "pip"
