"""Which media type a response has, by the `Accept` header. No I/O."""

from __future__ import annotations

from collections.abc import Sequence


def choose(accept: str | None, offered: Sequence[str]) -> str | None:
    """The media type with the highest weight, the first offered among equals; None when none is accepted."""
    if not offered or accept is None or not accept.strip():
        return offered[0] if offered else None
    accepted = [_read(entry) for entry in accept.split(",") if entry.strip()]
    best, best_weight = None, 0.0
    for media in offered:
        weight = _weight(media_of(media), accepted)
        if weight > best_weight:
            best, best_weight = media, weight
    return best


def media_of(content_type: str | None) -> str:
    """`application/json; charset=utf-8` -> `application/json`."""
    return (content_type or "").partition(";")[0].strip().lower()


def _read(entry: str) -> tuple[str, float]:
    media, *parameters = entry.split(";")
    weight = 1.0
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "q":
            weight = _number(value.strip())
    return media.strip().lower(), weight


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        return 0.0
    return value if 0.0 <= value <= 1.0 else 0.0


def _weight(media: str, accepted: list[tuple[str, float]]) -> float:
    """The weight of the most exact entry that fits."""
    kind = f"{media.partition('/')[0]}/*"
    for form in (media, kind, "*/*"):
        fitting = [weight for entry, weight in accepted if entry == form]
        if fitting:
            return max(fitting)
    return 0.0
