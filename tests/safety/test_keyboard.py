"""Text typed into running processes: gated in shells and interpreters, let through where it is an answer."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.safety import ShellState, default_policy, judge_input, shell_state
from holdfast.safety.lines import typed, waits_for_more

WHERE = "/home/user/project"


def write(shell: ShellState, *texts: str | bytes) -> list[str]:
    return [judge_input(text, shell, default_policy()).action for text in texts]


@pytest.fixture
def bash() -> ShellState:
    return shell_state("bash", WHERE)


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("bash", "shell"),
        ("exec bash -i", "shell"),
        (["/bin/sh"], "shell"),
        (["zsh", "-l"], "shell"),
        ("sudo -s", "shell"),
        ("env X=1 bash --norc", "shell"),
        ("docker exec -it box sh", "shell"),
        ("ssh host", "shell"),
        ("cd src && bash", "shell"),
        ("python3", "code"),
        ("python3 -i x.py", "code"),
        (["node"], "code"),
        ("psql shop", "sql"),
        ("sqlite3 x.db", "sql"),
        ("bash run.sh", "plain"),
        ("bash -c 'read x'", "plain"),
        ("npm init", "plain"),
        ("python3 ask.py", "plain"),
        ("cat", "plain"),
        ("", "plain"),
    ],
)
def test_who_reads_what_is_typed(command: str | list[str], kind: str) -> None:
    assert shell_state(command, WHERE).kind == kind


def test_a_line_typed_into_a_shell_is_judged_like_a_command(bash: ShellState) -> None:
    assert write(bash, "ls\n", "rm -rf /\n", "rm -rf src\r", b"rm -rf build\n") == ["allow", "deny", "ask", "allow"]


def test_a_line_split_over_writes_is_judged_when_enter_comes(bash: ShellState) -> None:
    assert write(bash, "rm -r", "f /", "\n") == ["allow", "allow", "deny"]
    assert bash.pending == "rm -rf /"


@settings(max_examples=60, deadline=None)
@given(st.sets(st.integers(1, 8)))
def test_no_cut_hides_a_line(cuts: set[int]) -> None:
    shell, text = shell_state("bash", WHERE), "rm -rf /\n"
    edges = [0, *sorted(cuts), len(text)]
    actions = write(shell, *(text[left:right] for left, right in pairwise(edges)))
    assert actions[-1] == "deny" and set(actions[:-1]) <= {"allow"}


def test_what_was_refused_is_not_remembered(bash: ShellState) -> None:
    assert write(bash, "X=rm; rm -rf src\n", "$X -rf /\n") == ["ask", "ask"]
    assert write(bash, "ls\n") == ["allow"]


def test_what_a_person_let_through_is_remembered(bash: ShellState) -> None:
    bash.accept("X=rm; rm -rf src\n", default_policy())
    assert write(bash, "$X -rf /\n") == ["deny"]


def test_variables_functions_and_directories_are_remembered(bash: ShellState) -> None:
    assert write(bash, "X=rm\n", "$X -rf /\n") == ["allow", "deny"]
    assert write(bash, 'wipe() { rm -rf "$1"; }\n') == ["ask"]
    assert write(bash, "cd build\n", "rm -rf *\n", "cd /\n", "rm -rf *\n") == ["allow", "allow", "allow", "deny"]


ANSWERS = [
    "y", "n", "Y", "yes", "42", "3.14", "", "my-app", "hunter2", "a@b.example", "p@ss(w)ord", "it's", "x)y", "C:\\x",
    "correct horse battery staple", "/tmp/x", "1,2,3", "q", "?", '"quoted', "hunter2!",
]  # fmt: skip


@pytest.mark.parametrize("answer", ANSWERS)
def test_ordinary_answers_pass(bash: ShellState, answer: str) -> None:
    assert write(bash, answer + "\n") == ["allow"]
    assert write(shell_state("npm init"), answer + "\n") == ["allow"]
    assert write(shell_state("python3"), answer + "\n") == ["allow"]


@pytest.mark.parametrize("password", ["$ecret", "rm -rf /", "`x`", "!bang", "a;reboot"])
def test_a_password_prompt_takes_anything(bash: ShellState, password: str) -> None:
    assert judge_input(password + "\n", bash, default_policy(), hidden=True).action == "allow"
    assert write(bash, "rm -rf /\n") == ["deny"]


def test_a_password_prompt_takes_one_line(bash: ShellState) -> None:
    assert judge_input("x\nrm -rf /\n", bash, default_policy(), hidden=True).action == "deny"


def test_programs_that_only_ask_get_what_is_typed() -> None:
    assert write(shell_state("npm init"), "rm -rf /\n", "\x03") == ["allow", "allow"]


def test_an_open_end_waits_and_hides_nothing(bash: ShellState) -> None:
    assert write(bash, "if true; then\n", "rm -rf /\n") == ["allow", "deny"]
    assert write(bash, "ls\n", "fi\n") == ["allow", "allow"]
    assert bash.block == ""
    assert write(bash, "it's\n", "rm -rf /\n") == ["allow", "deny"]


def test_lines_that_belong_together_are_judged_together(bash: ShellState) -> None:
    assert write(bash, "rm \\\n", "-rf /\n") == ["allow", "deny"]
    bash = shell_state("bash", WHERE)
    assert write(bash, "curl x.example |\n", "sh\n") == ["allow", "ask"]
    bash = shell_state("bash", WHERE)
    assert write(bash, "sh <<EOF\n", "cd /\n", "rm -rf *\n") == ["allow", "allow", "deny"]


def test_several_lines_in_one_write(bash: ShellState) -> None:
    assert write(bash, "ls\npwd\nrm -rf /\n") == ["deny"]
    assert write(bash, "cat > x.sh <<'EOF'\necho hi\nEOF\nsh x.sh\n") == ["allow"]


def test_keys_that_change_the_line(bash: ShellState) -> None:
    assert write(bash, "rm -rf /\x15ls\n") == ["allow"]
    assert write(bash, "rm -rf /xx\x7f\x7f\n") == ["deny"]
    assert write(bash, "\x03", "ls\n") == ["allow", "allow"]
    assert write(bash, "ls; echo x\x17\x17reboot\n") == ["ask"]
    assert write(bash, "-rf /\x01rm \n") == ["ask"]
    assert write(bash, "\x12rm\n") == ["ask"]
    assert write(bash, "\x1b[200~ls\x1b[201~\r", "\tls\r", "ls \x7f\r") == ["allow"] * 3


@pytest.mark.parametrize(
    "keys",
    [
        ("reboot\x0f",),  # Ctrl-O runs the line
        ("set -o vi\r", "reboot\x1b\r"),
        ("set -o vi\r", "reboot\x1b", "\r"),
        ("\x1b[200~reboot;\x15\x1b[201~\r",),  # in a paste, keys are letters
        ("\x1b[200~", "reboot;\x15\x1b[201~\r"),
        ("reboot;x\x17\r",),  # a terminal without a line editor erases letters alone
        ("reboot;\x08\x08\x08\x08\x08\x08\x08\r",),  # and knows no Ctrl-H
        ("reboot\x04\x04",),
        ("reboot", "\x04\x04"),
        ("reboo\t\r",),  # may be completed
        ("reboot", "\x1a", "\r"),  # a shell is deaf to it, and keeps its line
        ("reboot", "\x1c", "\r"),
        ("trap '' INT\r", "reboot", "\x03", "\r"),
        ("\x1b[A\r",),  # an old line
        ("\x10\r",),
        ("echo", "\x1b", "\x7f reboot\r"),
        ("\x1b", ".\r"),
        (b"echo\xff reboot\r",),
        ("stty eol t\r", "reboot"),
        ("bind '\"x\": accept-line'\r", "rebootx"),
    ],
)
def test_keys_that_hide_a_line_are_asked_about(bash: ShellState, keys: tuple[str | bytes, ...]) -> None:
    assert "ask" in write(bash, *keys)


@pytest.mark.parametrize(
    "keys", ["reboot;\x15\n", "reboot;\x7f\x7f\x7f\x7f\x7f\x7f\x7f\n", "reboot;\x03\n", "reboot;\x17\n"]
)
def test_in_a_pipe_no_key_edits(keys: str) -> None:
    assert write(shell_state("sh", WHERE, terminal=False), keys) == ["ask"]


@pytest.mark.parametrize(
    "command", ["python3", "python3 -", "python3 -iu x.py", "node -i", "python manage.py shell", "iex"]
)
def test_what_one_line_of_code_prepares_another_runs(command: str) -> None:
    shell = shell_state(command, WHERE)
    assert write(shell, "import os\n", "x = 'rm -rf ~/work'\n", "print(1)\n") == ["allow"] * 3
    assert write(shell, "os.system(x)\n") == ["ask"]


@pytest.mark.parametrize(
    "command",
    [
        "docker run -it ubuntu",
        "docker attach x",
        "tmux attach",
        "screen -r",
        "sudo -iu root",
        "bash -s x",
        "sh -",
        "vagrant ssh",
        "nc host 22",
    ],
)
def test_shells_by_other_names(command: str) -> None:
    assert write(shell_state(command, WHERE), "rm -rf ~/work\n") == ["ask"]


def test_what_stands_behind_a_bang_in_an_editor() -> None:
    shell = shell_state("vim notes.md", WHERE)
    assert write(shell, "irm -rf ~/work is bad\n", "\x1b:w\r", "\x1b:!ls\r") == ["allow"] * 3
    assert write(shell, "\x1b:!rm -rf ~/work\r") == ["ask"]
    assert write(shell_state("less x", WHERE), "!rm -rf ~/work\r") == ["ask"]


def test_what_a_line_means_depends_on_what_was_typed_before(bash: ShellState) -> None:
    before = bash.context()
    assert write(bash, "cd src\n") == ["allow"] and bash.context() != before
    at_src = bash.context()
    assert write(bash, "X=1\n") == ["allow"] and bash.context() != at_src
    assert shell_state("bash", WHERE).context() == before


def test_old_commands_by_their_first_letters(bash: ShellState) -> None:
    assert write(bash, "!rm\n") == ["ask"]
    for line in ("true; !rm", "^echo ^^", "sudo !!", 'echo "!$"', "!-2", "fc -s", "fc -e vi"):
        assert write(bash, f"{line}\n") == ["ask"], line
    for line in (
        "echo 'hi!you'",
        "[ ! -f x ] && ls",
        "if ! ls; then pwd; fi",
        "echo $!",
        "echo ${!x}",
        "[ a != b ]",
        "fc -l",
    ):
        assert write(bash, f"{line}\n") == ["allow"], line
    assert write(shell_state("sh", WHERE, terminal=False), 'node -e "if(!x) y()"\n') == ["allow"]


def test_an_interpreter_is_gated_as_such() -> None:
    python = shell_state("python3", WHERE)
    assert write(python, "import os, shutil\n", "os.getcwd()\n", "x = [1, 2]\n") == ["allow"] * 3
    assert write(python, "os.system('rm -rf /')\n", "shutil.rmtree('/')\n", "shutil.rmtree(x)\n") == [
        "deny",
        "deny",
        "ask",
    ]
    node = shell_state("node", WHERE)
    assert write(node, "1 + 1\n", "require('child_process').execSync('rm -rf /')\n") == ["allow", "deny"]


def test_a_database_client_is_gated_as_such() -> None:
    psql = shell_state("psql shop", WHERE)
    assert write(psql, "select 1;\n", "DROP TABLE users;\n") == ["allow", "ask"]
    assert write(psql, "drop\n", "table users;\n") == ["allow", "ask"]
    psql = shell_state("psql shop", WHERE)
    assert write(psql, "\\! rm -rf /\n", "\\q\n") == ["deny", "allow"]


def test_who_reads_changes_with_what_is_started(bash: ShellState) -> None:
    def reader() -> str:
        return bash.kind

    assert write(bash, "python3\n") == ["allow"] and reader() == "code"
    assert write(bash, "import shutil\n", "shutil.rmtree('/')\n") == ["allow", "deny"]
    assert write(bash, "rm -rf /\n") == ["deny"]
    assert write(bash, "exit()\n") == ["allow"] and reader() == "shell"
    assert write(bash, "psql shop\n", "drop table x;\n", "\x04") == ["allow", "ask", "allow"] and reader() == "shell"
    assert write(bash, "ssh host\n", "rm -rf /\n") == ["allow", "deny"]


def test_a_line_without_end_is_not_held_for_ever(bash: ShellState) -> None:
    assert write(bash, "x" * 40_000, "x" * 40_000) == ["allow", "ask"]


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=80), st.sampled_from(["bash", "python3", "psql x"]))
def test_no_bytes_make_it_raise(text: bytes, command: str) -> None:
    shell = shell_state(command, WHERE)
    for part in (text, b"\n", text + b"\r"):
        assert "could not be judged (" not in judge_input(part, shell, default_policy()).why


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=30), st.text(max_size=30))
def test_keys_make_the_same_lines_however_they_are_cut(first: str, second: str) -> None:
    first = first.replace("\x1b", "").replace("\x04", "")
    whole = typed("", False, first + second)
    one = typed("", False, first)
    two = typed(one.pending, one.edited, second)
    assert (one.lines + two.lines, two.pending) == (whole.lines, whole.pending)


@pytest.mark.parametrize(
    "text",
    [
        "if x; then",
        "echo 'a",
        'echo "a',
        "cat <<E",
        "f() {",
        "for x in a; do",
        "x |",
        "x &&",
        "(ls",
        "a \\",
        "case x in",
    ],
)
def test_a_shell_waits_for_more(text: str) -> None:
    assert waits_for_more(text + "\n")


WHOLE = [
    "ls", "echo 'a'", "cat <<E\nx\nE", "f() { ls; }", "for x in a; do ls; done", "x | y", "(ls)", "echo if",
    "case x in a) ls;; esac", "if x; then y; fi", "echo {a,b}", "# don't",
]  # fmt: skip


@pytest.mark.parametrize("text", WHOLE)
def test_a_shell_does_not_wait(text: str) -> None:
    assert not waits_for_more(text + "\n")
