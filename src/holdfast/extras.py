"""How this installation gets what an extra brings: the one place that knows the distribution's name."""

from __future__ import annotations

import os
import sys

DISTRIBUTION = "holdfast-runtime"


def install_hint(extra: str) -> str:
    """The command that adds an extra to this installation: one of pipx, of a clone, or of a Python environment."""
    if f"{os.sep}pipx{os.sep}venvs{os.sep}" in f"{sys.prefix}{os.sep}":
        return f"pipx install --force '{DISTRIBUTION}[{extra}]'"
    if (root := clone()) is not None:
        return f"cd {root} && {_pip()} install '.[{extra}]'"
    return f"{_pip()} install '{DISTRIBUTION}[{extra}]'"


def clone() -> str | None:
    """The root of the clone of the source that this code runs from; None where it is installed."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    is_clone = os.path.isfile(f"{root}/pyproject.toml") and os.path.isdir(f"{root}/src/holdfast")
    return root if is_clone else None


def docs() -> str:
    """The directory of the documentation, in Markdown."""
    installed = os.path.join(os.path.dirname(os.path.abspath(__file__)), "docs")
    return installed if (root := clone()) is None else f"{root}/docs"


def _pip() -> str:
    """`pip` of the environment that this runs in; an activated one has it on its PATH."""
    is_elsewhere = sys.prefix != sys.base_prefix and os.environ.get("VIRTUAL_ENV") != sys.prefix
    return f"{sys.prefix}/bin/pip" if is_elsewhere else "pip"
