"""Where a session stands follows its commands."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.tools.model import Model

#: What a command says, and where it leaves the session.
MOVES = {
    "cd a/b": "a/b",
    "cd a; cd b": "a/b",
    "cd a && exit 3; cd b": "a",
    "set -e; cd a; false; cd b": "a",
    "cd a; exec true": "a",
    "cd a; kill -9 $$": "a",
    "pushd a > /dev/null; pushd b > /dev/null; popd > /dev/null": "a",
    "trap 'echo bye' EXIT; cd a": "a",
    "f() { cd a; }; f": "a",
    "eval 'cd a'": "a",
    "cd a; cd ..": "",
    "cd a; cd - > /dev/null": "",
    "(cd a)": "",
    "cd a | cat": "",
    "echo $(cd a; pwd) > /dev/null": "",
    "bash -c 'cd a'": "",
    "cd a & wait": "",
    "cd nowhere": "",
    "true": "",
}


@pytest.fixture(autouse=True)
def _directories(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)


@pytest.mark.parametrize("command", MOVES)
def test_it_follows(model: Model, tmp_path: Path, command: str) -> None:
    answer = model.terminal(command)
    expected = str(tmp_path / MOVES[command]) if MOVES[command] else str(tmp_path)
    assert model.terminal("pwd")["output"] == f"{expected}\n"
    assert answer.get("cwd", str(tmp_path)) == expected


@pytest.mark.parametrize(
    "command",
    [
        *("cd nowhere; echo $?", "set -e; cd nowhere; echo no", "set -x; cd a; pwd", "true\ncd nowhere\ncd a b c"),
        *("cd a; echo $OLDPWD; cd -", "pushd a; popd; popd", "cd -Z", "set -u; cd a; dirs", "cd a || echo no"),
        *(
            "f() { cd nowhere; }; f",
            "cd ''; pwd",
            "env | grep -c HOLDFAST_CWD; bash -c 'type cd'",
            "set -C; cd a; cd b",
        ),
    ],
)
def test_a_command_says_what_plain_bash_says(model: Model, tmp_path: Path, command: str) -> None:
    shell = shutil.which("bash") or "bash"
    plain = subprocess.run(
        [shell, "-c", command], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    answer = model.terminal(command)
    assert (answer["output"], answer["exit_code"]) == (plain.stdout.decode(), plain.returncode)


def test_it_outlives_its_tools(model: Model, tmp_path: Path) -> None:
    model.terminal("cd a")
    with Model(model.session, "/") as later:
        assert later.terminal("pwd")["output"] == f"{tmp_path}/a\n"
        later.terminal("cd b")
    assert model.terminal("pwd")["output"] == f"{tmp_path}/a/b\n", "those of one session agree"


def test_sessions_stand_where_they_stand(model: Model, tmp_path: Path) -> None:
    model.terminal("cd a")
    with Model(f"{model.session}-other", str(tmp_path)) as other:
        assert other.terminal("pwd")["output"] == f"{tmp_path}\n"


def test_a_workdir_is_for_one_command(model: Model, tmp_path: Path) -> None:
    assert model.terminal("pwd", workdir="a")["output"] == f"{tmp_path}/a\n"
    assert model.terminal("pwd", workdir=str(tmp_path / "a/b"))["output"] == f"{tmp_path}/a/b\n"
    assert model.terminal("pwd", workdir="~")["output"] == f"{os.path.expanduser('~')}\n"
    assert model.terminal("pwd")["output"] == f"{tmp_path}\n"


def test_a_directory_that_is_gone_is_left_for_the_nearest_that_is_there(model: Model, tmp_path: Path) -> None:
    model.terminal("cd a/b")
    shutil.rmtree(tmp_path / "a")
    answer = model.terminal("pwd")
    assert answer["output"] == f"{tmp_path}\n"
    assert f"{tmp_path}/a/b is gone; now in {tmp_path}" in answer["note"]
    assert "note" not in model.terminal("pwd"), "it is said once"


def test_names_of_any_kind(model: Model, tmp_path: Path) -> None:
    for name in ("with space", "with'quote", "line\nend", "ünï", "-dash", "$HOME"):
        (tmp_path / name).mkdir()
        model.terminal(f"cd -- '{tmp_path}'/" + "'" + name.replace("'", "'\\''") + "'")
        assert model.terminal("pwd -P; true")["output"] == f"{tmp_path / name}\n"


def test_what_goes_on_in_the_background_moves_the_session_no_more(model: Model, tmp_path: Path) -> None:
    answer = model.terminal("sleep 0.6; cd a", timeout=0.2)
    assert answer["reason"] == "moved_to_background"
    model.process("wait", answer["session_id"])
    assert model.terminal("pwd")["output"] == f"{tmp_path}\n"
    model.process("wait", model.background("cd a"))
    assert model.terminal("pwd")["output"] == f"{tmp_path}\n"


def test_a_bash_env_of_the_callers_own_is_read_all_the_same(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "env.bash").write_text("greeting=hello\n")
    monkeypatch.setenv("BASH_ENV", str(tmp_path / "env.bash"))
    answer = model.terminal("echo $greeting; echo $BASH_ENV; bash -c 'echo $greeting'; cd a")
    assert answer["output"] == f"hello\n{tmp_path}/env.bash\nhello\n"
    assert answer["cwd"] == f"{tmp_path}/a"


def test_nothing_is_left_behind(model: Model, instance: Path) -> None:
    model.terminal("cd a")
    assert not list((instance / "sessions").glob("*.trail"))
    assert (instance / "sessions").stat().st_mode & 0o777 == 0o700


def test_back_and_up_mean_what_they_would_in_one_shell(model: Model, tmp_path: Path) -> None:
    model.terminal("cd a")
    model.terminal("cd b")
    assert model.terminal("cd -")["output"] == f"{tmp_path}/a\n"
    assert model.terminal("cd -; pwd")["output"] == f"{tmp_path}/a/b\n" * 2
    (tmp_path / "link").symlink_to(tmp_path / "a" / "b")
    model.terminal(f"cd {tmp_path}/link")
    assert model.terminal("cd ..; pwd")["output"] == f"{tmp_path}\n"
