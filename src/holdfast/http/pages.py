"""The page of the dashboard, as files: it has nothing secret, so it is served without a token.

Paths that belong to nothing else are the page's own: it shows what they name.
"""

from __future__ import annotations

import asyncio
import os
import re
import zlib
from functools import lru_cache

from holdfast.dashboard import STATIC
from holdfast.errors import HoldfastError
from holdfast.http.request import HttpRequest
from holdfast.http.responses import Headers, HttpRefusal, Response

_INDEX = "index.html"
_HTML = "text/html"
_UTF8 = "; charset=utf-8"
_MEDIA = {
    ".html": _HTML + _UTF8,
    ".js": "text/javascript" + _UTF8,
    ".css": "text/css" + _UTF8,
    ".json": "application/json",
    ".webmanifest": "application/manifest+json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
    ".wasm": "application/wasm",
    ".txt": "text/plain" + _UTF8,
}
_PACKED = frozenset({".html", ".js", ".css", ".json", ".svg", ".webmanifest", ".txt"})
#: Nothing here is a path of the page.
_RESERVED = ("api", "mcp", "livez", "readyz", "metrics")
#: A file below the bundle. No part begins with a dot, so there is no way out of it; `%` is never decoded.
_FILE = re.compile(r"(?:/[A-Za-z0-9_][A-Za-z0-9._-]{0,127}){1,8}")
#: Styles may be inline, because themes and the terminal set them; everything else comes from here.
CONTENT_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "font-src 'self' data:",
        "connect-src 'self'",
        "worker-src 'self'",
        "manifest-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
_PAGE_HEADERS = (
    ("content-security-policy", CONTENT_POLICY),
    ("x-frame-options", "DENY"),
    ("cross-origin-opener-policy", "same-origin"),
    ("permissions-policy", "camera=(), microphone=(), geolocation=(), payment=(), usb=()"),
)
#: Files of plugins and themes: nothing secret either, because a browser can send no secret with a script.
_EXTENSIONS = ("dashboard-plugins", "dashboard-themes")
_FOR_EVER = "public, max-age=31536000, immutable"
_NOT_BUILT = """<!doctype html><html lang="en"><meta charset="utf-8"><title>holdfast</title>
<meta name="viewport" content="width=device-width">
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:40em;margin:4em auto;padding:0 1em;color-scheme:light dark}
code{font-family:ui-monospace,monospace}</style>
<h1>The page of the dashboard is not built</h1>
<p>This installation of holdfast was made without Node, which builds the page. Everything else works.</p>
<p>In a clone of holdfast, run <code>./scripts/setup</code>. Otherwise install a wheel, which has the page:
<code>pipx reinstall holdfast-runtime</code> or <code>pip install --force-reinstall holdfast-runtime</code>.
Then reload this page.</p></html>
"""


def is_page(request: HttpRequest) -> bool:
    """Whether this is a request for the page or for one of its files."""
    if request.method not in ("GET", "HEAD"):
        return False
    first = request.raw_path.split("/", 2)[1] if request.raw_path.startswith("/") else ""
    if first in _RESERVED:
        return False
    return (
        first in _EXTENSIONS
        or first == "assets"
        or _accepts_html(request)
        or _is_file(_directory(request), request.raw_path)
    )


async def serve(request: HttpRequest) -> Response:
    """A file of the bundle; else the page. Raises HttpRefusal for an asset that is not there."""
    directory, path = _directory(request), request.raw_path
    _, first, *rest = path.split("/")
    if first in _EXTENSIONS:
        return await _extension(request, first, rest)
    is_asset = path.startswith("/assets/")
    if not _is_file(directory, path):
        if is_asset:
            raise HttpRefusal(404, "not_found", "the page has no such file", next="reload the page")
        path = f"/{_INDEX}"
    try:
        return await asyncio.to_thread(_file, directory + path, _accepts_gzip(request), is_asset)
    except OSError:
        if is_asset:
            raise HttpRefusal(404, "not_found", "the page has no such file", next="reload the page") from None
        return Response(200, _NOT_BUILT.encode(), _MEDIA[".html"], _PAGE_HEADERS)


async def _extension(request: HttpRequest, kind: str, path: list[str]) -> Response:
    """A file of an enabled plugin or of a theme."""
    name, below = "".join(path[:1]), "/".join(path[1:])
    plugins, themes = request.context.plugins, request.context.themes

    def read() -> tuple[bytes, str]:
        return plugins.get(name).file(below) if kind == _EXTENSIONS[0] else themes.file(name, below)

    try:
        data, media = await asyncio.to_thread(read)
    except HoldfastError as refused:
        raise HttpRefusal(404, "not_found", refused.message, next=refused.next) from None
    return Response(200, data, media, (("cache-control", "no-cache"),))


def _directory(request: HttpRequest) -> str:
    return request.context.settings.dashboard_files or STATIC


def _is_file(directory: str, path: str) -> bool:
    return _FILE.fullmatch(path) is not None and os.path.isfile(directory + path)


def _accepts_html(request: HttpRequest) -> bool:
    return _HTML in (request.header("accept") or "").lower()


def _accepts_gzip(request: HttpRequest) -> bool:
    return "gzip" in (request.header("accept-encoding") or "").lower()


def _file(path: str, packed: bool, is_asset: bool) -> Response:
    """Raises OSError."""
    extension = os.path.splitext(path)[1]
    headers: Headers = (("cache-control", _FOR_EVER if is_asset else "no-cache"),)
    if extension == ".html":
        headers = (*headers, *_PAGE_HEADERS)
    elif extension == ".js":  # for a worker, the policy of its script holds
        headers = (*headers, _PAGE_HEADERS[0])
    stamp = os.stat(path).st_mtime_ns
    if packed and extension in _PACKED:
        headers = (*headers, ("content-encoding", "gzip"), ("vary", "accept-encoding"))
        return Response(200, _gzipped(path, stamp), _MEDIA[extension], headers)
    with open(path, "rb") as file:
        return Response(200, file.read(), _MEDIA.get(extension, "application/octet-stream"), headers)


@lru_cache(maxsize=64)
def _gzipped(path: str, stamp: int) -> bytes:
    """`stamp`: of a file that was replaced, the new content is packed."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    with open(path, "rb") as file:
        return packer.compress(file.read()) + packer.flush()
