"""Notices and files hold no secrets; the owner can read the raw output."""

from __future__ import annotations

import os
import signal
import stat
from pathlib import Path

import pytest

import holdfast
from holdfast.errors import BadValue
from holdfast.secrets.redact import MASK
from tests.secrets.canaries import canaries, needles
from tests.support import content_of, eventually, files_below, run_cli

ENV = {name: value for name, value in canaries("shown").items() if name != "HOLDFAST_URL"}
#: Prints all of them: as a listing, alone, and broken by escape sequences and carriage returns.
PRINT_ALL = r"""
import os, sys
for name in os.environ["NAMES"].split():
    value = os.environ[name]
    middle = len(value) // 2
    sys.stdout.write(f"{name}={value}\n{value}\n{value[:middle]}\x1b[31m{value[middle:]}\n{value[:middle]}\r{value[middle:]}\n")
    sys.stdout.flush()
"""


@pytest.fixture
def host(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, value in ENV.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("NAMES", "")
    return home


def seen_in(data: bytes) -> list[str]:
    return [name for name, needle in needles(ENV).items() if needle in data]


def files_with_secrets(home: Path) -> dict[str, list[str]]:
    """All but what commands wrote themselves, and what has to be known to run a command again."""
    found = {}
    for path in files_below(home):
        is_theirs = path.name.startswith(("out.", "err.")) or path.name == "spec.json"
        if not is_theirs and (names := seen_in(content_of(path))):
            found[str(path.relative_to(home))] = names
    return found


def print_all(client: holdfast.Client, names: list[str], **options: object) -> holdfast.Process:
    granted = {"NAMES": " ".join(names), **{name: ENV[name] for name in names}}
    return client.run(["python3", "-c", PRINT_ALL], env=granted, clean=True, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ENV)
def test_a_completion_notice_is_masked_and_the_raw_log_is_not(shared: holdfast.Client, name: str) -> None:
    process = print_all(shared, [name])
    (notice,) = shared.inbox(wait=10)
    needle = needles(ENV)[name]
    assert notice.process == process.id
    assert MASK in notice.data["output"]
    assert needle not in notice.text.encode()
    assert needle not in notice.data["output"].encode()
    assert needle in shared.logs(process, raw=True).data
    (raw,) = shared.inbox(raw=True)
    assert needle in raw.data["output"].encode()
    shared.ack(notice)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]
    """A client of an instance for all of them."""
    from tests.support import end_instance

    home = tmp_path_factory.mktemp("shared") / "home"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOLDFAST_HOME", str(home))
        for name, value in ENV.items():
            patch.setenv(name, value)
        with holdfast.connect("a") as client:
            yield client
        end_instance(str(home))


def test_no_file_of_holdfast_but_the_log_holds_a_printed_secret(host: Path) -> None:
    with holdfast.connect("a") as client:
        ended = print_all(client, list(ENV))
        client.inbox(wait=10)
        process = client.run(
            ["python3", "-c", f"{PRINT_ALL}\nimport time; time.sleep(1000)"],
            env={"NAMES": " ".join(ENV), **ENV},
            clean=True,
            check_interval=1,
            pty=True,
        )
        progress = eventually(lambda: [one for one in client.inbox(wait=5) if one.kind == "progress"])[0]
        assert seen_in(progress.text.encode()) == []
        assert seen_in(client.logs(ended, raw=True).data) == list(ENV)
        client.kill(process)
        client.remove(ended)
        kept = [one for one in client.inbox(raw=True) if one.process == ended.id]
        assert kept
        assert seen_in(kept[0].data["output"].encode()) == []
        events = list(client.events(follow=False))
        assert events and seen_in(str(events).encode()) == []
    assert {name for name in files_with_secrets(host) if not name.startswith("screens/")} == set()
    run_cli("daemon", "stop")
    assert {name for name in files_with_secrets(host) if not name.startswith("screens/")} == set()


def test_the_secrets_of_a_command_are_known_after_a_crash(host: Path) -> None:
    value = "an-unusual.phrase-of-mine"
    with holdfast.connect("a") as client:
        client.run("read line; echo $HIDDEN_PASS", env={"HIDDEN_PASS": value}, clean=True, stdin=True, name="reader")
        os.kill(client.status()["pid"], signal.SIGKILL)
        eventually(lambda: client.inspect("reader").status == "running")
        client.send("reader", "go")
        (notice,) = client.inbox(wait=20)
        assert notice.data["output"] == MASK


def test_redaction_can_be_switched_off(host: Path) -> None:
    host.mkdir(mode=0o700)
    (host / "config.toml").write_text("redact = false\n")
    with holdfast.connect("a") as client:
        print_all(client, ["PGPASSWORD"])
        (notice,) = client.inbox(wait=10)
        assert ENV["PGPASSWORD"] in notice.data["output"]
        assert client.redact(ENV["PGPASSWORD"]) == [ENV["PGPASSWORD"]]


