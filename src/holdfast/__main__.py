"""`python -m holdfast`."""

from __future__ import annotations

import sys

from holdfast.cli.entry import main

sys.exit(main())
