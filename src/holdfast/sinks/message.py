"""A message for a sink, as the daemon sends it to the sender process."""

from __future__ import annotations

import os

from holdfast.model.notices.sinks import without
from holdfast.records import Struct, replace

_LARGEST_SECRET = 64 << 10


class SinkMessage(Struct, frozen=True):
    """One message for one sink. A message that is sent again has the same `id`."""

    way: str
    id: str
    payload: str = ""
    """JSON, for programs."""
    line: str = ""
    tail: str = ""
    level: str = "info"
    address: str = ""
    address_file: str = ""
    secret: str = ""
    secret_file: str = ""

    def with_secrets(self) -> SinkMessage:
        """The message with the address and the secret read from their files. Raises Unsendable."""
        return replace(
            self,
            address=_read(self.address_file) if self.address_file else self.address,
            secret=_read(self.secret_file) if self.secret_file else self.secret,
        )

    def hide(self, text: str) -> str:
        """The text on one line and without the secrets of this message."""
        clean = without(text, [self.secret, self.secret.removeprefix("whsec_")], self.address)
        return " ".join(clean.split())[:300]


class Unsendable(Exception):
    """Why a message was not sent. The text may be shown once `hide` has removed the secrets of the message."""

    def __init__(self, why: str, *, permanent: bool = False, retry_after: float | None = None) -> None:
        super().__init__(why)
        self.permanent = permanent
        self.retry_after = retry_after


def _read(path: str) -> str:
    try:
        with open(os.path.expanduser(path), encoding="utf-8") as file:
            text = file.read(_LARGEST_SECRET).strip()
    except (OSError, UnicodeDecodeError) as failed:
        why = failed.strerror if isinstance(failed, OSError) else "it is no text"
        raise Unsendable(f"cannot read {path}: {why}") from failed
    if not text:
        raise Unsendable(f"{path} is empty")
    return text
