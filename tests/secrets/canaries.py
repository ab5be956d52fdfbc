"""Thirty secrets that nobody has, under names of every kind; some of them made up as they are needed."""

from __future__ import annotations

import hashlib
import os
import random
import string

_ALPHABET = string.ascii_letters + string.digits


def _drawn(label: str, size: int, alphabet: str = _ALPHABET) -> str:
    """The same for the same label, unlike anything else."""
    return "".join(random.Random(hashlib.sha256(label.encode()).digest()).choices(alphabet, k=size))


def canaries(salt: str = "") -> dict[str, str]:
    """Names and values of thirty variables. With a salt, the dynamic names are others."""
    dynamic = hashlib.sha256(salt.encode()).hexdigest()[:6].upper()

    def draw(size: int, alphabet: str = _ALPHABET) -> str:
        return _drawn(f"{salt}{len(found)}", size, alphabet)

    found: dict[str, str] = {}
    found["GITHUB_TOKEN"] = f"ghp_{draw(36)}"
    found["GH_ENTERPRISE"] = draw(40)
    found["OPENAI_API_KEY"] = f"sk-{draw(48)}"
    found["ANTHROPIC_API_KEY"] = f"sk-ant-api03-{draw(60)}"
    found["AWS_ACCESS_KEY_ID"] = f"AKIA{draw(16, string.ascii_uppercase)}"
    found["AWS_SECRET_ACCESS_KEY"] = draw(40)
    found["AWS_SESSION_TOKEN"] = draw(200)
    found["DATABASE_URL"] = f"postgres://app:{draw(20)}@db.example/app"
    found["REDIS_URL"] = f"redis://:{draw(24)}@cache.example:6379/0"
    found["PGPASSWORD"] = f"p-{draw(14)}"
    found["MYSQL_PWD"] = f"q!{draw(14)}"
    found["SLACK_BOT"] = f"xoxb-{draw(12, string.digits)}-{draw(24)}"
    found["STRIPE_SK"] = f"sk_live_{draw(24)}"
    found["SENTRY_DSN"] = f"https://{draw(32, '0123456789abcdef')}@o1.ingest.example/4"
    found["JWT_OF_SERVICE"] = f"eyJhbGciOiJIUzI1NiJ9.eyJ{draw(40)}.{draw(43)}"
    found["DEPLOY_PRIVATE_KEY"] = f"-----BEGIN PRIVATE KEY-----\n{draw(64)}\n{draw(64)}\n-----END PRIVATE KEY-----"
    found["NPM_AUTH"] = f"npm_{draw(36)}"
    found["dbPassword"] = f"camel-{draw(12)}"
    found["SERVICE_CREDENTIALS"] = f'{{"id": "robot", "secret": "{draw(30)}"}}'
    found["SESSION_COOKIE"] = draw(48)
    found["HOLDFAST_TOKEN"] = draw(43)
    found["XDG_API_TOKEN"] = draw(32)
    found["LC_SECRET"] = draw(32)
    found["HOLDFAST_URL"] = f"http://robot:{draw(20)}@127.0.0.1:1"
    found[f"PROVIDER_{dynamic}_API_KEY"] = draw(32)
    found[f"MCP_{dynamic}_TOKEN"] = draw(32)
    found[f"TENANT{dynamic}_SECRET"] = draw(32)
    found[f"THING_{dynamic}"] = f"glpat-{draw(20)}"
    found[f"Z{dynamic}"] = draw(36)
    found[f"VAR_{dynamic}_X"] = f"hf_{draw(34)}"
    assert len(found) == 30
    return found


def needles(env: dict[str, str]) -> dict[str, bytes]:
    """What must not be found, by name: of an address its password, of several lines one."""
    return {name: os.fsencode(_needle(value)) for name, value in env.items()}


def _needle(value: str) -> str:
    if "@" in value and "://" in value:
        return value.partition("://")[2].partition("@")[0].rpartition(":")[2]
    if "-----" in value:
        return value.split("\n")[1]
    return value.partition('"secret": "')[2].rstrip('"}') or value
