"""The version of holdfast, said once."""

VERSION = "0.1.0"


def is_older(release: str | None) -> bool:
    """Whether a part of holdfast is of a release before this one; False where its release is not known."""
    return release is not None and _numbers(release) < _numbers(VERSION)


def _numbers(release: str) -> list[int]:
    return [int(part) if part.isdecimal() else 0 for part in release.split(".")]
