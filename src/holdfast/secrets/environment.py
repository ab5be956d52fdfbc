"""Secrets of an environment, by name and by value, and the environment of holdfast's own processes. No I/O."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping
from functools import lru_cache
from itertools import pairwise

from holdfast.secrets import shapes
from holdfast.secrets.names import is_path_name, is_secret_name, is_strong_name, is_switch_name, words

#: Values that are no secret under any name.
_TRIVIAL = words(
    "0 1 true false yes no on off none null auto default always never enabled disabled undefined required optional "
    "unset keyring helper cache store"
).union({""})
#: Masking these everywhere would hide ordinary text and protect nothing.
_TOO_COMMON = _TRIVIAL | words(
    "password passw0rd postgres postgresql changeme changeit localhost development production secret username database "
    "minioadmin rabbitmq mongodb wordpress administrator anonymous testtest password1 password123 12345678 123456789 "
    "1234567890 00000000 sandbox staging notasecret not-a-secret placeholder redacted [redacted] ******** 127.0.0.1 "
    "example.com"
)
_NUMBER = re.compile(r"[+-]?\d{1,6}(?:\.\d{0,3})?\Z")
_OPAQUE = re.compile(r"[A-Za-z0-9+/_=.~-]{20,4096}\Z")
_PIECES = re.compile(r"[-_.=~]")
_HEX = re.compile(r"[0-9a-fA-F]+\Z")
_SEAM = re.compile(r"(?<=[0-9])(?=[A-Za-z])|(?<=[A-Za-z])(?=[0-9])")
_SHORTEST_PIECE = 16
_LEAST_ENTROPY = 3.3
#: For values with few digits: the least share of changes between capitals and small letters. Words have fewer.
_LEAST_TURNS = 0.47
_HIGH_ENTROPY = 3.8
_PATH = re.compile(r"(?:[~./]|\w:\\)\S*\Z")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{1,30}://")

#: Shorter values occur everywhere by chance.
SHORTEST_MASKED = 8
_LONGEST_MASKED = 16384
_SHORTEST_LINE = 20
_LONGEST_REMEMBERED = 4096

#: What holdfast's own processes keep of the environment that started them.
_KEPT = words("HOME PATH USER LOGNAME SHELL LANG TZ TMPDIR")
_KEPT_PREFIXES = ("LC_", "XDG_", "HOLDFAST_")
_FOR_BACKENDS = words(
    "SSH_AUTH_SOCK DOCKER_HOST DOCKER_CONTEXT DOCKER_CONFIG DOCKER_CERT_PATH DOCKER_TLS_VERIFY "
    "CONTAINER_HOST CONTAINER_CONNECTION CONTAINERS_CONF CONTAINERS_STORAGE_CONF CONTAINERS_REGISTRIES_CONF "
    "APPTAINER_CACHEDIR APPTAINER_CONFIGDIR APPTAINER_TMPDIR APPTAINER_NOHTTPS "
    "SINGULARITY_CACHEDIR SINGULARITY_TMPDIR SINGULARITY_NOHTTPS "
    "MODAL_CONFIG_PATH MODAL_PROFILE MODAL_ENVIRONMENT MODAL_SERVER_URL "
    "E2B_DOMAIN E2B_API_URL E2B_SANDBOX_URL E2B_HTTP_VERSION"
)
#: The marks of a held command. A process that has them counts as its descendant, and ends with it.
_NEVER_KEPT = frozenset({"HOLDFAST_ID", "HOLDFAST_SESSION"})


def minimal(environ: Mapping[str, str]) -> dict[str, str]:
    """The part of an environment that holdfast itself needs. It holds no secret: commands can read it in /proc."""
    return {
        name: value
        for name, value in environ.items()
        if name in _KEPT or (name.startswith(_KEPT_PREFIXES) and name not in _NEVER_KEPT and not is_secret(name, value))
    }


def for_backends(environ: Mapping[str, str]) -> dict[str, str]:
    """Where the programs of backends find their engine, agent and configuration. Commands do not get it from us."""
    return {name: environ[name] for name in _FOR_BACKENDS if name in environ}


def is_secret(name: str, value: str) -> bool:
    """Whether a variable is a secret, which is passed on only when it is granted by name."""
    if is_secret_name(name):
        return not _is_harmless(name, value)
    return shapes.is_one(value) or is_opaque(value)


def secret_names(env: Mapping[str, str], known: Collection[str] = ()) -> set[str]:
    """The names of the secrets of an environment, including those with a `known` secret value."""
    return {name for name, value in env.items() if value and (_judged(name, value) or value in known)}


def _judged(name: str, value: str) -> bool:
    """Cached, because callers send the same environment again and again."""
    return _remembered(name, value) if len(value) <= _LONGEST_REMEMBERED else is_secret(name, value)


@lru_cache(maxsize=4096)
def _remembered(name: str, value: str) -> bool:
    return is_secret(name, value)


def is_opaque(value: str) -> bool:
    """Whether a value looks random: long, with letters and digits mixed.

    Hashes and UUIDs look random as well, but mostly are no secrets: they do not count.
    """
    if not _OPAQUE.match(value) or value[0] in "/.~" or value.count("/") > 3:
        return False
    longest = max(_PIECES.split(value), key=len)
    if len(longest) < _SHORTEST_PIECE or _HEX.match(longest):
        return False
    entropy = _entropy(longest)
    if len(_SEAM.findall(longest)) >= 3 and entropy >= _LEAST_ENTROPY:
        return True
    turns = sum(_kind(one) != _kind(other) for one, other in pairwise(longest))
    return (
        len({_kind(one) for one in longest}) > 2 and turns >= _LEAST_TURNS * len(longest) and entropy >= _HIGH_ENTROPY
    )


def _kind(character: str) -> str:
    return "digit" if character.isdigit() else "capital" if character.isupper() else "small"


def masked_forms(value: str) -> set[str]:
    """The forms of a secret value that are masked: the value, its lines, and secrets in it such as a URL's password."""
    found = {value.strip(), *(value[start:end] for start, end in shapes.find(value))}
    if _ADDRESS.match(value) and (password := _password(value)):
        from urllib.parse import unquote

        found |= {password, unquote(password)}
    lines = value.splitlines()
    if len(lines) > 1:
        found |= {line.strip() for line in lines if len(line.strip()) >= _SHORTEST_LINE and "-----" not in line}
    return {form for form in found if _is_worth_masking(form)}


def known_forms(env: Mapping[str, str]) -> set[str]:
    """The forms of all secret values of an environment."""
    return {form for name in secret_names(env) for form in masked_forms(env[name])}


def _is_worth_masking(form: str) -> bool:
    return SHORTEST_MASKED <= len(form) <= _LONGEST_MASKED and form.lower() not in _TOO_COMMON and len(set(form)) > 2


def _is_harmless(name: str, value: str) -> bool:
    """Whether a value is no secret although its name says so: a path, a switch, a number."""
    if is_path_name(name):
        return bool(_PATH.match(value)) or not value
    if value.lower() in _TRIVIAL:
        return not is_strong_name(name) or is_switch_name(name) or not value
    if _NUMBER.match(value):
        return not is_strong_name(name)
    return False


def _password(address: str) -> str:
    """The credential in a URL: the password, or a long user name without one."""
    try:
        from urllib.parse import urlsplit

        parts = urlsplit(address)
    except ValueError:
        return ""
    name = parts.username or ""
    return parts.password or (name if len(name) >= _SHORTEST_PIECE else "")


def _entropy(text: str) -> float:
    size = len(text)
    return -sum(count / size * math.log2(count / size) for count in Counter(text).values())
