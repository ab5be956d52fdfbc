"""The judge at its limits: long, deeply nested and invalid text, and the time it takes."""

from __future__ import annotations

import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.safety import (
    Policy,
    Verdict,
    default_policy,
    judge,
    judge_argv,
    judge_input,
    parse,
    read_rules,
    shell_state,
)
from holdfast.safety.syntax import MOST_TEXT
from tests.safety.test_corpus import WHERE, groups


def verdict(command: str) -> Verdict:
    return judge(command, default_policy(), WHERE)


def test_the_worst_part_of_a_script_counts() -> None:
    found = verdict("ls; rm -rf src; (echo hi | sh -c 'rm -rf /'); ls")
    assert (found.action, found.rule) == ("deny", "delete-system")
    assert verdict("ls; rm -rf src; ls").action == "ask"


def test_a_verdict_names_the_part_it_is_about() -> None:
    found = verdict("npm test && git push --force && npm run build")
    assert (found.rule, found.where, found.level) == ("git-force", "git push --force", "default")


@pytest.mark.parametrize(
    "text",
    [
        "x" * (MOST_TEXT + 1),
        "(" * 100 + "ls" + ")" * 100,
        "echo " + "$(" * 80 + "ls" + ")" * 80,
        "sudo " * 500 + "ls",
        "eval " * 300 + "ls",
        "if true; then " * 300 + "ls" + "; fi" * 300,
        "cat <<A\nx\nA\n" * 300,
        "a | " * 2000 + "b",
        "echo " + "x " * 2000,
    ],
    ids=lambda text: text[:12],
)
def test_text_beyond_a_limit_is_asked_about(text: str) -> None:
    assert (verdict(text).action, verdict(text).rule) == ("ask", "unparsed")


@pytest.mark.parametrize("text", ["echo 'x", "ls | ", "echo $(ls", "a\0b", "if x", ") ls"])
def test_text_that_cannot_be_parsed_is_asked_about(text: str) -> None:
    assert parse(text).trouble
    assert verdict(text).rule == "unparsed"


def test_empty_text_is_allowed() -> None:
    assert [verdict(text).action for text in ("", " \n\t", "# rm -rf /")] == ["allow"] * 3


@settings(max_examples=150)
@given(st.text(max_size=200))
def test_no_text_makes_it_raise(text: str) -> None:
    assert "could not be judged (" not in verdict(text).why


PIECES = [
    "rm",
    "-rf",
    "/",
    "$(",
    ")",
    "`",
    '"',
    "'",
    "{",
    "}",
    "(",
    ")",
    "[[",
    "]]",
    "((",
    "))",
    ";",
    "|",
    "&",
    "&&",
    "||",
    "<",
    ">",
    "<<",
    "<<<",
    "<(",
    "$",
    "${",
    "x",
    "}",
    "if",
    "then",
    "fi",
    "for",
    "in",
    "do",
    "done",
    "case",
    "esac",
    "xargs",
    "find",
    "-exec",
    "sh",
    "-c",
    "eval",
    "echo",
    "sudo",
    "env",
    "-S",
    "ssh",
    "h",
    "docker",
    "run",
    "python3",
    "-c",
    "psql",
    "curl",
    "$x",
    "${x:-y}",
    "~",
    "*",
    "\\",
    "$'",
    "{a,b}",
    "a=(",
]


@settings(max_examples=300)
@given(st.lists(st.sampled_from([*PIECES, "\n", " "]), max_size=40), st.sampled_from(["", " "]))
def test_no_broken_script_makes_it_raise(pieces: list[str], between: str) -> None:
    assert "could not be judged (" not in verdict(between.join(pieces)).why


def quoted(word: str, how: int) -> str:
    """A word in one of the many ways in which bash takes it."""
    ways: list[Callable[[str], str]] = [
        shlex.quote,
        lambda text: "'" + "''".join(text) + "'",
        lambda text: '"' + '""'.join(text) + '"',
        lambda text: "".join("\\" + letter for letter in text),
        lambda text: "$'" + "".join(f"\\x{ord(letter):02x}" for letter in text) + "'",
        lambda text: "$'" + "".join(f"\\{ord(letter):03o}" for letter in text) + "'",
        lambda text: f"$(echo {text})",
        lambda text: f"`printf %s {text}`",
        lambda text: f"${{none:-{text}}}",
        lambda text: "\\\n".join(text),
    ]
    return ways[how % len(ways)](word)


