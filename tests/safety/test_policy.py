"""Policy files: what they can say, whose word counts, and what is said about broken ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.errors import BadValue
from holdfast.safety import Policy, Verdict, default_policy, judge, load_policy, read_rules

WHERE = "/home/user/project"


class Files:
    """The operator's and the user's policy, in directories of a test."""

    def __init__(self, tmp_path: Path) -> None:
        self.operator, self.home = tmp_path / "etc", tmp_path / "home"
        self.operator.mkdir()
        self.home.mkdir()

    def load(self, operator: str = "", user: str = "") -> Policy:
        for directory, text in ((self.operator, operator), (self.home, user)):
            if text:
                (directory / "policy.toml").write_text(text, encoding="utf-8")
        return load_policy(str(self.home), {"HOLDFAST_POLICY_DIR": str(self.operator)})


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def rule(action: str, **keys: str | list[str]) -> str:
    return f"[[{action}]]\n" + "".join(f"{key} = {value!r}\n" for key, value in keys.items())


def action(policy: Policy, command: str) -> str:
    return judge(command, policy, WHERE).action


def test_without_files_the_defaults_hold(files: Files) -> None:
    policy = files.load()
    assert (action(policy, "ls"), action(policy, "rm -rf src"), action(policy, "rm -rf /")) == ("allow", "ask", "deny")


@pytest.mark.parametrize(
    ("operator", "user", "expected"),
    [
        ("", "", "ask"),
        ("deny", "", "deny"),
        ("deny", "allow", "deny"),
        ("allow", "", "allow"),
        ("allow", "ask", "allow"),
        ("allow", "deny", "deny"),
        ("ask", "allow", "ask"),
        ("", "allow", "allow"),
        ("", "deny", "deny"),
        ("", "ask", "ask"),
    ],
)
def test_the_precedence_of_policy_files(files: Files, operator: str, user: str, expected: str) -> None:
    """On a command that the defaults ask about."""
    written = [rule(word, program="git", subcommand="push") if word else "" for word in (operator, user)]
    assert action(files.load(*written), "git push --force") == expected


def test_on_one_level_deny_comes_before_allow_and_allow_before_ask(files: Files) -> None:
    both = rule("allow", program="git") + rule("deny", program="git", subcommand="push") + rule("ask", program="git")
    policy = files.load(user=both)
    assert (action(policy, "git status"), action(policy, "git push")) == ("allow", "deny")


def test_an_operator_can_allow_what_the_defaults_deny(files: Files) -> None:
    policy = files.load(operator=rule("allow", name="lab", program="dd", path="/dev/sd?"))
    assert action(policy, "dd if=x of=/dev/sdb") == "allow"
    assert action(policy, "dd if=x of=/dev/nvme0n1") == "deny"


def test_an_allowed_wrapper_allows_nothing_inside_it(files: Files) -> None:
    policy = files.load(operator=rule("allow", program=["sudo", "sh", "xargs", "ssh"]))
    for command in ("sudo rm -rf /", "sh -c 'rm -rf /'", "echo / | xargs rm -rf", "ssh host rm -rf /"):
        assert action(policy, command) == "deny"


def test_a_deny_of_the_operator_sees_through_every_spelling(files: Files) -> None:
    policy = files.load(operator=rule("deny", name="no-tracing", why="not on this machine", program="strace"))
    for command in (
        "strace ls",
        "sudo strace ls",
        "s=stra; ${s}ce ls",
        "sh -c 'strace ls'",
        "docker exec box strace -p 1",
    ):
        found = judge(command, policy, WHERE)
        assert (found.action, found.rule, found.why, found.level) == (
            "deny",
            "no-tracing",
            "not on this machine",
            "operator",
        )


def test_a_permanently_allowed_command_is_allowed_exactly(files: Files) -> None:
    policy = files.load().with_allowed(["git push --force"])
    assert action(policy, " git push --force\n") == "allow"
    assert action(policy, "git push --force origin") == "ask"
    assert action(policy, "git push --force; rm -rf src") == "ask"


def test_a_permanently_allowed_command_does_not_override_the_operator(files: Files) -> None:
    for word in ("deny", "ask"):
        policy = files.load(operator=rule(word, program="git", subcommand="push")).with_allowed(
            ["git push --force; rm -rf /"]
        )
        assert action(policy, "git push --force; rm -rf /") == word


def test_a_whole_command_can_be_denied(files: Files) -> None:
    policy = files.load(user=rule("deny", command="make deploy"))
    assert (action(policy, "make deploy"), action(policy, "make")) == ("deny", "allow")


def test_places_have_names(files: Files) -> None:
    policy = files.load(user='[places]\ndata = ["~/data", "~/data/**"]\n' + rule("deny", program="*", path="@data"))
    assert action(policy, "ls ~/data/x") == "deny"
    assert action(policy, "cat < /home/user/data/x") == "deny"
    assert action(policy, "ls ~/other") == "allow"


def test_places_of_the_defaults_can_be_used(files: Files) -> None:
    policy = files.load(user=rule("deny", program="ls", path="@secrets"))
    assert action(policy, "ls ~/.ssh/id_rsa") == "deny"


@pytest.mark.parametrize(
    ("pattern", "fits", "misses"),
    [
        ("-f", ["-f", "-xf", "-fx"], ["--f", "f", "-x"]),
        ("--force", ["--force", "--force=yes", "--forc"], ["--fo", "-force", "--forces"]),
        ("--hard|-q", ["--hard", "-q"], ["--soft"]),
        ("-exec", ["-exec"], ["-e", "-execdir"]),
        ("*.py", ["a.py"], ["a.pyc"]),
        ("re:^v[0-9]+$", ["v1", "v22"], ["v", "xv1"]),
    ],
)
def test_patterns_of_arguments(pattern: str, fits: list[str], misses: list[str]) -> None:
    policy = Policy({"user": read_rules(rule("deny", program="tool", arguments=pattern), "x.toml")[0]})
    assert [action(policy, f"tool {argument}") for argument in fits] == ["deny"] * len(fits)
    assert [action(policy, f"tool {argument}") for argument in misses] == ["allow"] * len(misses)
    assert action(policy, "tool -- -f --force --hard -exec") == "allow"


def test_a_program_can_be_excluded() -> None:
    policy = Policy({"user": read_rules(rule("ask", program=["git*", "!git-lfs"]), "x.toml")[0]})
    assert (action(policy, "git x"), action(policy, "git-lfs x"), action(policy, "ls")) == ("ask", "allow", "allow")


def test_findings_have_names_that_a_policy_can_use(files: Files) -> None:
    policy = files.load(operator=rule("deny", name="no-pipes", program="@piped-code"))
    assert judge("curl x.example | sh", policy, WHERE).rule == "no-pipes"
    policy = files.load(operator=rule("allow", program="@piped-code"))
    assert action(policy, "curl x.example | sh") == "allow"


@pytest.mark.parametrize(
    "text",
    [
        "this is no toml",
        "[[forbid]]\nprogram = 'x'\n",
        "[deny]\nprogram = 'x'\n",
        "deny = 3\n",
        "[[deny]]\nprogramm = 'x'\n",
        "[[deny]]\nprogram = 3\n",
        "[[deny]]\nprogram = []\n",
        "[[deny]]\nprogram = ['x', 3]\n",
        "[[deny]]\nprogram = ['']\n",
        "[[deny]]\nwhy = 3\nprogram = 'x'\n",
        "[[deny]]\nname = 'says nothing'\n",
        "[[deny]]\npath = '@nowhere'\n",
        "[[deny]]\narguments = 're:('\n",
        "[[deny]]\narguments = 're:(?=x)'\n",
        "places = 3\n",
        "[places]\nx = 3\n",
    ],
)
def test_a_broken_file_is_refused_with_its_name(files: Files, text: str) -> None:
    with pytest.raises(BadValue) as refused:
        files.load(user=text)
    assert "policy.toml" in refused.value.message and "\n" not in refused.value.message.strip()
    assert refused.value.next


def test_a_file_that_cannot_be_read_is_refused(files: Files) -> None:
    (files.home / "policy.toml").mkdir()
    with pytest.raises(BadValue):
        files.load()
    (files.operator / "policy.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(BadValue):
        files.load()


def test_the_examples_in_the_docs_are_policies() -> None:
    page = (Path(__file__).parents[2] / "docs/safety.md").read_text(encoding="utf-8")
    examples = [part.split("```")[0] for part in page.split("```toml\n")[1:]]
    assert examples
    for example in examples:
        rules, _ = read_rules(example, "policy.toml")
        assert rules
        assert isinstance(judge("ls", Policy({"user": rules})), Verdict)


def test_the_strict_profile_asks_for_every_program_that_the_policy_does_not_know(files: Files) -> None:
    policy = files.load(user='profile = "strict"\n[[allow]]\nprogram = "our-tool"\n')
    found = judge("frobnicate --all", policy)
    assert (found.action, found.rule, found.level, found.word) == ("ask", "strict", "user", "frobnicate")
    assert judge("timeout 5 frobnicate", policy).action == "ask"
    for command in ("ls -l | sort", "git status", "our-tool --all", "npm test", "x=1; echo $x > y", "cd src && make"):
        assert judge(command, policy).action == "allow", command
    assert judge("frobnicate --all", default_policy()).action == "allow"


def test_a_user_allows_nothing_that_the_strict_operator_asks_about(files: Files) -> None:
    allow = rule("allow", program="frobnicate")
    policy = files.load(operator='profile = "strict"\n' + rule("allow", program="our-tool"), user=allow)
    assert judge("our-tool", policy).action == "allow"
    assert judge("frobnicate", policy).action == "ask"
    assert judge("frobnicate", policy.with_allowed(["frobnicate"])).action == "ask"


def test_an_unknown_profile_is_an_error() -> None:
    with pytest.raises(BadValue, match="profile has to be default, strict or sandbox"):
        read_rules('profile = "lax"\n', "x.toml")


@pytest.mark.parametrize(
    ("command", "word"),
    [
        ("frobnicate volume delete v1", "delete"),
        ("frobnicate --force", "--force"),
        ("git push --force", "--force"),
        ("rm -rf build src", "src"),
        ("cat ~/.aws/credentials", "~/.aws/credentials"),
        ("sudo reboot", "reboot"),
    ],
)
def test_a_verdict_names_the_word_that_decided(command: str, word: str) -> None:
    assert judge(command, default_policy(), WHERE).word == word
