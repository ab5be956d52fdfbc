"""What the sender is asked and what it answers."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from holdfast.model.sinks import SendResult, without

_LARGEST_SECRET = 64 << 10


class Job(NamedTuple):
    """One message for one sink. `id` is the same whenever the same message is sent again."""

    way: str
    id: str
    payload: str
    """For programs: JSON."""
    line: str
    tail: str
    level: str
    address: str = ""
    address_file: str = ""
    secret: str = ""
    secret_file: str = ""

    def with_secrets(self) -> Job:
        """The job with what stands in files. Raises Unsendable."""
        return self._replace(
            address=_read(self.address_file) if self.address_file else self.address,
            secret=_read(self.secret_file) if self.secret_file else self.secret,
        )

    def hide(self, text: str) -> str:
        """The text on one line and without the secrets of this job."""
        clean = without(text, [self.secret, self.secret.removeprefix("whsec_")], self.address)
        return " ".join(clean.split())[:300]


class Unsendable(Exception):
    """Why it cannot be sent; the text may be shown once the job's secrets are hidden in it."""

    def __init__(self, why: str, *, permanent: bool = False, retry_after: float | None = None) -> None:
        super().__init__(why)
        self.permanent = permanent
        self.retry_after = retry_after


def refused(job: Job, failed: Unsendable) -> SendResult:
    return SendResult(False, job.hide(str(failed)), failed.permanent, failed.retry_after)


def to_json(job: Job) -> dict[str, Any]:
    return {name: value for name, value in job._asdict().items() if value != ""}


def from_json(value: dict[str, Any]) -> Job:
    return Job(**{"payload": "", "tail": "", "line": "", **value})


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
