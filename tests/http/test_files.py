"""/api/v1/files: a file or an archive, up and down, by any HTTP client."""

from __future__ import annotations

import io
import socket
import stat
import tarfile
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.http.asking import Api
from tests.support import eventually

TAR = {"content-type": "application/x-tar"}


def url(path: Path | str, place: str = "local") -> str:
    return f"/api/v1/files?place={quote(place)}&path={quote(str(path))}"


def archive(*members: tuple[str, object], format: int = tarfile.PAX_FORMAT) -> bytes:
    """A tar: content of a file, None for a directory, `-> target` for a symbolic link, or a type."""
    into = io.BytesIO()
    with tarfile.open(fileobj=into, mode="w", format=format) as tar:
        for name, what in members:
            info = tarfile.TarInfo(name)
            info.mode = 0o755
            content = what if isinstance(what, bytes) else b""
            if what is None:
                info.type = tarfile.DIRTYPE
            elif isinstance(what, str):
                info.type, info.linkname = tarfile.SYMTYPE, what.removeprefix("-> ")
            elif isinstance(what, int):
                info.type, info.linkname = bytes([what]), "top/file"
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return into.getvalue()


def test_a_file_as_it_is(api: Api, tmp_path: Path) -> None:
    data = bytes(range(256)) * 5000
    done = api.ask("PUT", f"{url(tmp_path / 'file')}&mode=448", data, {"content-type": "application/octet-stream"})
    assert (done.status, done.value) == (200, {"path": f"{tmp_path}/file", "files": 1, "bytes": len(data)})
    assert (tmp_path / "file").read_bytes() == data
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o700
    back = api.ask("GET", url(tmp_path / "file"))
    assert (back.status, back.headers["content-type"], back.body) == (200, "application/octet-stream", data)
    (tmp_path / "empty").touch()
    assert api.ask("GET", url(tmp_path / "empty")).body == b""


