"""Patterns of secrets in text. No I/O.

Every pattern stays within a line and is bounded, so that the time for hostile text is linear.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from holdfast.secrets.names import is_telling_name, words

Span = tuple[int, int]

#: Tokens with a known prefix: substrings that a text must contain before the pattern is tried, and the pattern.
_TOKENS = (
    ("ghp_ gho_ ghs_ ghu_ ghr_", r"gh[opsur]_[A-Za-z0-9]{20,255}"),
    ("github_pat_", r"github_pat_[A-Za-z0-9_]{20,255}"),
    ("glpat- glrt- gldt- glptt- glsoat- glcbt-", r"gl(?:pat|rt|dt|ptt|soat|cbt)-[A-Za-z0-9_-]{16,255}"),
    ("sk-", r"sk-[A-Za-z0-9_-]{16,255}"),
    ("k_live_ k_test_", r"(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{10,255}"),
    ("whsec_", r"whsec_[A-Za-z0-9+/=]{16,255}"),
    ("xox", r"xox[abeoprs]-[A-Za-z0-9-]{10,255}"),
    ("xapp-", r"xapp-[A-Za-z0-9-]{10,255}"),
    ("AKIA ASIA AROA AIDA", r"(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{16}(?![A-Z0-9])"),
    ("AIza", r"AIza[A-Za-z0-9_-]{35}"),
    ("ya29.", r"ya29\.[A-Za-z0-9_-]{20,2048}"),
    ("GOCSPX-", r"GOCSPX-[A-Za-z0-9_-]{20,64}"),
    ("npm_", r"npm_[A-Za-z0-9]{30,64}"),
    ("pypi-", r"pypi-[A-Za-z0-9_-]{32,512}"),
    ("rubygems_", r"rubygems_[a-f0-9]{32,64}"),
    ("hf_", r"hf_[A-Za-z0-9]{20,64}"),
    ("gsk_", r"gsk_[A-Za-z0-9]{20,128}"),
    ("r8_", r"r8_[A-Za-z0-9]{20,64}"),
    ("pplx-", r"pplx-[A-Za-z0-9]{20,128}"),
    ("xai-", r"xai-[A-Za-z0-9]{20,128}"),
    ("tvly-", r"tvly-[A-Za-z0-9-]{16,128}"),
    ("_v1_", r"do[opr]_v1_[a-f0-9]{32,128}"),
    ("dckr_pat_", r"dckr_pat_[A-Za-z0-9_-]{16,64}"),
    ("SG.", r"SG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,128}"),
    ("shpat_ shpca_ shppa_ shpss_", r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}"),
    ("hvs. hvb. hvr.", r"hv[sbr]\.[A-Za-z0-9_-]{20,512}"),
    ("dp.", r"dp\.(?:pt|st|ct|sa)\.[A-Za-z0-9._-]{20,128}"),
    ("lin_api_", r"lin_api_[A-Za-z0-9]{20,64}"),
    ("ntn_", r"ntn_[A-Za-z0-9]{20,64}"),
    ("sntry", r"sntry[su]_[A-Za-z0-9+/=_-]{20,512}"),
    ("dapi", r"dapi[a-f0-9]{32}"),
    ("ATATT3 ATBB ATCTT3", r"(?:ATATT3|ATBB|ATCTT3)[A-Za-z0-9_=-]{20,512}"),
    ("sbp_", r"sbp_[a-f0-9]{32,64}"),
    ("figd_", r"figd_[A-Za-z0-9_-]{20,64}"),
    ("nfp_", r"nfp_[A-Za-z0-9]{20,64}"),
    ("fm1 fm2", r"fm[12][ar]?_[A-Za-z0-9+/=,_-]{32,2048}"),
    ("AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[A-Z0-9]{50,64}"),
    ("EAA", r"EAA[A-Za-z0-9]{60,512}"),
    ("eyJ", r"eyJ[A-Za-z0-9_-]{6,16384}\.[A-Za-z0-9_-]{6,16384}\.[A-Za-z0-9_-]{0,2048}"),
    (":AA", r"\d{8,10}:AA[A-Za-z0-9_-]{33}"),
)
#: The same for other secrets; the substrings are in lower case.
_OTHERS = (
    # The password in a URL.
    ("://", r"[A-Za-z][A-Za-z0-9+.-]{1,30}://[^\s/@:\"'<>]{0,256}:(?P<secret>[^\s/\"'<>]{1,512})@"),
    # URLs that are secret as a whole.
    ("hooks.slack.com/", r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[A-Za-z0-9/_-]{12,256})"),
    ("discord", r"discord(?:app)?\.com/api/webhooks/(?P<secret>\d{6,24}/[A-Za-z0-9_-]{16,128})"),
    # Headers.
    (
        "authorization",
        r"(?i:authorization)[\"']?[^\S\n]{0,4}[:=][^\S\n]{0,4}[\"']?(?:[A-Za-z]{1,20}[^\S\n]{1,4})?(?P<secret>[^\s\"',]{6,16384})",
    ),
    ("bearer", r"\b(?i:bearer)[^\S\n]{1,4}(?P<secret>[A-Za-z0-9._~+/=-]{16,16384})"),
    (
        "x-api-key x-auth-token private-token x-vault-token",
        r"\b(?i:x-api-key|x-auth-token|private-token|x-vault-token)[\"']?[^\S\n]{0,4}[:=][^\S\n]{0,4}[\"']?(?P<secret>[^\s\"',]{6,4096})",
    ),
    # A private key in one line.
    ("-----begin", r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?P<secret>[A-Za-z0-9+/=\\,: \t]{1,65536})"),
)

_NAME = r"(?<![A-Za-z0-9_])(?P<name>[A-Za-z_][A-Za-z0-9_.-]{0,63})"
_BLANK = r"[^\S\n]"
#: `NAME=value` as in an environment, `"name": "value"` as in a file, `--name value` as on a command line.
_ASSIGNMENTS = (
    _NAME + r"=(?P<secret>[^\s\"'`;,&|<>$(){}][^\s\"'`;&|<>]{5,4096})",
    _NAME + rf"[\"']?{_BLANK}{{0,4}}[:=]{_BLANK}{{0,4}}[\"'](?P<secret>[^\s\"']{{6,4096}})[\"']",
    rf"(?<![\w-])--?(?P<name>[A-Za-z][A-Za-z0-9-]{{1,40}}){_BLANK}{{1,4}}[\"']?(?P<secret>[^\s\"'`;|<>$(){{}}-][^\s\"'`;|<>]{{5,4096}})",
)
#: `name: value` is also ordinary prose: here the value has to look like a secret.
_SAID = _NAME + rf":{_BLANK}{{1,4}}(?P<secret>[^\s\"'`;,&|<>$(){{}}]{{8,4096}})"
_UPPER = re.compile(r"[A-Z0-9_]+\Z")


#: Every name of a secret contains one of these.
_TELLING = words(
    "token secret pass key pwd cred auth cookie dsn jwt bearer hook _pat _sas pin otp mnem salt sign conn aws_ gh_ "
    "openai_ anthropic_ azure_ cloudflare_ stripe_ twilio_ vault_ databricks_ pat_ sas_"
)

_HINTED_TOKENS = tuple((tuple(hints.split()), rf"(?<![A-Za-z0-9])(?P<secret>{token})") for hints, token in _TOKENS)
_HINTED_OTHERS = tuple((tuple(hints.split()), pattern) for hints, pattern in _OTHERS)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compiled with the first text that contains one of its hints: most never are."""
    return re.compile(pattern)


