"""What secrets look like in text, whoever they belong to. No I/O.

Every pattern stays within a line and has bounds, so that hostile text costs no more than time in proportion to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from holdfast.safety.names import is_telling_name

Span = tuple[int, int]

#: Tokens that say what they are by how they begin.
_TOKENS = (
    r"gh[opsur]_[A-Za-z0-9]{20,255}",
    r"github_pat_[A-Za-z0-9_]{20,255}",
    r"gl(?:pat|rt|dt|ptt|soat|cbt)-[A-Za-z0-9_-]{16,255}",
    r"sk-[A-Za-z0-9_-]{16,255}",
    r"(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{10,255}",
    r"whsec_[A-Za-z0-9+/=]{16,255}",
    r"xox[abeoprs]-[A-Za-z0-9-]{10,255}",
    r"xapp-[A-Za-z0-9-]{10,255}",
    r"(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{16}(?![A-Z0-9])",
    r"AIza[A-Za-z0-9_-]{35}",
    r"ya29\.[A-Za-z0-9_-]{20,2048}",
    r"GOCSPX-[A-Za-z0-9_-]{20,64}",
    r"npm_[A-Za-z0-9]{30,64}",
    r"pypi-[A-Za-z0-9_-]{32,512}",
    r"rubygems_[a-f0-9]{32,64}",
    r"hf_[A-Za-z0-9]{20,64}",
    r"gsk_[A-Za-z0-9]{20,128}",
    r"r8_[A-Za-z0-9]{20,64}",
    r"pplx-[A-Za-z0-9]{20,128}",
    r"xai-[A-Za-z0-9]{20,128}",
    r"tvly-[A-Za-z0-9-]{16,128}",
    r"do[opr]_v1_[a-f0-9]{32,128}",
    r"dckr_pat_[A-Za-z0-9_-]{16,64}",
    r"SG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,128}",
    r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}",
    r"hv[sbr]\.[A-Za-z0-9_-]{20,512}",
    r"dp\.(?:pt|st|ct|sa)\.[A-Za-z0-9._-]{20,128}",
    r"lin_api_[A-Za-z0-9]{20,64}",
    r"ntn_[A-Za-z0-9]{20,64}",
    r"sntry[su]_[A-Za-z0-9+/=_-]{20,512}",
    r"dapi[a-f0-9]{32}",
    r"(?:ATATT3|ATBB|ATCTT3)[A-Za-z0-9_=-]{20,512}",
    r"sbp_[a-f0-9]{32,64}",
    r"figd_[A-Za-z0-9_-]{20,64}",
    r"nfp_[A-Za-z0-9]{20,64}",
    r"fm[12][ar]?_[A-Za-z0-9+/=,_-]{32,2048}",
    r"AGE-SECRET-KEY-1[A-Z0-9]{50,64}",
    r"EAA[A-Za-z0-9]{60,512}",
    r"eyJ[A-Za-z0-9_-]{6,16384}\.[A-Za-z0-9_-]{6,16384}\.[A-Za-z0-9_-]{0,2048}",
    r"\d{8,10}:AA[A-Za-z0-9_-]{33}",
)
_TOKEN = rf"(?<![A-Za-z0-9])(?P<secret>{'|'.join(_TOKENS)})"

_OTHERS = (
    # The password in an address.
    r"[A-Za-z][A-Za-z0-9+.-]{1,30}://[^\s/@:\"'<>]{0,256}:(?P<secret>[^\s/\"'<>]{1,512})@",
    # Addresses that are a secret as a whole.
    r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[A-Za-z0-9/_-]{12,256})",
    r"discord(?:app)?\.com/api/webhooks/(?P<secret>\d{6,24}/[A-Za-z0-9_-]{16,128})",
    # Headers.
    r"(?i:authorization)[\"']?[^\S\n]{0,4}[:=][^\S\n]{0,4}[\"']?(?:[A-Za-z]{1,20}[^\S\n]{1,4})?(?P<secret>[^\s\"',]{6,16384})",
    r"\b(?i:bearer)[^\S\n]{1,4}(?P<secret>[A-Za-z0-9._~+/=-]{16,16384})",
    r"\b(?i:x-api-key|x-auth-token|private-token|x-vault-token)[\"']?[^\S\n]{0,4}[:=][^\S\n]{0,4}[\"']?(?P<secret>[^\s\"',]{6,4096})",
    # A private key in one line.
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?P<secret>[A-Za-z0-9+/=\\,: \t]{1,65536})",
)

_NAME = r"(?<![A-Za-z0-9_])(?P<name>[A-Za-z_][A-Za-z0-9_.-]{0,63})"
_BLANK = r"[^\S\n]"
#: `NAME=value` as in an environment, `"name": "value"` as in a file, `--name value` as on a command line.
_ASSIGNMENTS = (
    _NAME + r"=(?P<secret>[^\s\"'`;,&|<>$(){}][^\s\"'`;&|<>]{5,4096})",
    _NAME + rf"[\"']?{_BLANK}{{0,4}}[:=]{_BLANK}{{0,4}}[\"'](?P<secret>[^\s\"']{{6,4096}})[\"']",
    rf"(?<![\w-])--?(?P<name>[A-Za-z][A-Za-z0-9-]{{1,40}}){_BLANK}{{1,4}}[\"']?(?P<secret>[^\s\"'`;|<>$(){{}}-][^\s\"'`;|<>]{{5,4096}})",
)
#: `name: value` also says how much there is of something, or what to do with it: the value has to look like a secret.
_SAID = _NAME + rf":{_BLANK}{{1,4}}(?P<secret>[^\s\"'`;,&|<>$(){{}}]{{8,4096}})"
_UPPER = re.compile(r"[A-Z0-9_]+\Z")


@cache
def _plain() -> tuple[re.Pattern[str], ...]:
    return tuple(map(re.compile, (_TOKEN, *_OTHERS)))


@cache
def _assigned() -> tuple[re.Pattern[str], ...]:
    return tuple(map(re.compile, (*_ASSIGNMENTS, _SAID)))


def find(text: str) -> Iterator[Span]:
    """Where something stands that looks like a secret; some may overlap."""
    for pattern in _plain():
        for found in pattern.finditer(text):
            yield found.span("secret")
    *assignments, said = _assigned()
    for pattern in assignments:
        for found in pattern.finditer(text):
            if is_telling_name(found["name"]) and _is_meant(found["name"], found["secret"]):
                yield found.span("secret")
    for found in said.finditer(text):
        if is_telling_name(found["name"]) and _is_mixed(found["secret"]):
            yield found.span("secret")


def is_one(value: str) -> bool:
    """Whether a value is, or holds, something that looks like a secret whatever its name."""
    return "PRIVATE KEY-----" in value or any(pattern.search(value) for pattern in _plain())


def _is_meant(name: str, value: str) -> bool:
    """In a listing of variables any value is one. In code, `token: "string"` speaks of a secret and is none."""
    if _UPPER.match(name):
        return True
    return len(value) >= 20 or (len(value) >= 8 and any(character.isdigit() for character in value))


def _is_mixed(value: str) -> bool:
    return any(character.isdigit() for character in value) and any(character.isalpha() for character in value)
