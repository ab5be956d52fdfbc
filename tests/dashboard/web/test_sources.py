"""The sources of the page: their types, and the size of what a browser loads first."""

from __future__ import annotations

import gzip
import re

from tests.dashboard.web.browser import ROOT, WEB, run_npm

STATIC = ROOT / "src" / "holdfast" / "dashboard" / "static"
LARGEST_FIRST_LOAD = 250_000
LONGEST_FILE = 400


def test_types_fit_the_description_of_the_api(bundle: None) -> None:
    done = run_npm("run", "check")
    assert done.returncode == 0, done.stdout.decode()[-4000:]


def test_the_first_load_is_small_and_has_no_inline_script(bundle: None) -> None:
    page = (STATIC / "index.html").read_text()
    assert re.findall(r"<script[^>]*>[^<]", page) == []
    loaded = [STATIC / name.lstrip("/") for name in re.findall(r'(?:src|href)="(/[^"]+)"', page)]
    # The page of the processes is part of the first load.
    total = len(gzip.compress(page.encode())) + sum(len(gzip.compress(path.read_bytes())) for path in loaded)
    assert total < LARGEST_FIRST_LOAD, [(path.name, path.stat().st_size) for path in loaded]


def test_no_file_is_long_and_none_names_a_registry() -> None:
    for path in (WEB / "src").rglob("*"):
        if path.suffix in (".ts", ".tsx", ".css"):
            assert len(path.read_text().splitlines()) <= LONGEST_FILE, path
    assert '"resolved"' not in (WEB / "package-lock.json").read_text()


def test_no_style_of_the_whole_page_depends_on_what_is_in_it() -> None:
    """With `:has()` on the root, a browser computes all styles again for every row that comes or goes."""
    for path in (WEB / "src" / "styles").glob("*.css"):
        assert ":has(" not in path.read_text(), path