@settings(max_examples=80)
@given(st.lists(st.integers(0, 9), min_size=3, max_size=3), st.sampled_from([" ", "\t", "  ", " \\\n", "${IFS}"]))
def test_quoting_hides_nothing(hows: list[int], gap: str) -> None:
    words = [quoted(word, how) for word, how in zip(["rm", "-rf", "/"], hows, strict=True)]
    assert verdict(gap.join(words)).action == "deny"
    echoed = subprocess.run(
        ["bash", "-c", f"unset none; set -f; printf '%s\\n' {gap.join(words)}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert echoed.stdout.split() == ["rm", "-rf", "/"]


WRAPPERS = ["sh -c {}", "bash -c {}", "eval {}", "env {}", "nice -n 5 {}", "echo {} | sh", 'x={}; eval "$x"']


@settings(max_examples=60)
@given(st.lists(st.sampled_from(WRAPPERS), min_size=1, max_size=4))
def test_wrapping_hides_nothing(wrappers: list[str]) -> None:
    text = "rm -rf /"
    for wrapper in wrappers:
        plain = wrapper.startswith(("env", "nice"))
        text = wrapper.format(
            text
            if plain and " | " not in text and "=" not in text
            else f"sh -c {shlex.quote(text)}"
            if plain
            else shlex.quote(text)
        )
    assert verdict(text).action == "deny"


def test_the_same_command_with_harmless_words_is_allowed() -> None:
    for how in range(10):
        assert verdict(" ".join(quoted(word, how) for word in ("rm", "-rf", "./build"))).action == "allow", how


def test_argument_lists_are_not_expanded() -> None:
    policy = default_policy()
    assert judge_argv(["rm", "-rf", "/"], policy, WHERE).action == "deny"
    assert judge_argv(["sh", "-c", "rm -rf /"], policy, WHERE).action == "deny"
    assert judge_argv(["echo", "$(rm -rf /)"], policy, WHERE).action == "allow"
    assert judge_argv(["rm", "-rf", "*"], policy, WHERE).action == "ask"
    assert judge_argv(["rm", "*"], policy, WHERE).action == "allow"
    assert judge_argv([], policy).action == "allow"
    assert judge_argv(["x" * MOST_TEXT * 2], policy).action == "ask"


def test_the_directory_matters() -> None:
    policy = default_policy()
    assert judge("rm -rf build", policy, "/home/user/project").action == "allow"
    assert judge("rm -rf /home/user/project/build", policy, "/home/user/project").action == "allow"
    assert judge("rm -rf /home/user/project/build", policy, "/home/user/other").action == "ask"
    assert judge("rm -rf ..", policy, "/home/user").action == "deny"
    assert judge("rm -rf *", policy, "/").action == "deny"
    assert judge("rm -rf build", policy, None).action == "allow"


def test_without_rules_everything_is_allowed() -> None:
    assert judge("rm -rf /", Policy({})).action == "allow"


def test_an_ordinary_command_is_judged_in_5_milliseconds() -> None:
    texts = [text for group in groups("harmless.toml") for text in group["commands"]]
    verdict("ls")
    times = []
    for text in texts:
        begin = time.process_time()
        verdict(text)
        times.append(time.process_time() - begin)
    assert median(times) < 0.005


def test_twice_the_text_takes_about_twice_the_time() -> None:
    line = 'make -C src && for f in *.py; do python -m py_compile "$f" | tee log; done\n'

    def cost(count: int) -> float:
        begin = time.process_time()
        verdict(line * count)
        return time.process_time() - begin

    cost(10)
    assert min(cost(400) for _ in range(3)) < 8 * min(cost(100) for _ in range(3))


def test_a_failure_of_the_judge_is_asked_about(monkeypatch: pytest.MonkeyPatch) -> None:
    from holdfast.safety import reader

    def broken(*_: object) -> None:
        raise KeyError("surprise")

    monkeypatch.setattr(reader.Reader, "read", broken)
    found = verdict("ls")
    assert (found.action, found.rule) == ("ask", "unparsed") and "KeyError" in found.why


def test_importing_it_loads_no_grammar() -> None:
    look = "import sys, holdfast.safety; print({'tree_sitter', 'tree_sitter_bash', 're2'} & set(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True).stdout
    assert loaded.strip() == "set()"


def test_rules_of_one_file_can_be_used_alone() -> None:
    rules, _ = read_rules('[[deny]]\nname = "no-ls"\nprogram = "ls"\n', "x.toml")
    assert judge("ls", Policy({"user": rules})) == Verdict("deny", "no-ls", "no-ls", "ls", "user")


HOSTILE = {
    "brackets": "(" * 10_000,
    "substitutions": "$(" * 5_000 + "ls" + ")" * 5_000,
    "one long line": "a" * 1_000_000,
    "many words": "echo " + "a " * 32_000,
    "many commands": "ls;" * 21_000,
    "all bytes": bytes(range(256)).decode("latin1") * 100,
    "no text": "rm -rf \ud800\udfff /srv " + "\udcff" * 60_000,
    "quotes": '"' * 60_001,
    "backticks": "`" * 60_001,
    "doubled values": "".join(f"x{i}=$x{i - 1}$x{i - 1};" for i in range(1, 2_000)),
    "calls that call": "".join(f"f{i}(){{ f{i + 1}; f{i + 1}; }};" for i in range(40)) + "f0",
    "eval": "eval " * 10_000 + "ls",
    "wrappers": "foo " + "sudo " * 900,
    "texts in texts": "hyperfine " + "\"hyperfine 'ls'\" " * 2_000,
    "a makefile": "make --eval='" + "\trm $(x)\n" * 5_000 + "'",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_no_text_takes_long(text: str) -> None:
    before = time.process_time()
    judge(text, default_policy(), WHERE)
    judge_input(f"{text}\n", shell_state("bash", WHERE), default_policy())
    assert time.process_time() - before < 4.0, "some half a second each; machines differ"


@pytest.mark.parametrize(
    "command", ["rm -rf src", "rm -rf .", "rm -rf /tmp/work/shop/src", "rm -rf ..", "find . -delete"]
)
def test_a_project_in_a_temporary_directory_is_not_scratch(command: str) -> None:
    assert judge(command, default_policy(), "/tmp/work/shop").action == "ask"


@pytest.mark.parametrize("command", ["rm -rf build node_modules", "rm -rf /tmp/other", "find . -name '*.pyc' -delete"])
def test_what_can_be_made_again_is_deleted_without_a_question_in_a_temporary_project_too(command: str) -> None:
    assert judge(command, default_policy(), "/tmp/work/shop").action == "allow"
