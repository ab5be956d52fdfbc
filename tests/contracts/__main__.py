"""`python -m tests.contracts BACKEND`: the contract of all places against a backend of yours, such as a cloud provider.

Further arguments are those of pytest. The API key is that of the variable that the provider's SDK documents. For
providers it makes one sandbox, and ends it.
"""

from __future__ import annotations

import asyncio
import os
import sys

import pytest

from tests.contracts.clouds import PROVIDERS, REAL, cloud_backend
from tests.contracts.staged import IMPLEMENTATIONS


def main() -> int:
    if len(sys.argv) < 2 or sys.argv[1] not in IMPLEMENTATIONS:
        sys.stderr.write(f"usage: python -m tests.contracts BACKEND; the backends are {', '.join(IMPLEMENTATIONS)}\n")
        return 2
    backend, *more = sys.argv[1:]
    os.environ[REAL] = backend
    os.environ["HOLDFAST_FULL"] = "1"
    if backend in PROVIDERS:
        found = asyncio.run(cloud_backend(backend)(backend, {}).state(os.environ))
        if found.state != "ready":
            hint = "" if backend == "modal" else f"; here, {cloud_backend(backend).key_variable} will do"
            sys.stderr.write(f"{backend} {found.detail}{hint}\n")
            return 2
    suite = os.path.join(os.path.dirname(__file__), "test_places.py")
    return int(pytest.main([suite, "-q", "-k", f"[{backend}] or [{backend}-", *more]))


if __name__ == "__main__":
    sys.exit(main())
