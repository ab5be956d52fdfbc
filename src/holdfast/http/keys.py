"""Idempotency keys. A key names a process, and the process remembers what it was asked for with: no table is needed,
and a crash forgets nothing. No I/O, but for `new_id`.
"""

from __future__ import annotations

import hashlib
import os
from typing import Any

from holdfast.errors import BadValue
from holdfast.http.problems import Refusal
from holdfast.model.ids import PREFIX
from holdfast.model.process import Process
from holdfast.wire import light_json

LONGEST = 255


def new_id() -> str:
    return f"{PREFIX}{os.urandom(6).hex()}"


def process_id(key: str) -> str:
    """The id that a key stands for. Raises BadValue."""
    if not 1 <= len(key) <= LONGEST or not all("!" <= letter <= "~" for letter in key):
        raise BadValue(f"an Idempotency-Key has 1 to {LONGEST} visible ASCII characters", next="a UUID is a good one")
    return PREFIX + hashlib.sha256(b"holdfast key " + key.encode()).hexdigest()[:12]


def fingerprint(body: dict[str, Any]) -> str:
    """The same for bodies that ask for the same, in whatever order. Raises BadValue."""
    said = {name: _ordered(value) for name, value in sorted(body.items()) if value is not None}
    try:
        return hashlib.sha256(light_json.dumps(said).encode()).hexdigest()[:32]
    except RecursionError:
        raise BadValue("the body is nested too deeply", next="see /api/v1/openapi.json") from None


def check(process: Process | None, wanted: str) -> None:
    """Raises Refusal where the key was given with another request before."""
    if process is not None and process.meta.fingerprint != wanted:
        what = f"this Idempotency-Key stands for another request, which started {process.id}"
        raise Refusal(422, "bad_value", what, next="take a new key for a new request")


def _ordered(value: Any) -> Any:
    return dict(sorted(value.items())) if isinstance(value, dict) else value
