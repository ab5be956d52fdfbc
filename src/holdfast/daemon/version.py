"""A short name for how a process object stands: as long as it is the same, nothing has changed. No I/O."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

#: What changes without anything happening.
_VOLATILE = frozenset({"cpu_seconds", "rss_bytes", "peak_rss_bytes"})


def of(shown: Mapping[str, Any]) -> str:
    """The same in every daemon, so that it holds across a restart."""
    lasting = [(key, value) for key, value in sorted(shown.items()) if key not in _VOLATILE]
    return blake2b(json.dumps(lasting).encode(), digest_size=8).hexdigest()
