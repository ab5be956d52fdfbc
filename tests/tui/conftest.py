"""An endpoint of a model for the tests of sessions."""

from __future__ import annotations

from tests.agent.conftest import endpoint

__all__ = ["endpoint"]
