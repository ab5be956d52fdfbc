"""`holdfast cp`."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast
from tests.cli.calling import Terminal, as_json, out, refusal, start
from tests.support import eventually, fill_disk, is_alive, read_only, run_cli, small_disk_at

_MEBI = 1 << 20
# The peak memory of a command. It is started by a small process: the kernel counts what the parent had at the fork.
_PEAK_MEMORY = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of the caller; processes run in others."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return work


@pytest.fixture
def there(tmp_path: Path, work: Path) -> Path:
    """The directory of a process called `web`."""
    there = tmp_path / "there"
    there.mkdir()
    start("--name", "web", "--cwd", str(there), "--task", "build", "--", "sleep", "1000")
    return there


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def temporary(directory: Path) -> list[Path]:
    return list(directory.glob(".*.holdfast-cp-*"))


def upload(target: str) -> subprocess.Popen[bytes]:
    """A copy that has sent a part and waits for more."""
    cp = [sys.executable, "-m", "holdfast", "cp", "-", target]
    copy = subprocess.Popen(cp, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    assert copy.stdin is not None
    copy.stdin.write(b"new" * _MEBI)
    copy.stdin.flush()
    return copy


def until_half(directory: Path) -> Path:
    """Until a part of a copy is in its temporary file."""
    return eventually(lambda: next((one for one in temporary(directory) if one.stat().st_size), None))


def file_programs(instance: Path) -> list[int]:
    """The programs that read and write files for this instance: children of its daemon."""
    with holdfast.connect() as client:
        children = Path(f"/proc/{client.status()['pid']}/task/{client.status()['pid']}/children").read_text().split()
    return [int(pid) for pid in children if Path(f"/proc/{pid}/cmdline").read_bytes().endswith(b"\0files\0")]


def test_100_mb_both_ways_with_little_memory(work: Path, there: Path) -> None:
    source, back = work / "big", work / "back"
    with source.open("wb") as file:
        for _ in range(100):
            file.write(os.urandom(_MEBI))
    daemon = Path(f"/proc/{as_json('daemon', 'status', '--json')['pid']}/status")
    before = peak_memory(daemon.read_text())
    for words in (("big", "web:big"), ("web:big", "back")):
        copy = [sys.executable, "-m", "holdfast", "cp", *words]
        used = subprocess.run([sys.executable, "-c", _PEAK_MEMORY, *copy], stdout=subprocess.PIPE, check=True).stdout
        assert int(used) < 80_000  # KiB
    assert digest(source) == digest(there / "big") == digest(back)
    assert peak_memory(daemon.read_text()) - before < 40_000
    assert not temporary(there) + temporary(work)


def peak_memory(status: str) -> int:
    """KiB."""
    return int(status.partition("VmHWM:")[2].split()[0])


def test_modes_and_times_are_kept(work: Path, there: Path) -> None:
    (work / "tool").write_text("#!/bin/sh\n")
    (work / "tool").chmod(0o4751)
    os.utime(work / "tool", ns=(1, 1_234_567_890_123_456_789))
    out("cp", "tool", "web:")
    out("cp", "web:tool", "back")
    for copy in (there / "tool", work / "back"):
        assert copy.stat().st_mode & 0o7777 == 0o751
        assert copy.stat().st_mtime_ns == 1_234_567_890_123_456_789


def make_tree(top: Path) -> None:
    (top / "sub" / "empty").mkdir(parents=True)
    (top / "a\nb").write_bytes(b"newline")
    (top / "\x1b[31mred").write_bytes(b"escape")
    Path(os.fsdecode(os.fsencode(top) + b"/\xff")).write_bytes(b"no UTF-8")
    (top / ("n" * 255)).write_bytes(b"long")
    (top / "sub" / "file").write_bytes(bytes(range(256)) * 999)
    (top / "sub" / "link").symlink_to("../a\nb")
    (top / "dangling").symlink_to("/nowhere")
    (top / "sub" / "empty").chmod(0o500)
    os.utime(top / "sub", ns=(1, 10**18))


def tree_of(top: Path) -> dict[str, object]:
    """What a directory holds, with modes, times and content."""
    found: dict[str, object] = {}
    for path in sorted(top.rglob("*")):
        about = path.lstat()
        content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
        found[str(path.relative_to(top))] = (oct(about.st_mode), about.st_mtime_ns, content)
    return found


def test_a_directory_with_links_and_names_of_any_bytes(work: Path, there: Path) -> None:
    make_tree(work / "tree")
    out("cp", "tree", "web:copy")
    out("cp", "web:copy", "back")
    assert len(tree_of(work / "tree")) == 9
    assert tree_of(work / "tree") == tree_of(there / "copy") == tree_of(work / "back")
    assert not temporary(there) + temporary(work)


def test_where_a_directory_goes(work: Path, there: Path) -> None:
    (work / "tree").mkdir()
    (work / "tree" / "one").write_text("1")
    (there / "dir").mkdir()
    (there / "dir" / "kept").write_text("k")
    out("cp", "tree", "web:dir")  # into a directory that exists
    out("cp", "tree/.", "web:dir")  # its content
    out("cp", "tree", "web:new")  # a new one
    out("cp", "tree/", "web:dir/")  # over what is there
    names = {str(path.relative_to(there)) for path in there.rglob("*") if path.is_file()}
    assert names == {"dir/kept", "dir/tree/one", "dir/one", "new/one"}
    (there / "file").write_text("f")
    assert "is not a directory" in refusal("cp", "tree", "web:file")
    assert "there is no such directory" in refusal("cp", "tree/one", "web:missing/")
    assert "there is no such directory" in refusal("cp", "tree", "web:missing/deep")
    assert "not a directory" in refusal("cp", "tree/one/", "web:")
    (there / "one").mkdir()
    assert "one is a directory, and is not replaced" in refusal("cp", "tree/one", "web:")


def test_where_a_file_goes(work: Path, there: Path) -> None:
    (work / "one").write_text("1")
    (there / "dir").mkdir()
    (there / "real").write_text("r")
    (there / "real").chmod(0o600)
    (there / "link").symlink_to("real")
    out("cp", "one", "web:dir")
    out("cp", "one", "web:dir/two")
    out("cp", "one", "web:link")  # the file that it points to is replaced
    assert ((there / "dir" / "one").read_text(), (there / "dir" / "two").read_text()) == ("1", "1")
    assert ((there / "link").is_symlink(), (there / "real").read_text()) == (True, "1")
    out("cp", "web:dir/two", "three")
    assert (work / "three").read_text() == "1"
    out("cp", "local:one", "./with:colon")
    out("cp", "./with:colon", "task/build:" + str(there / "four"))
    assert ((work / "with:colon").read_text(), (there / "four").read_text()) == ("1", "1")


def test_a_symbolic_link_is_copied_as_one_unless_followed(work: Path, there: Path) -> None:
    (there / "file").write_text("f")
    (there / "link").symlink_to("file")
    out("cp", "web:link", "one")
    out("cp", "-L", "web:link", "two")
    assert os.readlink(work / "one") == "file"
    assert ((work / "two").is_symlink(), (work / "two").read_text()) == (False, "f")


def test_stdin_and_stdout_byte_for_byte(work: Path, there: Path) -> None:
    data = bytes(range(256)) * 5000
    assert run_cli("cp", "-", "web:data", input=data).returncode == 0
    assert (there / "data").stat().st_mode & 0o777 == 0o644
    assert run_cli("cp", "web:data", "-").stdout == data
    (there / "data").chmod(0o640)
    assert run_cli("cp", "-", "web:data", input=b"").returncode == 0
    assert ((there / "data").read_bytes(), (there / "data").stat().st_mode & 0o777) == (b"", 0o640)
    assert "is a directory" in refusal("cp", "web:.", "-")
    assert "is a directory" in refusal("cp", "-", "web:.")
    assert run_cli("cp", "web:/proc/self/status", "-").stdout.startswith(b"Name:")
    out("cp", "local:/proc/version", "version")
    assert (work / "version").read_text() == Path("/proc/version").read_text()


def test_a_reader_that_goes_away_is_no_traceback(there: Path) -> None:
    (there / "data").write_bytes(bytes(4 * _MEBI))
    cp = f"{sys.executable} -m holdfast cp web:data -"
    done = subprocess.run(["bash", "-c", f"{cp} | head -c 1"], capture_output=True, check=False)
    assert b"Traceback" not in done.stderr


def test_json(work: Path, there: Path) -> None:
    (work / "one").write_text("12")
    assert as_json("cp", "--json", "one", "web:") == {"path": f"{there}/one", "files": 1, "bytes": 2}
    assert as_json("cp", "--json", "web:one", "back") == {"path": "back", "files": 1, "bytes": 2}


def test_other_kinds_of_files_are_refused_by_name_before_anything_is_copied(work: Path, there: Path) -> None:
    make_tree(work / "tree")
    os.mkfifo(work / "tree" / "zz-pipe")
    assert "tree/zz-pipe is a FIFO" in refusal("cp", "tree", "web:copy")
    assert "/dev/null is a device" in refusal("cp", "local:/dev/null", "copy")
    (work / "one").write_text("1")
    assert "/dev/null is a device" in refusal("cp", "one", "local:/dev/null")
    os.mkfifo(there / "pipe")
    assert "pipe is a FIFO" in refusal("cp", "one", "web:pipe")
    assert "pipe is a FIFO" in refusal("cp", "web:.", "copy")
    assert sorted(path.name for path in there.iterdir()) == ["pipe"]
    assert not (work / "copy").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("a", "b"), "one of SRC and DST must be PLACE:PATH"),
        (("local:a", "local:b"), "not both"),
        (("a",), "DST is missing"),
        (("--json", "local:a", "-"), "no JSON"),
        (("nowhere:a", "b"), "there is no place and no process 'nowhere'"),
        (("task/none:a", "b"), "no process of task none"),
        (("missing", "local:b"), "missing: there is no such file or directory"),
        (("local:missing", "b"), "missing: there is no such file or directory"),
        (("local:x\x1b[31m", "b"), "x\\x1b[31m: there is no such file"),
        (("local:/etc/hostname", "missing/b"), "missing: there is no such directory"),
        (("/etc/hostname", "local:" + "n" * 300), "the name is too long"),
        (("/etc/hostname", "local:" + "n" * 5000), "the limit is 4096"),
    ],
)
def test_refusals(work: Path, words: tuple[str, ...], said: str) -> None:
    assert said in refusal("cp", *words)


def test_a_disk_that_is_full_or_read_only(work: Path, there: Path) -> None:
    (work / "one").write_text("1" * _MEBI)
    (there / "disk").mkdir()
    with small_disk_at(there / "disk", "2m"):
        (there / "disk" / "one").write_text("old")
        fill_disk(there / "disk")
        assert "disk/one: the disk is full" in refusal("cp", "one", "web:disk/one")
        assert (there / "disk" / "one").read_text() == "old"
        assert not temporary(there / "disk")
        assert "disk/new: the disk is full" in refusal("cp", "one", f"local:{there}/disk/new")
    with read_only(str(there)):
        assert "the file system is read-only" in refusal("cp", "one", "web:one")


def test_permissions(work: Path) -> None:
    (work / "one").write_text("1")
    assert "permission denied" in refusal("cp", "one", "local:/sys/holdfast-test")
    assert "permission denied" in refusal("cp", "local:/etc/hostname", "/sys/holdfast-test")


def test_a_killed_client_leaves_the_old_file(work: Path, there: Path) -> None:
    (there / "target").write_text("old")
    with upload("web:target") as copy:
        until_half(there)
        copy.kill()
    eventually(lambda: not temporary(there))
    assert (there / "target").read_text() == "old"


def test_a_killed_daemon_leaves_the_old_file(work: Path, there: Path) -> None:
    (there / "target").write_text("old")
    with upload("web:target") as copy:
        until_half(there)
        os.kill(as_json("daemon", "status", "--json")["pid"], signal.SIGKILL)
        assert copy.wait(30) == 125
        assert copy.stderr is not None
        said = copy.stderr.read().decode()
    assert said.count("\n") == 1
    assert "copy it again" in said
    eventually(lambda: not temporary(there))
    assert (there / "target").read_text() == "old"


def test_a_killed_program_leaves_the_old_file_and_the_next_copy_cleans_up(
    instance: Path, work: Path, there: Path
) -> None:
    (there / "target").write_text("old")
    with upload("web:target") as copy, upload("web:other") as other:
        eventually(lambda: len(temporary(there)) == 2 and all(one.stat().st_size for one in temporary(there)))
        for pid in file_programs(instance):
            if any("target" in os.readlink(fd) for fd in Path(f"/proc/{pid}/fd").iterdir()):
                os.kill(pid, signal.SIGKILL)
        assert copy.wait(30) == 125
        assert copy.stderr is not None
        said = copy.stderr.read().decode()
        assert "was cut off" in said
        assert said.count("\n") == 1
        assert (there / "target").read_text() == "old"
        assert len(temporary(there)) == 2
        (work / "one").write_text("new")
        out("cp", "one", "web:target")  # removes what is left of the first, and nothing of the one under way
        assert [path.name.split(".holdfast")[0] for path in temporary(there)] == [".other"]
        assert other.stdin is not None
        other.stdin.close()
        assert other.wait(30) == 0
    assert ((there / "target").read_text(), (there / "other").stat().st_size) == ("new", 3 * _MEBI)


def test_a_download_that_is_killed_leaves_the_old_file(work: Path, there: Path) -> None:
    with (there / "huge").open("wb") as file:
        file.truncate(1 << 40)
    (work / "target").write_text("old")
    with subprocess.Popen([sys.executable, "-m", "holdfast", "cp", "web:huge", "target"]) as copy:
        until_half(work)
        copy.kill()
    assert (work / "target").read_text() == "old"
    out("cp", "local:/etc/hostname", "target")
    assert not temporary(work)
    assert (work / "target").read_text() == Path("/etc/hostname").read_text()


def test_a_new_directory_appears_when_it_is_complete(work: Path, there: Path) -> None:
    (work / "tree").mkdir()
    (work / "tree" / "a").write_text("a")
    with (work / "tree" / "huge").open("wb") as file:
        file.truncate(1 << 40)
    with subprocess.Popen([sys.executable, "-m", "holdfast", "cp", "tree", "web:copy"]) as copy:
        until_half(there)
        assert not (there / "copy").exists()
        copy.send_signal(signal.SIGINT)
        assert copy.wait(30) != 0
    eventually(lambda: not temporary(there))
    assert not (there / "copy").exists()


def test_no_program_is_left_when_a_copy_is_given_up(instance: Path, work: Path, there: Path) -> None:
    with (there / "huge").open("wb") as file:
        file.truncate(1 << 40)
    with subprocess.Popen([sys.executable, "-m", "holdfast", "cp", "web:huge", "-"], stdout=subprocess.PIPE) as copy:
        (pid,) = eventually(lambda: file_programs(instance))
        copy.kill()
    eventually(lambda: not is_alive(pid))


def test_progress_on_a_terminal(work: Path, there: Path) -> None:
    os.mkfifo(work / "pipe")
    cp = f"exec {sys.executable} -m holdfast cp - web:target < pipe"
    with Terminal(whole=["sh", "-c", cp]) as terminal, (work / "pipe").open("wb") as pipe:
        pipe.write(bytes(3 * _MEBI))
        pipe.flush()
        terminal.see("the copy: 3")
        pipe.close()
        assert terminal.end() == 0
    assert (there / "target").stat().st_size == 3 * _MEBI


def test_a_command_that_was_checked_copies_what_it_may_and_no_more(work: Path, there: Path) -> None:
    """It is bound to its session: a copy into another place, or of what needs an approval, is refused."""
    (work / "one").write_text("1")
    cp = f"{sys.executable} -m holdfast cp"
    out("run", "--session", "agent", "--gate", "-c", f"{cp} one local:two && {cp} local:two three")
    assert (work / "three").read_text() == "1"
    for words, said in (
        ("one local:.bashrc", "is not allowed"),
        ("one web:", "there is no place and no process 'web'"),
    ):
        done = run_cli("run", "--session", "agent", "--gate", "--cwd", os.environ["HOME"], "-c", f"{cp} {work}/{words}")
        assert done.returncode == 125, done
        assert said in done.stdout.decode()
    assert not list(there.iterdir())


def test_a_sandbox_shares_its_directory_and_has_a_tmp_of_its_own(work: Path, there: Path) -> None:
    start("--name", "boxed", "--cwd", str(there), "--sandbox", "--", "sleep", "1000")
    (work / "one").write_text("1")
    out("cp", "one", "boxed:")
    assert out("exec", "boxed", "--", "cat", "one") == "1"
    assert "runs in a sandbox with /tmp of its own" in refusal("cp", "one", "boxed:/tmp/two")
    assert "runs in a sandbox with /tmp of its own" in refusal("cp", "boxed:/tmp/../tmp", "two")


def test_docker_users_and_typos_find_it() -> None:
    assert "did you mean cp?" in refusal("copy")
    assert "did you mean cp?" in refusal("scp")


def test_a_copy_is_in_the_audit_log(work: Path, there: Path) -> None:
    (work / "one").write_text("1")
    out("cp", "one", "web:")
    path = f"{there}/one"
    noted = eventually(lambda: next((one for one in as_json("audit", "--json") if one.get("path") == path), None))
    assert (noted["what"], noted["place"]) == ("file.put", "local")
