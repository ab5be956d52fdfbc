"""Which names are given to secrets. No I/O."""

from __future__ import annotations

import re
from functools import lru_cache

#: Whatever a part of a name ends with one of these: PGPASSWORD, AUTHTOKEN, MYSECRET.
_ENDS = ("TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "APIKEY", "ACCESSKEY", "SECRETKEY", "PRIVATEKEY")
_STRONG = frozenset({*_ENDS, "PASS", "PIN", "OTP", "PWD", "CREDENTIAL", "SECRETS", "PASSWORDS"})
#: A part of a name that is one of these.
_WORDS = frozenset(
    {
        *("TOKENS", "SECRETS", "PASSWORDS", "PASS", "PWD", "KEY", "KEYS", "APIKEYS", "PAT", "SAS", "JWT", "BEARER"),
        *("CREDENTIAL", "CREDENTIALS", "CRED", "CREDS", "AUTH", "AUTHORIZATION", "COOKIE", "COOKIES", "DSN", "WEBHOOK"),
        *("WEBHOOKS", "PIN", "OTP", "TOTP", "MNEMONIC", "SALT", "SIGNATURE", "CONNSTR"),
    }
)
#: All of a family, but for what says where and how.
_FAMILIES = (
    "AWS_",
    "GH_",
    "OPENAI_",
    "ANTHROPIC_",
    "AZURE_",
    "CLOUDFLARE_",
    "STRIPE_",
    "TWILIO_",
    "VAULT_",
    "DATABRICKS_",
)
_HARMLESS_ENDS = frozenset(
    {
        *(
            "REGION",
            "PROFILE",
            "PAGER",
            "OUTPUT",
            "VERSION",
            "MODEL",
            "HOST",
            "PORT",
            "ENDPOINT",
            "URL",
            "ADDR",
        ),
        *(
            "TIMEOUT",
            "RETRIES",
            "MODE",
            "LEVEL",
            "DEBUG",
            "ENV",
            "EDITOR",
            "BROWSER",
            "ATTEMPTS",
            "ENABLED",
            "DISABLED",
        ),
        *("PROTOCOL", "ZONE", "CLOUD", "REPO", "PROMPT", "TTL", "COUNT", "LIMIT", "SIZE", "TYPE", "ALGORITHM"),
    }
)
#: Where a secret is, and not the secret.
_PLACES = frozenset(
    {
        *("FILE", "PATH", "DIR", "DIRECTORY", "SOCK", "SOCKET", "HOME", "ASKPASS", "TTY", "CONTROL"),
        *("BUNDLE", "CACERT", "CAPATH", "CERT", "CERTS"),
    }
)
_HARMLESS = frozenset({"PWD", "OLDPWD", "KEY", "KEYS", "GOOGLE_APPLICATION_CREDENTIALS", "XAUTHORITY", "GPG_KEY"})
#: What is on or off, whatever comes with it: COREPACK_ENABLE_AUTO_PIN=0.
_SWITCHES = frozenset({"ENABLE", "DISABLE", "USE", "SKIP", "ALLOW", "REQUIRE", "NO", "WITH", "WITHOUT", "AUTO"})
#: In running text these mean a secret; `key` and `auth` alone mean anything.
_TELLING = frozenset(
    {"TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "APIKEY", "PWD", "CREDENTIAL", "CREDENTIALS"}
)
_BEFORE_KEY = frozenset(
    {"API", "ACCESS", "SECRET", "PRIVATE", "SIGNING", "ENCRYPTION", "MASTER", "AUTH", "ACCOUNT", "SHARED"}
)

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_BOUND = re.compile(r"[^A-Z0-9]+")


@lru_cache(maxsize=4096)
def parts(name: str) -> tuple[str, ...]:
    """The words of a name, in capitals and without numbers at their ends: `myApi_key2` is MY, API, KEY."""
    words = (word.rstrip("0123456789") for word in _BOUND.split(_HUMP.sub("_", name).upper()))
    return tuple(word for word in words if word)


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Whether an environment variable of this name is meant to hold a secret."""
    upper, words = name.upper(), parts(name)
    if upper in _HARMLESS or not words:
        return False
    if words[-1] in _HARMLESS_ENDS or words[-2:] == ("API", "BASE"):
        return False
    return upper.startswith(_FAMILIES) or any(word in _WORDS or word.endswith(_ENDS) for word in words)


def is_strong_name(name: str) -> bool:
    """Whether even a number or a short word is a secret under this name."""
    return any(word in _STRONG or word.endswith(_ENDS) for word in parts(name))


def is_switch_name(name: str) -> bool:
    """Whether it turns something on or off."""
    return any(word in _SWITCHES for word in parts(name))


def is_place_name(name: str) -> bool:
    """Whether the name is one of a file or a directory."""
    words = parts(name)
    return name.upper() in _HARMLESS or (bool(words) and words[-1] in _PLACES)


@lru_cache(maxsize=4096)
def is_telling_name(name: str) -> bool:
    """Whether what is assigned to this name in running text is a secret."""
    words = parts(name)
    if not words or words[-1] in _HARMLESS_ENDS or words[-1] in _PLACES or name.upper() in _HARMLESS:
        return False
    if words[-1] in _TELLING or words[-1].endswith(_ENDS):
        return True
    if words[-1] in ("KEY", "KEYS"):
        return name.isupper() or (len(words) > 1 and words[-2] in _BEFORE_KEY)
    return name.isupper() and is_secret_name(name)
