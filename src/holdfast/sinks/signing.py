"""Signatures of webhooks, as Standard Webhooks (standardwebhooks.com) has them: receivers find libraries for them."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac

_MARK = "whsec_"


def signature(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """HMAC-SHA256 over `id.timestamp.body`. Raises ValueError for a secret that begins with whsec_ and is no base64."""
    signed = b".".join((message_id.encode(), str(timestamp).encode(), body))
    digest = hmac.new(key_of(secret), signed, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"


def key_of(secret: str) -> bytes:
    """`whsec_` and base64 stands for those bytes, anything else for itself."""
    if not secret.startswith(_MARK):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix(_MARK), validate=True)
    except binascii.Error:
        raise ValueError("the secret begins with whsec_, but what follows is no base64") from None
