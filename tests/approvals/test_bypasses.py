"""Ways to bypass the check of commands: each was possible once."""

from __future__ import annotations

import os
import sys
from base64 import b64encode
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import Client, NoApprover, Process
from holdfast.client.calls import Ask
from tests.approvals.surfaces import RISKY
from tests.daemon.acting import kill_daemon
from tests.support import eventually


@pytest.fixture
def hf(instance: Path) -> Iterator[Client]:
    with holdfast.connect(session=f"agent-{os.urandom(4).hex()}", strict=True) as client:
        yield client


@pytest.fixture
def person(instance: Path) -> Iterator[Client]:
    with holdfast.connect() as client:
        yield client


def request_of(deed: Callable[[], object]) -> str:
    """The request that a deed comes to, when nobody is there."""
    with pytest.raises(NoApprover) as refused:
        deed()
    assert refused.value.data is not None
    return str(refused.value.data["approval"]["id"])


def write_at(hf: Client, process: Process, text: str, at: int) -> None:
    """As a client does that does not know whether its first try has arrived."""
    data = b64encode(text.encode()).decode()
    hf._call(Ask("send", {"process": process.id, "data": data, "at": at}))


def says(hf: Client, process: Process, text: str) -> bool:
    return bool(eventually(lambda: text in hf.logs(process).text))


def test_the_end_of_input_ends_a_line(hf: Client) -> None:
    process = hf.run("sh", stdin=True)
    request_of(lambda: hf.send(process, RISKY, enter=False, eof=True))
    hf.send(process, RISKY, enter=False)
    request_of(lambda: hf.send(process, "", enter=False, eof=True))


def test_an_ordinary_end_of_input_passes(hf: Client) -> None:
    process = hf.run("sh", stdin=True)
    hf.send(process, "echo d''one", enter=False, eof=True)
    assert says(hf, process, "done")
    assert hf.wait(process.id, timeout=30).exit_code == 0


def test_what_was_taken_in_before_does_not_hide_what_follows(hf: Client) -> None:
    process = hf.run("bash", stdin=True)
    hf.send(process, "true")  # five bytes with its end, as many as `echo `
    request_of(lambda: write_at(hf, process, f"echo {RISKY}\n", 0))
    write_at(hf, process, "true\necho f''ine\n", 0)
    assert says(hf, process, "fine")


@pytest.mark.parametrize("pty", [False, True])
def test_keys_do_not_wipe_a_line_where_no_key_does(hf: Client, pty: bool) -> None:
    process = hf.run("dash", stdin=True, pty=pty)
    request_of(lambda: hf.send(process, f"{RISKY};x\x17"))
    request_of(lambda: hf.send(process, f"{RISKY};\x08"))


def test_a_line_that_is_run_without_enter(hf: Client) -> None:
    process = hf.run("bash --norc", pty=True)
    request_of(lambda: hf.send(process, f"{RISKY}\x0f", enter=False))


def test_an_answer_for_the_session_holds_where_it_was_given(hf: Client, person: Client) -> None:
    """The same letters mean something else in another directory, or with another value."""
    process = hf.run("bash", stdin=True)
    line = 'git -C "$D" reset --hard; echo d"$D"e'
    hf.send(process, "D=on")
    person.approve(request_of(lambda: hf.send(process, line)), "session")
    hf.send(process, line)
    assert says(hf, process, "done")
    hf.send(process, "D=/nonexistent")
    request_of(lambda: hf.send(process, line))
    hf.send(process, "D=on")
    request_of(lambda: hf.send(process, line))  # values are not simulated: any change ends the answer


def test_the_directory_of_a_shell_is_unknown_after_the_user_typed(hf: Client, person: Client) -> None:
    process = hf.run("bash", stdin=True)
    hf.send(process, "rm -rf build")
    person.send(process, "cd /nonexistent/..")
    request_of(lambda: hf.send(process, "rm -rf build"))


def test_an_agent_does_not_end_a_line_that_the_user_began(hf: Client, person: Client) -> None:
    process = hf.run("bash", stdin=True)
    person.send(process, "true; ", enter=False)
    request_of(lambda: hf.send(process, ""))


