"""A webhook: one signed POST. Redirects are not followed: a message goes to the configured address only."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import http.client
import ssl
import time
from email.utils import parsedate_to_datetime
from urllib.parse import SplitResult, unquote, urlsplit

from holdfast.model.notices.sink_config import trouble_of
from holdfast.sinks.message import SinkMessage, Unsendable
from holdfast.version import VERSION

TIMEOUT = 10.0
#: Client errors that may go away.
_PASSING = frozenset({408, 425, 429})
_MOST_SHOWN = 200
#: A secret that begins with this is base64, as Standard Webhooks (standardwebhooks.com) has it.
_ENCODED = "whsec_"


def send(message: SinkMessage) -> None:
    """Sent when it returns. Raises Unsendable."""
    parts = _parts(message.address)
    body = message.payload.encode()
    headers = _headers(message, parts, body)
    connection = _connection(parts)
    try:
        connection.request("POST", _target(parts), body, headers)
        _judge(connection.getresponse())
    except TimeoutError:
        raise Unsendable(f"no answer from {parts.hostname} within {TIMEOUT:.0f} s") from None
    except ssl.SSLCertVerificationError as failed:
        raise Unsendable(f"{parts.hostname} is not trusted: {failed.verify_message}") from failed
    except OSError as failed:
        raise Unsendable(f"cannot reach {parts.hostname}: {failed.strerror or failed}") from failed
    except http.client.HTTPException as failed:
        raise Unsendable(f"{parts.hostname} does not speak HTTP ({type(failed).__name__})") from failed
    except UnicodeError as failed:
        raise Unsendable("the address cannot be written in a request", permanent=True) from failed
    finally:
        connection.close()


def _parts(address: str) -> SplitResult:
    if trouble := trouble_of("webhook", address):
        raise Unsendable(trouble, permanent=True)
    return urlsplit(address)


def _connection(parts: SplitResult) -> http.client.HTTPConnection:
    host = parts.hostname or ""
    if parts.scheme == "http":
        return http.client.HTTPConnection(host, parts.port, timeout=TIMEOUT)
    return http.client.HTTPSConnection(host, parts.port, timeout=TIMEOUT, context=ssl.create_default_context())


def _target(parts: SplitResult) -> str:
    path = parts.path or "/"
    return f"{path}?{parts.query}" if parts.query else path


def _headers(message: SinkMessage, parts: SplitResult, body: bytes) -> dict[str, str]:
    now = int(time.time())
    headers = {
        "Content-Type": "application/json",
        "User-Agent": f"holdfast/{VERSION}",
        "Idempotency-Key": message.id,
        "webhook-id": message.id,
        "webhook-timestamp": str(now),
    }
    if message.secret:
        try:
            headers["webhook-signature"] = signature(message.secret, message.id, now, body)
        except ValueError as failed:
            raise Unsendable(str(failed), permanent=True) from None
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    return headers


def _judge(response: http.client.HTTPResponse) -> None:
    status = response.status
    if 200 <= status < 300:
        return
    if 300 <= status < 400:
        raise Unsendable(f"answered {status}, a redirect; name the address it leads to", permanent=True)
    body = response.read(_MOST_SHOWN).decode(errors="replace")
    shown = "".join(c if c.isprintable() else " " for c in body).strip()
    permanent = 400 <= status < 500 and status not in _PASSING
    why = f"answered {status} {response.reason}" + (f": {shown}" if shown else "")
    raise Unsendable(why, permanent=permanent, retry_after=_retry_after(response.getheader("Retry-After")))


def _retry_after(text: str | None) -> float | None:
    """Seconds, from a number or a date; None for anything else."""
    text = (text or "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:12])
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def signature(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """HMAC-SHA256 over `id.timestamp.body`. Raises ValueError for a secret that begins with whsec_ and is no base64."""
    signed = b".".join((message_id.encode(), str(timestamp).encode(), body))
    digest = hmac.new(key_of(secret), signed, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"


def key_of(secret: str) -> bytes:
    """The bytes of a secret: decoded, if it begins with whsec_."""
    if not secret.startswith(_ENCODED):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix(_ENCODED), validate=True)
    except binascii.Error:
        raise ValueError("the secret begins with whsec_, but what follows is no base64") from None