@pytest.mark.parametrize("format", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
def test_an_archive_of_a_directory(api: Api, tmp_path: Path, format: int) -> None:
    name = "n" * (90 if format == tarfile.USTAR_FORMAT else 240)
    sent = archive(("./", None), (f"./{name}", b"1"), ("sub/deep/file", b"2"), ("link", "-> /etc"), format=format)
    assert api.ask("PUT", url(tmp_path / "new"), sent, TAR).value["files"] == 3
    assert (tmp_path / "new" / name).read_bytes() == b"1"
    assert (tmp_path / "new" / "sub" / "deep" / "file").read_bytes() == b"2"
    back = api.ask("GET", url(tmp_path / "new"), headers={"accept": "application/x-tar"})
    with tarfile.open(fileobj=io.BytesIO(back.body)) as tar:
        assert sorted(tar.getnames()) == sorted(
            ["new", f"new/{name}", "new/link", "new/sub", "new/sub/deep", "new/sub/deep/file"]
        )


_REGULAR = archive(("top", None), ("top/file", b"x"))


@pytest.mark.parametrize(
    "sent",
    [
        archive(("top", None), ("top/../../escaped", b"x")),
        archive(("../escaped", b"x")),
        archive(("/escaped", b"x")),
        archive(("top", None), ("/etc/escaped", b"x")),
        archive(("top", None), ("other", b"x")),
        archive(("top", None), ("top/out", "-> .."), ("top/out/escaped", b"x")),
        archive(("top", None), ("top/out", "-> .."), ("top/out", None), ("top/out/escaped", b"x")),
        archive(("top", None), ("top/file", b"x"), ("top/file/escaped", b"x")),
        archive(("top", None), ("top/file", b"x"), ("top/file", b"y")),
        archive(("top", None), ("top/file", b"x"), ("top/hard", tarfile.LNKTYPE[0])),
        archive(("top", None), ("top/pipe", tarfile.FIFOTYPE[0])),
        archive(("top", None), ("top/device", tarfile.CHRTYPE[0])),
        archive(("file", b"x"), ("escaped", b"x")),
        archive(("deep/file", b"x")),
        archive(),
        b"",
        b"no archive" * 1000,
        _REGULAR[:700],
        _REGULAR[:1100],
        _REGULAR[:1536],
        tarfile.TarInfo("x").tobuf().replace(b"0000000", b"9999999"),
    ],
    ids=lambda _: "",
)
def test_hostile_and_broken_archives_write_nothing(api: Api, tmp_path: Path, sent: bytes) -> None:
    (tmp_path / "target").mkdir()
    before = {path.name for path in tmp_path.iterdir()}
    done = api.ask("PUT", url(tmp_path / "target" / "new"), sent, TAR)
    assert (done.status, done.code) == (400, "bad_value")
    assert {path.name for path in tmp_path.iterdir()} == before
    assert not list((tmp_path / "target").iterdir())
    assert not Path("/escaped").exists()


def test_a_link_that_is_already_there_leads_nowhere(api: Api, tmp_path: Path) -> None:
    """In the middle of a tree, and where its top would be."""
    (tmp_path / "target").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "target" / "out").symlink_to("../elsewhere")
    for sent in (archive((".", None), ("out/escaped", b"x")), archive(("out", None), ("out/escaped", b"x"))):
        assert api.ask("PUT", url(tmp_path / "target"), sent, TAR).code == "bad_value"
    assert api.ask("PUT", url(tmp_path / "target"), archive(("out", b"x")), TAR).status == 200
    assert (tmp_path / "target" / "out").read_bytes() == b"x"  # the link itself is replaced
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_huge_header_is_refused_without_being_read(api: Api, tmp_path: Path) -> None:
    info = tarfile.TarInfo("pax")
    info.type, info.size = tarfile.XHDTYPE, 1 << 32
    done = api.ask("PUT", url(tmp_path / "new"), info.tobuf() + bytes(100_000), TAR)
    assert (done.status, done.code) == (400, "bad_value")


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", url("/missing"), {}, 404),
        ("GET", url("/"), {}, 400),
        ("GET", url("/dev/zero"), {}, 400),
        ("GET", url("/etc/hostname", "nowhere"), {}, 404),
        ("GET", "/api/v1/files", {}, 400),
        ("GET", url("/etc/hostname") + "&colour=red", {}, 400),
        ("GET", url("/etc/hostname"), {"accept": "text/html"}, 406),
        ("PUT", url("/missing/file"), {}, 404),
        ("PUT", url("/etc"), {}, 400),
        ("PUT", url("/sys/holdfast-test"), {}, 403),
        ("PUT", url("/tmp/x"), {"content-type": "text/html"}, 415),
        ("PUT", url("/tmp/x") + "&mode=4096", {}, 400),
        ("POST", url("/tmp/x"), {}, 405),
    ],
)
def test_refusals(api: Api, method: str, path: str, headers: dict[str, str], status: int) -> None:
    done = api.ask(method, path, b"x" if method == "PUT" else None, headers)
    assert done.status == status
    assert done.code


@pytest.mark.parametrize("how", ["length", "chunked"])
def test_a_client_that_disconnects_leaves_the_old_file(tcp: Api, tmp_path: Path, how: str) -> None:
    (tmp_path / "target").write_text("old")
    size = "Content-Length: 1000000" if how == "length" else "Transfer-Encoding: chunked"
    part = bytes(500_000) if how == "length" else b"7a120\r\n" + bytes(500_000) + b"\r\n"
    assert tcp.address is not None
    with socket.create_connection(tcp.address) as sock:
        head = (
            f"PUT {url(tmp_path / 'target')} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {tcp.token}\r\n{size}"
        )
        sock.sendall(f"{head}\r\n\r\n".encode() + part)
        eventually(lambda: any(one.stat().st_size for one in tmp_path.glob(".target.holdfast-cp-*")))
    eventually(lambda: not list(tmp_path.glob(".target.holdfast-cp-*")))
    assert (tmp_path / "target").read_text() == "old"


def test_a_daemon_that_stops_ends_copies(own: Api, tmp_path: Path) -> None:
    (tmp_path / "target").write_text("old")
    assert own.address is not None
    with socket.create_connection(own.address) as sock:
        head = f"PUT {url(tmp_path / 'target')} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {own.token}"
        sock.sendall(f"{head}\r\nContent-Length: 1000000\r\n\r\n".encode() + bytes(500_000))
        eventually(lambda: list(tmp_path.glob(".target.holdfast-cp-*")))
        own.client.stop_daemon()
        eventually(lambda: not list(tmp_path.glob(".target.holdfast-cp-*")))
    assert (tmp_path / "target").read_text() == "old"
