"""The program that sudo runs to get a password: prints the one that the daemon has, or says why there is none."""

from __future__ import annotations

import os
import resource
import sys
from binascii import a2b_base64

from holdfast.client.calls import QUICK, Ask
from holdfast.client.sync import connect
from holdfast.errors import HoldfastError


def main() -> int:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        with connect() as client:
            value, _ = client._call(Ask("askpass", {}, limit=QUICK, may_repeat=False))
    except HoldfastError as refused:
        reason = (getattr(refused, "data", None) or {}).get("reason") or refused.code
        next = f"; {refused.next}" if refused.next else ""
        sys.stderr.write(f"holdfast: no password for sudo: {refused.message}{next} ({reason})\n")
        return 1
    os.write(1, a2b_base64(value["password"]) + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
