"""Copies of both clients, on the socket and over HTTP."""

from __future__ import annotations

import asyncio
import hashlib
import io
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast
from holdfast import Client, CommandDenied, HoldfastError, NotFound
from tests.support import eventually

_MEBI = 1 << 20


@pytest.fixture
def hf(instance: Path) -> Iterator[Client]:
    with holdfast.connect(session="copies") as client:
        yield client
        client.kill(session="copies", grace=0.2)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    tree = tmp_path / "tree"
    (tree / "sub").mkdir(parents=True)
    (tree / "sub" / "größe\n").write_bytes(os.urandom(3 * _MEBI))
    (tree / "empty").write_bytes(b"")
    (tree / "link").symlink_to("sub")
    return tree


def names(top: Path) -> dict[str, str]:
    files = [path for path in top.rglob("*") if path.is_file() and not path.is_symlink()]
    return {str(path.relative_to(top)): hashlib.md5(path.read_bytes()).hexdigest() for path in files}


def test_a_tree_there_and_back(hf: Client, tree: Path, tmp_path: Path) -> None:
    place = hf.run("exec sleep 1000", cwd=tmp_path)
    moved: list[int] = []
    reply = hf.copy_to(place, tree, "there", on_moved=moved.append)
    assert reply == {"path": f"{tmp_path}/there", "files": 3, "bytes": 3 * _MEBI}
    assert moved == sorted(moved)
    assert moved[-1] > 3 * _MEBI
    assert hf.copy_from(place, "there", tmp_path / "back")["files"] == 3
    assert names(tree) == names(tmp_path / "there") == names(tmp_path / "back")
    assert os.readlink(tmp_path / "back" / "link") == "sub"


def test_open_files(hf: Client, tmp_path: Path) -> None:
    data = bytes(range(256)) * 9000
    hf.copy_to("local", io.BytesIO(data), str(tmp_path / "file"))
    into = io.BytesIO()
    assert hf.copy_from("local", str(tmp_path / "file"), into) == {"path": None, "files": 1, "bytes": len(data)}
    assert into.getvalue() == data
    with (tmp_path / "raw").open("wb", buffering=0) as raw:
        hf.copy_from("local", str(tmp_path / "file"), raw)
    assert (tmp_path / "raw").read_bytes() == data


def test_the_async_client(instance: Path, tree: Path, tmp_path: Path) -> None:
    async def copy() -> bytes:
        async with holdfast.aconnect(session="copies") as hf:
            place = await hf.run("exec sleep 1000", cwd=tmp_path)
            results = await asyncio.gather(*(hf.copy_to(place, tree, f"there{at}") for at in range(3)))
            assert [one["files"] for one in results] == [3, 3, 3]
            await hf.copy_from(place, "there1", tmp_path / "back")
            into = io.BytesIO()
            await hf.copy_from(place.id, "there2/sub/größe\n", into)
            with pytest.raises(NotFound):
                await hf.copy_from(place, "missing", tmp_path / "x")
            with pytest.raises(NotFound):
                await hf.copy_to(place, tree, "missing/deeper")
            await hf.kill(place, grace=0.2)
            return into.getvalue()

    assert asyncio.run(copy()) == (tree / "sub" / "größe\n").read_bytes()
    assert names(tree) == names(tmp_path / "back")


def test_a_cancelled_copy_leaves_the_target(instance: Path, tmp_path: Path) -> None:
    """Both ways: from a file that never ends, and into one."""
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(1 << 40)
    target = tmp_path / "target"
    target.write_text("old")

    def temporary() -> list[Path]:
        return list(tmp_path.glob(".target.holdfast-cp-*"))

    async def copy() -> None:
        async with holdfast.aconnect(session="copies") as hf:
            for copying in (
                hf.copy_to("local", tmp_path / "huge", str(target)),
                hf.copy_from("local", str(tmp_path / "huge"), target),
            ):
                task = asyncio.ensure_future(copying)
                await asyncio.to_thread(eventually, temporary)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                await asyncio.to_thread(eventually, lambda: not temporary())

    asyncio.run(copy())
    assert target.read_text() == "old"


