"""The options of a place in a container: those of its table in config.toml, and those of a start."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from holdfast.errors import BadValue
from holdfast.model.units import parse_seconds, parse_size
from holdfast.places.backend import Options

DEFAULT_IMAGE = "docker.io/nikolaik/python-nodejs:python3.11-nodejs20"
DEFAULT_IDLE = 3600.0
#: The keeper and its helpers need some of both.
_LEAST_MEMORY = 64 << 20
_LEAST_PIDS = 32
_LEAST_OVERLAY = 64 << 20
_OWN_DIRECTORY = "/.holdfast"

_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,1023}")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(:[A-Za-z0-9_][A-Za-z0-9_.-]*)?")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_CAPABILITY = re.compile(r"[A-Za-z_]+")


def check_options(
    backend: str, table: Options, given: Options, rules: Mapping[str, tuple[Callable[[object], Any], Any]]
) -> dict[str, Any]:
    """All options, with their defaults. Raises BadValue for the first one that is unknown or wrong."""
    options = {name: default for name, (_, default) in rules.items()}
    for name, value in {**table, **given}.items():
        if name not in rules:
            known = ", ".join(sorted(rules))
            raise BadValue(f"the backend {backend} has no option {name[:80]!r}", next=f"its options are {known}")
        try:
            options[name] = rules[name][0](value)
        except (ValueError, BadValue) as wrong:
            why = f": {wrong.message}" if isinstance(wrong, BadValue) else f" {wrong}"
            raise BadValue(f"{name} of the backend {backend}{why}", next="see holdfast docs backends") from None
    return options


def _image(value: object) -> str:
    return _matching(value, _IMAGE, "must be the name of an image, such as debian:12")


def _user(value: object) -> str:
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    return _matching(text, _USER, "must be a name or number, with a group behind a colon if need be")


def _network(value: object) -> str:
    return _matching(value, _NAME, "must be none, host, bridge or the name of a network")


def _program(value: object) -> str:
    text = _text(value, "must be the path of the client program")
    if text.startswith("-") or (text[0] != "/" and "/" in text):
        raise ValueError("must be an absolute path, or a name that is looked up in PATH")
    return text


def _directory(value: object) -> str:
    text = _text(value, "must be a directory of the container")
    if not text.startswith("/"):
        raise ValueError("must be an absolute path")
    return text


def _volumes(value: object) -> list[str]:
    if not isinstance(value, list):
        raise ValueError('must be a list of "SOURCE:TARGET" or "SOURCE:TARGET:ro"')
    return [_volume(one) for one in value]


def _volume(value: object) -> str:
    text = _text(value, 'must have entries "SOURCE:TARGET" or "SOURCE:TARGET:ro"')
    source, target, *mode = [*text.split(":"), ""]
    shown = repr(text[:200])
    if mode not in ([""], ["ro", ""], ["rw", ""]):
        raise ValueError(f'has {shown}, and must have "SOURCE:TARGET" or "SOURCE:TARGET:ro"')
    if not (source.startswith("/") or _NAME.fullmatch(source)):
        raise ValueError(f"has {shown}, whose source must be an absolute path or the name of a volume")
    if not target.startswith("/") or target.rstrip("/") == "":
        raise ValueError(f"has {shown}, whose target must be an absolute path, and not /")
    if target == _OWN_DIRECTORY or target.startswith(f"{_OWN_DIRECTORY}/"):
        raise ValueError(f"has {shown}, whose target is used by holdfast")
    return text


def _env(value: object) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(one, str) for one in value.values()):
        raise ValueError("must be a table of texts")
    for name, content in value.items():
        if not name or "=" in name or "\0" in name + content or name.startswith("HOLDFAST_"):
            raise ValueError(f"cannot have the variable {name[:80]!r}")
    return dict(value)


def _memory(value: object) -> int:
    size = parse_size(value) if isinstance(value, str) else value
    if not isinstance(size, int) or isinstance(size, bool) or size < _LEAST_MEMORY:
        raise ValueError("must be a size of at least 64M")
    return size


def _cpus(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0.01 <= value <= 4096:
        raise ValueError("must be a number of processors, such as 1.5")
    return float(value)


def _pids(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not _LEAST_PIDS <= value <= 1 << 22:
        raise ValueError(f"must be a number of processes, at least {_LEAST_PIDS}")
    return value


def _idle(value: object) -> float:
    seconds = parse_seconds(value) if isinstance(value, str) else value
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not 0 < seconds < math.inf:
        raise ValueError("must be a time, such as 30m")
    return float(seconds)


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def _capabilities(value: object) -> list[str]:
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, list):
        raise ValueError('must be a list of capabilities, or "all"')
    return [_matching(word, _CAPABILITY, 'must be a list of capabilities, or "all"') for word in words]


def _text(value: object, rule: str) -> str:
    if not isinstance(value, str) or not value or len(value) > 4095 or not value.isprintable():
        raise ValueError(rule)
    return value


def _matching(value: object, pattern: re.Pattern[str], rule: str) -> str:
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise ValueError(rule)
    return value


def _apptainer_image(value: object) -> str:
    """A path, or an address that names its registry."""
    rule = "must be an absolute path of an image, or an address such as docker://debian:12"
    text = _text(value, rule)
    scheme, separator, name = text.partition("://")
    if text.startswith("/"):
        return text
    if not separator:
        scheme, name = "docker", text
    if scheme not in ("docker", "oras", "library") or not _IMAGE.fullmatch(name) or name.endswith(".sif"):
        raise ValueError(rule)
    return f"{scheme}://{name}"


def _overlay(value: object) -> str | int:
    """What holds the changes to the image."""
    if value in ("directory", "tmpfs") or (isinstance(value, str) and value.startswith("/")):
        return _text(value, "must not have control characters")
    size = parse_size(value) if isinstance(value, str) and value[:1].isdigit() else value
    if not isinstance(size, int) or isinstance(size, bool) or size < _LEAST_OVERLAY:
        raise ValueError('must be "directory", "tmpfs", a size of at least 64M, or an absolute path')
    return size


def _binds(value: object) -> list[str]:
    found = _volumes(value)
    for one in found:
        if not one.startswith("/"):
            raise ValueError(f"has {one[:200]!r}, whose source must be an absolute path")
    return found


#: The options of every kind, each with its check and its default.
_COMMON: dict[str, tuple[Callable[[object], Any], Any]] = {
    "network": (_network, None),
    "env": (_env, {}),
    "memory": (_memory, None),
    "cpus": (_cpus, None),
    "pids": (_pids, None),
    "cwd": (_directory, None),
    "idle": (_idle, DEFAULT_IDLE),
    "cap_drop": (_capabilities, []),
}
CONTAINER_RULES = {
    **_COMMON,
    "image": (_image, DEFAULT_IMAGE),
    "user": (_user, None),
    "volumes": (_volumes, []),
    "read_only": (_flag, False),
    "program": (_program, None),
}
APPTAINER_RULES = {
    **_COMMON,
    "image": (_apptainer_image, f"docker://{DEFAULT_IMAGE}"),
    "volumes": (_binds, []),
    "overlay": (_overlay, "directory"),
    "nv": (_flag, False),
    "fakeroot": (_flag, False),
    "program": (_program, None),
}
