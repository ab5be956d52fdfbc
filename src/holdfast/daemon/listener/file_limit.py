"""The limit of open files: when clients are refused because of it, and the error that they get."""

from __future__ import annotations

import errno
import os
import resource

from holdfast import light_json
from holdfast.errors import Unreachable
from holdfast.wire.frames import FrameDecoder, FrameError, encode

#: Left for the requests of clients that are connected, which open a few files each.
HEADROOM = 16
_HTTP = b"""\
HTTP/1.1 503 Service Unavailable\r
Content-Type: application/problem+json\r
Content-Length: %d\r
Cache-Control: no-store\r
Connection: close\r
\r
%b"""


def is_reached(failed: OSError) -> bool:
    """Whether it failed because daemon or machine may not open more files."""
    return failed.errno in (errno.EMFILE, errno.ENFILE)


def shortage() -> OSError | None:
    """Why no further client is to be served now; None where enough descriptors are left."""
    opened: list[int] = []
    try:
        for _ in range(HEADROOM):
            opened.append(os.dup(2))
        return None
    except OSError as failed:
        return failed if is_reached(failed) else None
    finally:
        for fd in opened:
            os.close(fd)


def error(failed: OSError) -> Unreachable:
    if failed.errno == errno.ENFILE:
        return Unreachable("the machine is at its limit of open files", next="raise it: sysctl fs.file-max")
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return Unreachable(
        f"the daemon is at its limit of {limit} open files",
        next=f"end clients that wait or follow, or raise the limit: prlimit --pid {os.getpid()} --nofile=NUMBER",
    )


def refusal(first: bytes, failed: OSError) -> bytes:
    """The reply to a client whose first bytes are these; none where they are no request."""
    refused = error(failed)
    if first[:1] == b"\0":
        try:
            rids = [frame.get("rid") for frame in FrameDecoder().feed(first) if isinstance(frame, dict)]
        except FrameError:
            return b""
        return b"".join(encode({"rid": rid, "error": refused.to_wire()}) for rid in rids)
    if not first:
        return b""
    # By hand: `holdfast.http` may not be imported yet, and cannot be at the limit.
    problem = {
        "type": "about:blank",
        "title": "Unreachable",
        "status": 503,
        "code": refused.code,
        "detail": refused.message,
        "next": refused.next,
    }
    body = light_json.dumps(problem).encode()
    return _HTTP % (len(body), body)