def test_bad_arguments(hf: Client, tmp_path: Path) -> None:
    for place, source, path in (
        ("", tmp_path, "x"),
        ("nowhere", tmp_path, "x"),
        ("local", tmp_path / "missing", "x"),
        ("local", tmp_path, ""),
        ("local", tmp_path, "a\0b"),
        ("local", tmp_path, 7),
        ("x" * 5000, tmp_path, "x"),
    ):
        with pytest.raises(HoldfastError):
            hf.copy_to(place, source, path)  # type: ignore[arg-type]
    assert hf.status()["pid"]


def test_a_source_that_fails_leaves_the_target(hf: Client, tmp_path: Path) -> None:
    class Broken(io.BytesIO):
        def read1(self, size: int | None = -1, /) -> bytes:
            if self.tell() == 0:
                return super().read1(5)
            raise ValueError("broken")

    (tmp_path / "target").write_text("old")
    with pytest.raises(ValueError, match="broken"):
        hf.copy_to("local", Broken(b"new content"), str(tmp_path / "target"))
    eventually(lambda: not list(tmp_path.glob(".target.holdfast-cp-*")))
    assert (tmp_path / "target").read_text() == "old"


def test_a_strict_client_copies_where_its_own_processes_run(hf: Client, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("f")
    other = hf.run("exec sleep 1000", cwd=tmp_path, task="theirs")
    with holdfast.connect(session="strict-copies", strict=True) as strict:
        for place in (other.id, "task/theirs", "local"):
            with pytest.raises(NotFound):
                strict.copy_from(place, str(tmp_path / "file"), tmp_path / "back")
            with pytest.raises(NotFound):
                strict.copy_to(place, tmp_path / "file", str(tmp_path / "back"))
        own = strict.run("exec sleep 1000", cwd=tmp_path, task="mine")
        for place in (own.id, "task/mine", "local"):
            strict.copy_from(place, str(tmp_path / "file"), tmp_path / "back")
            strict.copy_to(place, tmp_path / "file", str(tmp_path / "back"))
        strict.kill(own, grace=0.1)
    assert (tmp_path / "back").read_text() == "f"


@pytest.mark.parametrize("path", ["/etc/passwd", "~/.bashrc", "~/.ssh/authorized_keys", "/etc/../etc/passwd"])
def test_a_strict_client_writes_nothing_that_needs_an_approval_as_a_command(
    instance: Path, tmp_path: Path, path: str
) -> None:
    (tmp_path / "file").write_text("f")
    with holdfast.connect(session="strict-copies", strict=True) as strict:
        own = strict.run("exec sleep 1000", cwd=tmp_path)
        with pytest.raises(CommandDenied):
            strict.copy_to(own, tmp_path / "file", path)
        with pytest.raises(CommandDenied):
            strict.copy_to(own, io.BytesIO(b"f"), path)
        strict.kill(own, grace=0.1)


def test_a_strict_client_does_not_hide_the_name_of_a_file_in_the_archive(instance: Path, tmp_path: Path) -> None:
    (tmp_path / ".bashrc").write_text("f")
    (tmp_path / "fine").write_text("f")
    with holdfast.connect(session="strict-copies", strict=True) as strict:
        own = strict.run("exec sleep 1000", cwd=tmp_path)
        with pytest.raises(CommandDenied):
            strict.copy_to(own, tmp_path / ".bashrc", "~")
        strict.copy_to(own, tmp_path / "fine", "~")
        strict.kill(own, grace=0.1)


def test_a_strict_client_reads_no_secrets(instance: Path, tmp_path: Path) -> None:
    (Path.home() / ".ssh").mkdir(exist_ok=True)
    (Path.home() / ".ssh" / "id_rsa").write_text("key")
    with holdfast.connect(session="strict-copies", strict=True) as strict:
        own = strict.run("exec sleep 1000", cwd=tmp_path)
        for path in ("~/.ssh/id_rsa", "~/.ssh", f"{Path.home()}/.ssh/id_rsa"):
            with pytest.raises(CommandDenied):
                strict.copy_from(own, path, tmp_path / "key")
        strict.kill(own, grace=0.1)
    assert not (tmp_path / "key").exists()
