"""What a process in a container can do to the directory of its place, which it can write to."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from holdfast.logs.reader import Log
from holdfast.places.local import CONTROL, connect_socket
from tests.contracts.staged import StagedPlace, local


def test_links_to_files_of_this_machine_are_not_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text('{"meta": "secret"}')
    staged = StagedPlace(local, tmp_path / "home")
    try:
        process = staged.start("sh", "-c", "echo fine; read line", stdin=True)
        staged.until(lambda: staged.output(process))
        bundle = Path(staged.place.directory, "live", process.id)
        segment = next(bundle.glob("out.0*"))
        segment.rename(bundle / "aside")
        segment.symlink_to(secret)
        with Log(staged.place.directory, process.id, "out") as log, pytest.raises(OSError):
            log.read(0)
        segment.unlink()
        os.mkfifo(segment)
        with Log(staged.place.directory, process.id, "out") as log, pytest.raises(OSError):
            log.read(0)
        (bundle / "spec.json").unlink()
        (bundle / "spec.json").symlink_to(secret)
        with pytest.raises(OSError):
            staged.place.spec(process.id)
        segment.unlink()
        (bundle / "aside").rename(segment)
        staged.stop(process)
    finally:
        staged.close()


def test_a_directory_that_is_a_link_is_no_bundle(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere" / "proc_0123456789ab"
    elsewhere.mkdir(parents=True)
    (elsewhere / "out.00000000000000000000").write_text("secret")
    place = tmp_path / "place"
    place.mkdir()
    (place / "live").symlink_to(elsewhere.parent)
    with Log(str(place), "proc_0123456789ab", "out") as log:
        assert log.read(0).data == b""
    (place / "live").unlink()
    (place / "live").mkdir()
    (place / "live" / "proc_0123456789ab").symlink_to(elsewhere)
    with Log(str(place), "proc_0123456789ab", "out") as log:
        assert log.read(0).data == b""


def test_a_socket_that_is_a_link_is_not_connected_to(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "other.sock"))
        server.listen()
        (place / CONTROL).symlink_to(tmp_path / "other.sock")
        with pytest.raises(OSError):
            connect_socket(str(place), CONTROL, socket.SOCK_STREAM)
