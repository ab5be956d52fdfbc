"""JSON for the daemon: by orjson, where it is installed, else by the standard library. Compact.

What orjson refuses (numbers beyond 64 bits, names of files that are not UTF-8) goes through the standard library.
"""

from __future__ import annotations

import json
from typing import Any

_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _slow_dumps(value: object) -> bytes:
    return _encode(value).encode()


def _slow_loads(data: bytes | str) -> Any:
    try:
        return json.loads(data, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("nested too deep") from None


try:
    import orjson
except ImportError:
    dumps, loads = _slow_dumps, _slow_loads
else:

    def dumps(value: object) -> bytes:
        """Raises TypeError or ValueError for what JSON cannot express."""
        try:
            return orjson.dumps(value, option=orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME)
        except TypeError:
            return _slow_dumps(value)

    def loads(data: bytes | str) -> Any:
        """Raises ValueError."""
        try:
            return orjson.loads(data)
        except ValueError:
            return _slow_loads(data)
