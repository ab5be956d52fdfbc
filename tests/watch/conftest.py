"""The optional engine is built for one kind of processor; elsewhere there is nothing of it to test."""

from __future__ import annotations

import platform

collect_ignore = [] if platform.machine() == "x86_64" else ["test_prefilter.py"]
