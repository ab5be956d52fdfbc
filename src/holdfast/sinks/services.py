"""All services of Apprise. Imported only if a sink has an Apprise URL."""

from __future__ import annotations

import logging
from typing import Any

from holdfast.extras import install_hint
from holdfast.model.notices.summaries import harmless
from holdfast.sinks.message import SinkMessage, Unsendable

TIMEOUT = 30.0
_MISSING = f"Apprise is not installed: {install_hint('notify')}"


def send(message: SinkMessage) -> None:
    """Sent when it returns. Raises Unsendable."""
    try:
        import apprise
    except ImportError:
        raise Unsendable(_MISSING) from None
    line = harmless(message.line)
    # Services with a subject, such as mail, take it from here.
    asset = apprise.AppriseAsset(app_id="holdfast", app_desc=line, app_url="", async_mode=False)
    service = apprise.Apprise(asset=asset)
    with _LastWarning() as warning:
        if not service.add(message.address):
            raise Unsendable("Apprise does not know this kind of URL, or it is not complete", permanent=True)
        text = f"{line}\n{harmless(message.tail)}" if message.tail else line
        is_sent = service.notify(
            body=text,
            title=line if _needs_title(message.address) else "",
            notify_type=message.level,
            body_format=apprise.NotifyFormat.TEXT,
        )
    if not is_sent:
        raise Unsendable(f"the service did not take it: {warning.last or 'it gave no reason'}")


def _needs_title(address: str) -> bool:
    return address.startswith(("mailto", "ses:", "sendgrid", "mailgun", "smtp2go", "sparkpost", "o365", "azure"))


class _LastWarning(logging.Handler):
    """The last warning of Apprise, which gives its reasons only in its log."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.last = ""

    def __enter__(self) -> _LastWarning:
        logging.getLogger("apprise").addHandler(self)
        return self

    def __exit__(self, *_: Any) -> None:
        logging.getLogger("apprise").removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self.last = record.getMessage()
