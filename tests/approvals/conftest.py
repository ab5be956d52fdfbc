"""The instance that tests of approvals share, on its socket and over HTTP."""

from __future__ import annotations

from tests.client.conftest import instance

__all__ = ["instance"]
