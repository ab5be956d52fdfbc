"""A start that is answered runs; one that is refused leaves nothing behind."""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast_keeper import bundle
from tests.keeper.driver import ONE, KeeperPair, Refused, named
from tests.support import eventually


@pytest.mark.parametrize(
    ("spec", "code"),
    [
        ({"argv": ["/nowhere/program"]}, "command_not_found"),
        ({"argv": ["no-such-program-at-all"]}, "command_not_found"),
        ({"argv": ["/etc/passwd"]}, "not_executable"),
        ({"argv": ["/"]}, "not_executable"),
        ({"cwd": "/nowhere"}, "failed_start"),
        ({"argv": ["/bin/true", "x" * (3 << 20)]}, "failed_start"),
        ({"argv": ["/bin/true", "a\0b"]}, "failed_start"),
    ],
)
@pytest.mark.parametrize("pty", [False, True])
def test_a_failed_start_leaves_nothing_behind(pair: KeeperPair, spec: dict[str, object], code: str, pty: bool) -> None:
    with pytest.raises(Refused) as refused:
        pair.start(ONE, "true", **{"pty": pty, **spec})
    assert refused.value.code == code
    assert os.listdir(f"{pair.place}/live") == os.listdir(f"{pair.place}/done") == []
    pair.start(ONE, "exit 5")
    assert pair.exit_of(ONE)["code"] == 5


def test_the_same_id_again_is_the_same_start(pair: KeeperPair) -> None:
    first = pair.start(ONE, "sleep 300")
    assert pair.start(ONE, "sleep 300")["born"] == first["born"]
    pair.stop(ONE, grace=0)
    assert pair.start(ONE, "sleep 300")["exit"]["signal"] == 9


CORPUS = [
    "echo a && echo b & wait; echo c",
    "cat <<'END'\na & b && c | d\nEND\n",
    "(exit 3); echo $?; ( cd /tmp && pwd ); false || echo ok",
    "echo 'single \"quoted\"' \"double 'quoted' $((1+2))\" # comment & more",
    'printf \'%s\\n\' "$0" "$#"; set -- a b; echo "$@"',
    "f() { return 9; }; f",
    "trap 'echo bye' EXIT; exit 6",
    "kill -TERM $$",
    "echo x > /dev/stdout; echo y > /dev/stderr; echo z >&2",
    "seq 1 5 | while read n; do echo $((n * n)); done | tail -n 2",
    "echo $'tab\\there' $'\\xe2\\x82\\xac'; printf '\\x00\\xff'",
    "exec 3>&1; echo via three >&3; exit 257",
    "command -v bash >/dev/null && type -t echo; umask",
    "if (",
]


@pytest.mark.parametrize("text", CORPUS)
def test_a_command_text_does_what_bash_does(pair: KeeperPair, text: str) -> None:
    plain = subprocess.run(
        ["/bin/bash", "-c", text], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd="/",
        umask=0o022, check=False,
    )  # fmt: skip
    pair.start(ONE, text)
    assert pair.complete(ONE) == plain.stdout
    ended = pair.exit_of(ONE)
    assert (ended["code"] if ended["signal"] is None else -ended["signal"]) == plain.returncode


@pytest.mark.parametrize("forks", ["server", "keeper"])
def test_a_command_starts_with_no_signal_blocked_or_ignored(tmp_path: Path, forks: str) -> None:
    pair = KeeperPair(tmp_path, HOLDFAST_NO_FORK_SERVER="" if forks == "server" else "1")
    try:
        pair.start(ONE, "", argv=["/bin/grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"])
        assert pair.complete(ONE).split()[1::2] == [b"0" * 16] * 2
    finally:
        pair.close()


def test_a_command_gets_its_spec_and_nothing_of_the_keeper(pair: KeeperPair, tmp_path: Path) -> None:
    show = "pwd; umask; echo $MINE; ls /proc/self/fd | wc -l; ulimit -n; ps -o pid=,sid=,pgid= $$ | tr -s ' '"
    report = pair.start(ONE, show, cwd=str(tmp_path), umask=0o027, env={**os.environ, "MINE": "x=y z"})
    pid = report["born"]["pid"]
    files = subprocess.run(["bash", "-c", "ulimit -n"], capture_output=True, text=True, check=True).stdout.strip()
    lines = pair.complete(ONE).decode().split("\n")
    assert lines[:3] == [str(tmp_path), "0027", "x=y z"]
    assert lines[3:5] == ["4", files]
    assert lines[5].split() == [str(pid)] * 3


def test_signals_that_the_keeper_ignores_are_not_ignored_by_commands(pair: KeeperPair) -> None:
    pair.start(ONE, ["grep", "-E", "^Sig(Ign|Blk)", "/proc/self/status"])
    masks = [int(line.split()[1], 16) for line in pair.complete(ONE).decode().splitlines()]
    assert masks == [0, 0]