@cache
def _assigned() -> tuple[re.Pattern[str], ...]:
    return tuple(map(re.compile, (*_ASSIGNMENTS, _SAID)))


def find(text: str) -> Iterator[Span]:
    """The spans of text that look like secrets; some may overlap."""
    lower = _lower(text)
    for pattern in _worth_a_look(text, lower):
        for found in pattern.finditer(text):
            yield found.span("secret")
    for start, end in _telling_lines(lower):
        for at, upto in _find_assigned(text[start:end]):
            yield start + at, start + upto


def is_one(value: str) -> bool:
    """Whether a value contains something that looks like a secret, under any name."""
    if "PRIVATE KEY-----" in value:
        return True
    return any(pattern.search(value) for pattern in _worth_a_look(value, value.lower()))


def _worth_a_look(text: str, lower: str) -> Iterator[re.Pattern[str]]:
    """The patterns that can match. A substring search is a hundred times faster than a pattern."""
    for where, table in ((text, _HINTED_TOKENS), (lower, _HINTED_OTHERS)):
        for hints, pattern in table:
            if any(hint in where for hint in hints):
                yield _compiled(pattern)


def _telling_lines(lower: str) -> list[Span]:
    """The lines that may contain the name of a secret."""
    lines: set[Span] = set()
    for word in _TELLING:
        at = lower.find(word)
        while at >= 0:
            start, end = lower.rfind("\n", 0, at) + 1, lower.find("\n", at)
            lines.add((start, end if end >= 0 else len(lower)))
            at = lower.find(word, end) if end >= 0 else -1
    return sorted(lines)


def _lower(text: str) -> str:
    """Lower case, of the same length."""
    lower = text.lower()
    return lower if len(lower) == len(text) else "".join(c.lower() if c.isascii() else c for c in text)


def _find_assigned(line: str) -> Iterator[Span]:
    *assignments, said = _assigned()
    for pattern in assignments:
        for found in pattern.finditer(line):
            if is_telling_name(found["name"]) and _is_meant(found["name"], found["secret"]):
                yield found.span("secret")
    for found in said.finditer(line):
        if is_telling_name(found["name"]) and _is_mixed(found["secret"]):
            yield found.span("secret")


def _is_meant(name: str, value: str) -> bool:
    """In a listing of variables every value counts. In code, `token: "string"` is no secret."""
    if _UPPER.match(name):
        return True
    return len(value) >= 20 or (len(value) >= 8 and any(character.isdigit() for character in value))


def _is_mixed(value: str) -> bool:
    return any(character.isdigit() for character in value) and any(character.isalpha() for character in value)
