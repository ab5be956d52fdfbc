"""Names that are given to secrets."""

from __future__ import annotations

import re
from functools import lru_cache


def words(text: str) -> frozenset[str]:
    """A set of words, written as one text."""
    return frozenset(text.split())


#: Endings of words in names: PGPASSWORD, AUTHTOKEN, MYSECRET.
_ENDS = tuple(sorted(words("TOKEN SECRET PASSWORD PASSWD PASSPHRASE APIKEY ACCESSKEY SECRETKEY PRIVATEKEY")))
_STRONG = words("PASS PIN OTP PWD CREDENTIAL SECRETS PASSWORDS").union(_ENDS)
#: Whole words of a name.
_WORDS = words(
    "TOKENS SECRETS PASSWORDS PASS PWD KEY KEYS APIKEYS PAT SAS JWT BEARER CREDENTIAL CREDENTIALS CRED CREDS AUTH "
    "AUTHORIZATION COOKIE COOKIES DSN WEBHOOK WEBHOOKS PIN OTP TOTP MNEMONIC SALT SIGNATURE CONNSTR"
)
#: Every variable of these families is a secret, except those with a harmless ending.
_FAMILIES = tuple(sorted(words("AWS_ GH_ OPENAI_ ANTHROPIC_ AZURE_ CLOUDFLARE_ STRIPE_ TWILIO_ VAULT_ DATABRICKS_")))
_HARMLESS_ENDS = words(
    "REGION PROFILE PAGER OUTPUT VERSION MODEL HOST PORT ENDPOINT URL ADDR TIMEOUT RETRIES MODE LEVEL DEBUG ENV EDITOR "
    "BROWSER ATTEMPTS ENABLED DISABLED PROTOCOL ZONE CLOUD REPO PROMPT TTL COUNT LIMIT SIZE TYPE ALGORITHM"
)
#: The path of a secret, not the secret.
_PATHS = words("FILE PATH DIR DIRECTORY SOCK SOCKET HOME ASKPASS TTY CONTROL BUNDLE CACERT CAPATH CERT CERTS")
_HARMLESS = words("PWD OLDPWD KEY KEYS GOOGLE_APPLICATION_CREDENTIALS XAUTHORITY GPG_KEY")
#: Switches: COREPACK_ENABLE_AUTO_PIN=0.
_SWITCHES = words("ENABLE DISABLE USE SKIP ALLOW REQUIRE NO WITH WITHOUT AUTO")
#: In running text these words mean a secret; `key` and `auth` alone do not.
_TELLING = words("TOKEN SECRET PASSWORD PASSWD PASSPHRASE APIKEY PWD CREDENTIAL CREDENTIALS")
_BEFORE_KEY = words("API ACCESS SECRET PRIVATE SIGNING ENCRYPTION MASTER AUTH ACCOUNT SHARED")

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_BOUND = re.compile(r"[^A-Z0-9]+")


@lru_cache(maxsize=4096)
def parts(name: str) -> tuple[str, ...]:
    """The words of a name, in capitals and without numbers at their ends: `myApi_key2` is MY, API, KEY."""
    found = (word.rstrip("0123456789") for word in _BOUND.split(_HUMP.sub("_", name).upper()))
    return tuple(word for word in found if word)


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Whether an environment variable of this name holds a secret."""
    upper, found = name.upper(), parts(name)
    if upper in _HARMLESS or not found:
        return False
    if found[-1] in _HARMLESS_ENDS or found[-2:] == ("API", "BASE"):
        return False
    return upper.startswith(_FAMILIES) or any(word in _WORDS or word.endswith(_ENDS) for word in found)


def is_strong_name(name: str) -> bool:
    """Whether even a number or a short word is a secret under this name."""
    return any(word in _STRONG or word.endswith(_ENDS) for word in parts(name))


def is_switch_name(name: str) -> bool:
    """Whether the variable is a switch."""
    return any(word in _SWITCHES for word in parts(name))


def is_path_name(name: str) -> bool:
    """Whether the variable holds the path of a file or a directory."""
    found = parts(name)
    return name.upper() in _HARMLESS or (bool(found) and found[-1] in _PATHS)


@lru_cache(maxsize=4096)
def is_telling_name(name: str) -> bool:
    """Whether a value assigned to this name in running text is a secret."""
    found = parts(name)
    if not found or found[-1] in _HARMLESS_ENDS or found[-1] in _PATHS or name.upper() in _HARMLESS:
        return False
    if found[-1] in _TELLING or found[-1].endswith(_ENDS):
        return True
    if found[-1] in ("KEY", "KEYS"):
        return name.isupper() or (len(found) > 1 and found[-2] in _BEFORE_KEY)
    return name.isupper() and is_secret_name(name)
