"""Desktop notifications of the logged-in user, by notify-send."""

from __future__ import annotations

import html
import subprocess

from holdfast.sinks.message import SinkMessage, Unsendable

TIMEOUT = 10.0
_URGENCY = {"failure": "critical", "warning": "normal", "success": "normal", "info": "low"}


def send(message: SinkMessage) -> None:
    """Sent when it returns. Raises Unsendable."""
    urgency = f"--urgency={_URGENCY.get(message.level, 'normal')}"
    # The body is markup to most desktops; the summary is not.
    words = ["notify-send", "--app-name=holdfast", urgency, "--", message.line, html.escape(message.tail, quote=False)]
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT, check=False)
    except FileNotFoundError:
        raise Unsendable("there is no notify-send here: install libnotify (Debian: libnotify-bin)") from None
    except subprocess.TimeoutExpired:
        raise Unsendable(f"notify-send did not end within {TIMEOUT:.0f} s") from None
    except OSError as failed:
        raise Unsendable(f"notify-send cannot be run: {failed.strerror}") from failed
    if done.returncode != 0:
        raise Unsendable(f"notify-send failed: {done.stderr.decode(errors='replace').strip()[:200]}")
