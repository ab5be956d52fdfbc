"""Everything that Apprise can send to. Imported when a sink has an Apprise URL, and not before."""

from __future__ import annotations

import logging
from typing import Any

from holdfast.extras import install_hint
from holdfast.model.sink_words import harmless
from holdfast.sinks.job import Job, Unsendable

TIMEOUT = 30.0
_MISSING = f"Apprise is not installed: {install_hint('notify')}"


def send(job: Job) -> None:
    """Sent when it returns. Raises Unsendable."""
    try:
        import apprise
    except ImportError:
        raise Unsendable(_MISSING) from None
    line = harmless(job.line)
    # A service that needs a subject, as mail does, takes it from here.
    asset = apprise.AppriseAsset(app_id="holdfast", app_desc=line, app_url="", async_mode=False)
    service = apprise.Apprise(asset=asset)
    with _Heard() as heard:
        if not service.add(job.address):
            raise Unsendable("Apprise does not know this kind of URL, or it is not complete", permanent=True)
        text = f"{line}\n{harmless(job.tail)}" if job.tail else line
        told = service.notify(
            body=text,
            title=line if _needs_title(job.address) else "",
            notify_type=job.level,
            body_format=apprise.NotifyFormat.TEXT,
        )
    if not told:
        raise Unsendable(f"the service did not take it: {heard.last or 'it gave no reason'}")


def _needs_title(address: str) -> bool:
    return address.startswith(("mailto", "ses:", "sendgrid", "mailgun", "smtp2go", "sparkpost", "o365", "azure"))


class _Heard(logging.Handler):
    """What Apprise says of why something failed: it says so in its log alone."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.last = ""

    def __enter__(self) -> _Heard:
        logging.getLogger("apprise").addHandler(self)
        return self

    def __exit__(self, *_: Any) -> None:
        logging.getLogger("apprise").removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self.last = record.getMessage()