def test_where_a_shell_is_after_a_crash_is_not_known(hf: Client) -> None:
    process = hf.run("bash", stdin=True)
    hf.send(process, "cd /")
    kill_daemon(hf)
    request_of(lambda: hf.send(process, "rm -rf build"))


def test_variables_that_are_given_are_read(hf: Client) -> None:
    request_of(lambda: hf.run("git -C /nonexistent reset $HOW", gate=True, env={"HOW": "--hard"}))
    process = hf.run(
        "git -C /nonexistent reset $HOW; echo d''one", gate=True, env={"HOW": "--soft", "NODE_ENV": "test"}
    )
    assert says(hf, process, "done")


def test_variables_that_steer_ask(hf: Client) -> None:
    for variable in ("CDPATH", "MAKEFLAGS", "npm_config_script_shell", "PERL5LIB", "EDITOR"):
        request_of(partial(hf.run, "true", gate=True, env={variable: "/nonexistent"}))


def test_a_yes_to_one_run_is_none_to_many(hf: Client, person: Client) -> None:
    person.approve(request_of(lambda: hf.run(RISKY, gate=True)))
    request_of(lambda: hf.run(RISKY, gate=True, restart="always"))
    hf.run(RISKY, gate=True)


@pytest.mark.parametrize(
    "how",
    [{"env": {"LD_PRELOAD": "/nonexistent.so"}}, {"stop_cmd": RISKY}, {"env": {"HOW": "--hard"}}],
)
def test_a_yes_to_a_start_is_none_to_a_restart(hf: Client, person: Client, how: dict[str, Any]) -> None:
    """Whatever it was that had to be asked for."""
    run = partial(hf.run, "git -C /nonexistent reset $HOW", gate=True, **how)
    person.approve(request_of(run))
    process = run()
    hf.wait(process.id, timeout=30)
    request_of(lambda: hf.restart(process))
    person.kill(process.id, grace=0)


def test_a_restart_with_ordinary_variables_passes(hf: Client) -> None:
    process = hf.run("git -C /nonexistent reset $HOW", gate=True, env={"HOW": "--soft"}, stop_cmd="true")
    hf.wait(process.id, timeout=30)
    assert hf.restart(process).restarts == 1


OWN = (
    "echo '[[allow]]' >> {home}/policy.toml",
    "sqlite3 {home}/store.db 'select 1'",
    "cp x {home}/hooks/x",
    "cat {home}/token",
    "grep '' {home}/token",
    "head -c 100 {home}/token",
    "tail -n 1 {home}/token",
    "grep -r . {home}",
    "rg . {home}",
    "git diff --no-index /dev/null {home}/token",
    "cat $HOLDFAST_HOME/token",
    "cat {home}/*",
    "cat {home}/place/live/*/spec.json",
    "cp -r {home}/place/done x",
    "less {home}/login-env.json",
    "tail -f {home}/place/live/proc_000000000000/out.0",
    "cd {home}/place && cat live/*/out.0",
    "socat - UNIX-CONNECT:{home}/daemon.sock",
    "curl --unix-socket {home}/daemon.sock http://x/",
    "{python} -m holdfast approve appr_000000000000",
    "holdfast approve appr_000000000000",
    "holdfast send x 'git reset --hard'",
    "HOLDFAST_POLICY_DIR=/nonexistent holdfast ps",
)


def test_what_holdfast_goes_by_is_not_touched_unasked(hf: Client, instance: Path) -> None:
    for command in OWN:
        request_of(partial(hf.run, command.format(home=instance, python=sys.executable), gate=True))


def test_that_holdfast_has_files_is_no_secret(hf: Client, instance: Path) -> None:
    process = hf.run(f"ls {instance}; echo d''one", gate=True)
    assert says(hf, process, "done")


def test_typing_into_what_runs_in_a_script(hf: Client, tmp_path: Path) -> None:
    """A script that earlier lines wrote cannot be judged; a dangerous line of one is asked about when it is typed."""
    process = hf.run("bash", stdin=True)
    for line in ("cat > x.sh <<'EOF'", "echo h''i", "EOF", "cat x.sh"):
        hf.send(process, line)
    assert says(hf, process, "h''i")
    request_of(lambda: hf.send(process, "bash x.sh"))
    for line in ("cat > y.sh <<'EOF'", "true"):
        hf.send(process, line)
    request_of(lambda: hf.send(process, RISKY))
