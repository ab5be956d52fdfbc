"""Which variables of an environment are secrets, by their names and by their values. No I/O."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping
from functools import lru_cache
from itertools import pairwise
from urllib.parse import unquote, urlsplit

from holdfast.safety import shapes
from holdfast.safety.names import is_place_name, is_secret_name, is_strong_name, is_switch_name

#: Values that are no secret whatever they are called.
_TRIVIAL = frozenset(
    {
        *(
            "",
            "0",
            "1",
            "true",
            "false",
            "yes",
            "no",
            "on",
            "off",
            "none",
            "null",
            "auto",
            "default",
            "always",
            "never",
        ),
        *("enabled", "disabled", "undefined", "required", "optional", "unset", "keyring", "helper", "cache", "store"),
    }
)
#: Masking these wherever they stand would hide half of what is said, and they protect nothing.
_TOO_COMMON = _TRIVIAL | {
    *(
        "password",
        "passw0rd",
        "postgres",
        "postgresql",
        "changeme",
        "changeit",
        "localhost",
        "development",
        "production",
    ),
    *("secret", "username", "database", "minioadmin", "rabbitmq", "mongodb", "wordpress", "administrator", "anonymous"),
    *("testtest", "password1", "password123", "12345678", "123456789", "1234567890", "00000000", "sandbox", "staging"),
    *("notasecret", "not-a-secret", "placeholder", "redacted", "[redacted]", "********", "127.0.0.1", "example.com"),
}
_NUMBER = re.compile(r"[+-]?\d{1,6}(?:\.\d{0,3})?\Z")
_OPAQUE = re.compile(r"[A-Za-z0-9+/_=.~-]{20,4096}\Z")
_PIECES = re.compile(r"[-_.=~]")
_HEX = re.compile(r"[0-9a-fA-F]+\Z")
_SEAM = re.compile(r"(?<=[0-9])(?=[A-Za-z])|(?<=[A-Za-z])(?=[0-9])")
_SHORTEST_PIECE = 16
_LEAST_ENTROPY = 3.3
#: Where digits are few: as often as this capitals and small letters take turns, which they do not in names of things.
_LEAST_TURNS = 0.47
_HIGH_ENTROPY = 3.8
_PLACE = re.compile(r"(?:[~./]|\w:\\)\S*\Z")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{1,30}://")

#: Shorter values are found everywhere by chance.
SHORTEST_MASKED = 8
_LONGEST_MASKED = 16384
_SHORTEST_LINE = 20
_LONGEST_REMEMBERED = 4096


def is_secret(name: str, value: str) -> bool:
    """Whether a variable is a secret of whoever has it, and not to be handed on without being asked for."""
    if is_secret_name(name):
        return not _is_harmless(name, value)
    return shapes.is_one(value) or is_opaque(value)


def secret_names(env: Mapping[str, str], known: Collection[str] = ()) -> set[str]:
    """The names of the secrets of an environment, and of what has a value that is `known` to be one."""
    return {name for name, value in env.items() if value and (_judged(name, value) or value in known)}


def _judged(name: str, value: str) -> bool:
    """Callers bring the same environment again and again."""
    return _remembered(name, value) if len(value) <= _LONGEST_REMEMBERED else is_secret(name, value)


@lru_cache(maxsize=4096)
def _remembered(name: str, value: str) -> bool:
    return is_secret(name, value)


def is_opaque(value: str) -> bool:
    """Whether a value looks drawn by lot: long, letters and digits in turn, nothing a person would have chosen.

    Hashes and UUIDs look like it as well, and mostly are no secrets: they are left alone.
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
    """In which forms a secret value is looked for in text: itself, its lines, the secrets in it, as in an address."""
    found = {value.strip(), *(value[start:end] for start, end in shapes.find(value))}
    if _ADDRESS.match(value) and (password := _password(value)):
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
    """What cannot be a secret though its name is one: a place, an address without a password, a switch, a number."""
    if is_place_name(name):
        return bool(_PLACE.match(value)) or not value
    if value.lower() in _TRIVIAL:
        return not is_strong_name(name) or is_switch_name(name) or not value
    if _NUMBER.match(value):
        return not is_strong_name(name)
    return False


def _password(address: str) -> str:
    """What lets somebody in: the password, or a long name without one."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return ""
    name = parts.username or ""
    return parts.password or (name if len(name) >= _SHORTEST_PIECE else "")


def _entropy(text: str) -> float:
    size = len(text)
    return -sum(count / size * math.log2(count / size) for count in Counter(text).values())
