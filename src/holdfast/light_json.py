"""JSON at a fraction of the import: `json` brings in `re` and `enum`, half the start-up time of a short command.

`dumps` and `loads` take CPython's own scanner and encoder where they are, and `json` where they are not. `loads` raises
ValueError. `dump_bytes` and `load_bytes` are for the daemon: by orjson, where it is installed, else by `json`. Both are
imported with the first call. What orjson refuses (numbers beyond 64 bits, names of files that are not UTF-8) goes
through `json`. All of it writes compact JSON.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_json: Any
try:
    _json = __import__("_json")
except ImportError:
    _json = None


def _refuse(value: object) -> object:
    raise TypeError(f"{type(value).__name__} is nothing that JSON can say")


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


if _json is not None:

    class _Context:
        """What the scanner asks its decoder for."""

        strict = True
        object_hook = None
        object_pairs_hook = None
        parse_float = float
        parse_int = int
        parse_constant = staticmethod(_refuse_constant)

    _scan = _json.make_scanner(_Context())
    _encode = _json.make_encoder(None, _refuse, _json.encode_basestring_ascii, None, ":", ",", False, False, False)

    def dumps(value: object) -> str:
        """The value as compact ASCII. Raises TypeError or ValueError for what JSON cannot say."""
        return "".join(_encode(value, 0))

    def loads(text: str) -> Any:
        stripped = text.strip(" \t\n\r")
        try:
            value, end = _scan(stripped, 0)
        except (StopIteration, RecursionError, SystemError):  # the last where `json`, which has the error, is not there
            raise ValueError("not JSON") from None
        if end != len(stripped):
            raise ValueError("more than one JSON value")
        return value

else:
    import json

    def dumps(value: object) -> str:
        return json.dumps(value, separators=(",", ":"), allow_nan=False, default=_refuse)

    def loads(text: str) -> Any:
        try:
            return json.loads(text, parse_constant=_refuse_constant)
        except RecursionError:
            raise ValueError("not JSON") from None


def dump_bytes(value: object) -> bytes:
    """Raises TypeError or ValueError for what JSON cannot express."""
    if orjson := _orjson if _orjson is not None else _find_orjson():
        try:
            found: bytes = orjson.dumps(value, None, _PASS_ON)
            return found
        except TypeError:
            pass
    import json

    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()


def load_bytes(data: bytes | str) -> Any:
    """Raises ValueError."""
    if orjson := _orjson if _orjson is not None else _find_orjson():
        try:
            return orjson.loads(data)
        except ValueError:
            pass
    import json

    try:
        return json.loads(data, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("nested too deep") from None


#: The module; False where it is not installed, None until it is needed.
_orjson: Any = None
_PASS_ON = 0


def _find_orjson() -> Any:
    global _orjson, _PASS_ON
    try:
        import orjson
    except ImportError:
        _orjson = False
    else:
        _PASS_ON = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME
        _orjson = orjson
    return _orjson
