"""The page of the dashboard, its plugins and its themes. `static/` is built from `web/`; `holdfast.http.pages` serves
it.
"""

from __future__ import annotations

import os

#: The bundle; not there where it could not be built.
STATIC = os.path.join(os.path.dirname(os.path.abspath(__file__)), "static")


def is_built(directory: str = "") -> bool:
    return os.path.isfile(os.path.join(directory or STATIC, "index.html"))
