"""The instance that tests of approvals share, on its socket and over HTTP; and a place where nothing can be harmed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.client.conftest import instance

__all__ = ["instance"]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What these tests let run, they do not let run here."""
    monkeypatch.chdir(tmp_path)