def test_many_starts_leave_no_descriptor_and_no_zombie_behind(pair: KeeperPair) -> None:
    def at_rest() -> list[str] | None:
        """The descriptors of both, if none belongs to a command; None before. The anchor closes its duplicates some
        hundredths of a second after the keeper, and what the next start needs is made when the keeper is idle.
        """
        found = [*open_files(pair.keeper), *open_files(pair.anchor)]
        of_commands = [link for link in found if any(mark in link for mark in ("pidfd", ".fifo", "ptmx", "memfd"))]
        is_ready = [os.path.dirname(link) for link in of_commands] == [f"{pair.place}/{bundle.NEXT}"]
        return found if is_ready and len(children(pair)) == 1 else None  # the child is the fork server

    def round_of(name: str) -> None:
        for count in range(40):
            pair.start(named(f"{name}{count}"), "echo x", pty=count % 2 == 0, stdin=count % 3 == 0)
        for count in range(40):
            pair.complete(named(f"{name}{count}"))

    pair.start(ONE, "exit 0")
    pair.complete(ONE)
    before = eventually(at_rest)
    round_of("a")
    round_of("b")
    eventually(lambda: len(eventually(at_rest)) <= len(before))
    assert len(os.listdir(f"/proc/{children(pair)[0]}/fd")) == 4  # the three streams and its connection


def open_files(pid: int) -> list[str]:
    """What the descriptors of a process refer to. Those that are closed meanwhile are left out."""
    found = []
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found.append(os.readlink(link))
    return found


def children(pair: KeeperPair) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{pair.keeper}/task/{pair.keeper}/children").read_text().split()]


def fork_servers(pair: KeeperPair) -> list[int]:
    return [pid for pid in children(pair) if _name(pid) == "holdfast-fork\n"]


def fork_server(pair: KeeperPair) -> int:
    """A child has this name, too, until a moment after its exec."""
    eventually(lambda: len(fork_servers(pair)) == 1)
    return fork_servers(pair)[0]


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def test_a_fork_server_that_was_killed_is_replaced(pair: KeeperPair) -> None:
    for count in range(6):
        pair.start(named(count), f"exit {count}")
        os.kill(fork_server(pair), signal.SIGKILL)
    assert [pair.exit_of(named(count))["code"] for count in range(6)] == list(range(6))


def test_requests_of_a_fork_server_that_was_killed_are_repeated(pair: KeeperPair) -> None:
    pair.start(ONE, "exit 0")
    server = fork_server(pair)
    os.kill(server, signal.SIGSTOP)
    requests = [pair.begin(named(f"r{count}"), f"exit {count}") for count in range(4)]
    os.kill(server, signal.SIGKILL)
    for count, request in enumerate(requests):
        assert pair.control.answer(request)["born"]["run"] == 0
        assert pair.exit_of(named(f"r{count}"))["code"] == count


def test_a_burst_of_starts_waits_for_a_fork_server_that_is_behind(pair: KeeperPair) -> None:
    pair.start(ONE, "exit 0")
    server = fork_server(pair)
    os.kill(server, signal.SIGSTOP)
    large = {"PATH": os.environ["PATH"], "LARGE": "x" * 20_000}
    requests = [pair.begin(named(f"m{count}"), "exit 3", env=large) for count in range(60)]
    os.kill(server, signal.SIGCONT)
    for request in requests:
        pair.control.answer(request)
    assert {pair.exit_of(named(f"m{count}"))["code"] for count in range(60)} == {3}


def test_a_fork_server_that_hangs_delays_no_later_start(pair: KeeperPair) -> None:
    pair.start(ONE, "exit 0")
    server = fork_server(pair)
    os.kill(server, signal.SIGSTOP)
    delayed = pair.begin(named("a"), "exit 5")
    others = iter(range(10_000))

    def another_server() -> bool:
        pair.begin(named(f"b{next(others)}"), "exit 0")
        return len(fork_servers(pair)) > 1

    eventually(another_server)
    pair.start(named("c"), "exit 6")
    assert pair.exit_of(named("c"))["code"] == 6
    os.kill(server, signal.SIGCONT)
    pair.control.answer(delayed)
    assert pair.exit_of(named("a"))["code"] == 5
    eventually(lambda: len(fork_servers(pair)) == 1)  # the one that hung is not needed any more


def test_a_long_command_and_environment_arrive_byte_for_byte(pair: KeeperPair) -> None:
    program = "import os, sys; from hashlib import sha256 as h; d = os.environb[b'ODD.NAME']; "
    program += "print(h(sys.argv[1].encode()).hexdigest(), h(d).hexdigest())"
    argv = [sys.executable, "-I", "-S", "-c", program, "x" * 120_000]
    env = {"PATH": os.environ["PATH"], "ODD.NAME": "\udcff\udc80 ä" * 9_000, **{f"V{n}": "y" * 90 for n in range(2000)}}
    pair.start(ONE, argv, env=env)
    hashes = [hashlib.sha256(data).hexdigest() for data in (b"x" * 120_000, os.fsencode(env["ODD.NAME"]))]
    assert pair.complete(ONE).decode().split() == hashes


def test_without_the_fork_server_the_keeper_forks(tmp_path: Path) -> None:
    pair = KeeperPair(tmp_path, HOLDFAST_NO_FORK_SERVER="1")
    try:
        for count, pty in enumerate((False, True)):
            pair.start(named(count), "read x; echo $x; cat /proc/self/cgroup; exit 7", pty=pty, stdin=True)
            pair.write(named(count), b"hello\n")
            assert pair.exit_of(named(count))["code"] == 7
            output = pair.complete(named(count)).decode()
            assert "hello" in output
            group = pair.control.ask("report", id=named(count))["born"]["group"]
            assert group is None or group.rpartition("/")[2] in output
        with pytest.raises(Refused, match="command not found"):
            pair.start(named("no"), ["no-such-program"])
        assert fork_servers(pair) == []
    finally:
        pair.close()