def test_any_text_can_be_masked(shared: holdfast.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    shared.run("true", clean=True)
    texts = [f"x {value} y" for value in ENV.values()]
    output = shared.redact(*texts, "harmless")
    assert seen_in("".join(output).encode()) == []
    assert output[-1] == "harmless"
    assert shared.redact() == []
    with pytest.raises(BadValue):
        shared.redact(*["x"] * 10_001)


def test_any_text_can_be_masked_over_http(host: Path) -> None:
    with holdfast.connect("a") as client:
        client.run("true", clean=True)
        url = client.http("open", "127.0.0.1:0")["url"]
        token = (host / "token").read_text().strip()
        with holdfast.connect("a", url=url, token=token) as remote:
            assert remote.redact(f"pw {ENV['PGPASSWORD']}", f"our own: {token}") == [f"pw {MASK}", f"our own: {MASK}"]
            process = remote.run(["env"], clean=True)
            remote.wait_for([process.id])
            assert seen_in(remote.logs(process, raw=True).data) == []


def test_a_bound_session_cannot_guess_the_secrets_of_another(host: Path) -> None:
    value, own = "correct-horse-battery", "staple-of-its-own"
    with holdfast.connect("a") as client, holdfast.connect("b", strict=True) as bound:
        client.run("exec sleep 1000", env={"DB_PASSWORD": value}, clean=True, name="server")
        bound.run("true", env={"DB_PASSWORD": own}, clean=True, notify="never")
        assert client.redact(value, own) == [MASK, MASK]
        assert bound.redact(value, own) == [value, MASK]
        process = bound.run(["echo", value, own], notify="any")
        (notice,) = bound.inbox(wait=10)
        assert (notice.process, notice.data["output"]) == (process.id, f"{value} {MASK}")
        client.rename_session("b", "c")
        assert bound.redact(value, own) == [value, MASK]
        client.transfer("server", "c")
        assert bound.redact(value, own) == [MASK, MASK]
        os.kill(client.status()["pid"], signal.SIGKILL)
        with holdfast.connect("d", strict=True) as other:
            assert other.redact(value, own) == [value, own]


def test_files_of_the_home_are_for_their_owner_alone(host: Path) -> None:
    before = os.umask(0)
    try:
        with holdfast.connect("a") as client:
            client.run("exec sleep 1000", pty=True)
            client.run("echo x; echo y >&2; cat", stdin=True, split=True)
            client.wait_for([client.run("echo ended").id])
            client.http("open", "127.0.0.1:0")
            client.inbox(wait=5)
            eventually((host / "login-env.json").exists)
            assert open_to_others(host) == {}
        run_cli("daemon", "stop")
        assert open_to_others(host) == {}
    finally:
        os.umask(before)


def test_files_of_the_runtime_directory_are_for_their_owner_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOLDFAST_HOME", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    before = os.umask(0)
    try:
        with holdfast.connect("a") as client:
            client.wait_for([client.run("true").id])
            assert open_to_others(tmp_path / "state/holdfast") == {}
            assert open_to_others(tmp_path / "run/holdfast") == {}
    finally:
        os.umask(before)
        run_cli("daemon", "stop")


def open_to_others(directory: Path) -> dict[str, str]:
    """Paths that others than the owner can read, or with a wrong mode."""
    found = {}
    for path in [directory, *(Path(place) for place, _, _ in os.walk(directory)), *files_below(directory)]:
        try:
            mode = path.lstat().st_mode
        except FileNotFoundError:  # gone meanwhile
            continue
        if not stat.S_ISLNK(mode) and stat.S_IMODE(mode) != (0o700 if stat.S_ISDIR(mode) else 0o600):
            found[str(path)] = oct(stat.S_IMODE(mode))
    return found


def test_a_match_is_masked_in_its_notice_its_event_and_on_disk(host: Path) -> None:
    value = ENV["PGPASSWORD"]
    command = "for n in $(seq 50); do echo match $n $PGPASSWORD; done; exec sleep 1000"
    with holdfast.connect("a") as client:
        process = client.run(command, env={"PGPASSWORD": value}, clean=True, watch=["match"])
        (notice,) = client.inbox(wait=10)
        assert notice.data["output"].startswith(f"match 1 {MASK}")
        assert value not in notice.text
        (event,) = [one for one in client.events(follow=False) if one["type"] == "process.match"]
        assert value not in str(event)
        assert value.encode() in client.logs(process, raw=True).data
        assert files_with_secrets(host) == {}


def test_the_output_of_a_failed_stop_command_is_masked_in_the_daemon_log(host: Path) -> None:
    with holdfast.connect("a") as client:
        granted = {"PGPASSWORD": ENV["PGPASSWORD"]}
        process = client.run("exec sleep 1000", env=granted, clean=True, stop_cmd="echo failed: $PGPASSWORD; exit 3")
        client.kill(process)
        log = host / "daemon.log"
        eventually(lambda: "stop-cmd-failed" in log.read_text())
        assert MASK in log.read_text()
        assert files_with_secrets(host) == {}
