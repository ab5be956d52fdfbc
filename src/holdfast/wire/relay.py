"""What bridges send to the daemon: frames with events of other programs. No I/O.

A message is one frame, or a JSON array of frames. A frame that names the bridge and a number (`"bridge": ID, "n": 17`)
is published once, however often it comes; the numbers of a bridge grow.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from holdfast import light_json
from holdfast.model.events import BridgeOrigin, Event

LONGEST_TOPIC = 256
#: An event is small.
LARGEST_PAYLOAD = 256 << 10
_DEEPEST = 64
_LONGEST_BRIDGE = 64
_LARGEST_N = 1 << 62


class RelayMessage(NamedTuple):
    """What one message brought."""

    events: list[Event]
    ignored: int
    """Frames that were none."""
    marks: dict[str, int]
    """The greatest number of each bridge that the message named: what to acknowledge once it is on disk."""


def read_message(text: str, now: float) -> RelayMessage:
    """Never raises: what is no frame is counted."""
    try:
        said = light_json.loads(text)
    except (ValueError, RecursionError):
        return RelayMessage([], 1, {})
    frames = said if isinstance(said, list) else [said]
    found = [event for frame in frames if (event := _read_frame(frame, now)) is not None]
    marks: dict[str, int] = {}
    for origin in filter(None, map(_origin, frames)):  # what was ignored need not come again either
        marks[origin.bridge] = max(origin.n, marks.get(origin.bridge, 0))
    return RelayMessage(found, max(len(frames), 1) - len(found), marks)


def is_topic(value: object) -> bool:
    """Whether something can be published under it: words joined by dots."""
    return isinstance(value, str) and 0 < len(value) <= LONGEST_TOPIC and value.isprintable() and " " not in value


def payload_fault(fields: dict[str, Any]) -> str | None:
    """Why these fields cannot be kept; None when they can."""
    try:
        size = len(light_json.dumps(fields))
    except (ValueError, TypeError, RecursionError):  # a number without end, or nested too deeply
        return "the payload has something that JSON cannot say"
    if size > LARGEST_PAYLOAD:
        return f"the payload has more than {LARGEST_PAYLOAD} bytes"
    return "the payload is nested too deeply" if _is_deeper(fields, _DEEPEST) else None


def _is_deeper(value: object, levels: int) -> bool:
    """Limits nesting: another reader may have less stack left."""
    if not isinstance(value, dict | list):
        return False
    parts = value.values() if isinstance(value, dict) else value
    return not levels or any(_is_deeper(part, levels - 1) for part in parts)


def _read_frame(frame: object, now: float) -> Event | None:
    if not isinstance(frame, dict):
        return None
    is_relay = frame.get("_bus_relay") is True
    said = _relay(frame) if is_relay else _call(frame)
    if said is None:
        return None
    topic, fields = said
    fields.pop("seq", None)  # a number of another stream
    origin = _origin(frame)
    is_misnumbered = is_relay and origin is None and ("bridge" in frame or "n" in frame)
    if not is_topic(topic) or is_misnumbered or payload_fault(fields) is not None:
        return None
    return Event(topic, now, fields, origin)


def _relay(frame: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
    topic, envelope = frame.get("topic"), frame.get("envelope")
    if not isinstance(topic, str) or not isinstance(envelope, dict):
        return None
    return (topic, dict(envelope)) if is_topic(envelope.get("type", topic)) else None


def _call(frame: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
    params = frame.get("params")
    if frame.get("jsonrpc") != "2.0" or frame.get("method") != "event" or not isinstance(params, dict):
        return None
    kind, payload = params.get("type"), params.get("payload")
    if not isinstance(kind, str) or not kind:
        return None
    topic = f"tui.{kind}"
    fields = dict(payload) if isinstance(payload, dict) else {}  # anything else has no keys to add
    # The payload is another program's: its keys must not make the envelope something that it is not.
    for key, types in (("ts", (int, float)), ("src", str)):
        if key in fields and (not isinstance(fields[key], types) or isinstance(fields[key], bool)):
            del fields[key]
    return topic, {**fields, "session_id": params.get("session_id", fields.get("session_id")), "type": topic}


def _origin(frame: object) -> BridgeOrigin | None:
    bridge, n = (frame.get("bridge"), frame.get("n")) if isinstance(frame, dict) else (None, None)
    if not isinstance(bridge, str) or not 0 < len(bridge) <= _LONGEST_BRIDGE or not bridge.isprintable():
        return None
    return BridgeOrigin(bridge, n) if type(n) is int and 0 < n <= _LARGEST_N else None
