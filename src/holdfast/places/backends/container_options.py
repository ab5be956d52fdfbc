"""The options of a place in a container."""

from __future__ import annotations

import re

from holdfast.model.units import parse_size
from holdfast.places.backends.options import Rule, a_flag, a_number, a_text, a_time, a_whole_number, variables

DEFAULT_IMAGE = "docker.io/nikolaik/python-nodejs:python3.11-nodejs20"
DEFAULT_IDLE = 3600.0
#: The keeper and its helpers need some of both.
_LEAST_MEMORY = 64 << 20
_LEAST_PIDS = 32
_LEAST_IDLE = 0.001
_LEAST_OVERLAY = 64 << 20
_OWN_DIRECTORY = "/.holdfast"

_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,1023}")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(:[A-Za-z0-9_][A-Za-z0-9_.-]*)?")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_CAPABILITY = re.compile(r"[A-Za-z_]+")


def _user(value: object) -> str:
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    return _matching(text, _USER, "must be a name or number, with a group behind a colon if need be")


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


def _memory(value: object) -> int:
    size = parse_size(value) if isinstance(value, str) else value
    if not isinstance(size, int) or isinstance(size, bool) or size < _LEAST_MEMORY:
        raise ValueError("must be a size of at least 64M")
    return size


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
_COMMON: dict[str, Rule] = {
    "network": (a_text("none, host, bridge or the name of a network", _NAME.pattern), None),
    "env": (variables, {}),
    "memory": (_memory, None),
    "cpus": (a_number(0.01, 4096, "a number of processors, such as 1.5"), None),
    "pids": (a_whole_number(_LEAST_PIDS, 1 << 22, f"a number of processes, at least {_LEAST_PIDS}"), None),
    "cwd": (_directory, None),
    "idle": (a_time(_LEAST_IDLE), DEFAULT_IDLE),
    "cap_drop": (_capabilities, []),
}
CONTAINER_RULES = {
    **_COMMON,
    "image": (a_text("the name of an image, such as debian:12", _IMAGE.pattern), DEFAULT_IMAGE),
    "user": (_user, None),
    "volumes": (_volumes, []),
    "read_only": (a_flag, False),
    "program": (_program, None),
}
APPTAINER_RULES = {
    **_COMMON,
    "image": (_apptainer_image, f"docker://{DEFAULT_IMAGE}"),
    "volumes": (_binds, []),
    "overlay": (_overlay, "directory"),
    "nv": (a_flag, False),
    "fakeroot": (a_flag, False),
    "program": (_program, None),
}
