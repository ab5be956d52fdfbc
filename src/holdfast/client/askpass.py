"""The program that sudo runs to get a password: prints what the daemon gives it, or says why there is none."""

from __future__ import annotations

import os
import resource
import sys

from holdfast.client.approving import askpass
from holdfast.client.sync import connect
from holdfast.errors import HoldfastError


def main() -> int:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        with connect() as client:
            password = client._do(askpass())
    except HoldfastError as refused:
        reason = (getattr(refused, "data", None) or {}).get("reason") or refused.code
        next = f"; {refused.next}" if refused.next else ""
        sys.stderr.write(f"holdfast: no password for sudo: {refused.message}{next} ({reason})\n")
        return 1
    os.write(1, password + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
