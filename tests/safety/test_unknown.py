"""Programs that the policy does not know: their words decide."""

from __future__ import annotations

import pytest

from holdfast.safety import default_policy, judge
from holdfast.safety.tables import ACTS, DELETES, READS
from tests.safety.test_corpus import WHERE


def rule(command: str) -> str | None:
    return judge(command, default_policy(), WHERE).rule


@pytest.mark.parametrize("verb", sorted(DELETES))
def test_a_verb_that_deletes_is_asked_about(verb: str) -> None:
    for words in (verb, f"volume {verb} v1", f"--region eu {verb} v1 v2"):
        assert rule(f"frobnicate {words}") == "unknown-deletes", words
    assert rule(f"frobnicate show {verb}-notes") is None


@pytest.mark.parametrize("verb", sorted(ACTS))
def test_a_verb_that_acts_elsewhere_is_asked_about(verb: str) -> None:
    assert rule(f"frobnicate app {verb} x") == "unknown-remote"
    assert rule(f"frobnicate {verb} list") is None


@pytest.mark.parametrize("verb", sorted(READS))
def test_a_verb_that_reads_is_allowed(verb: str) -> None:
    assert rule(f"frobnicate {verb} x") is None


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("delete-stack x", "unknown-deletes"),
        ("stack-delete x", "unknown-deletes"),
        ("apps:destroy x", "unknown-deletes"),
        ("DeleteVolume x", "unknown-deletes"),
        ("erase_flash", "unknown-deletes"),
        ("unregistervm x", "unknown-deletes"),
        ("x --force", "unknown-deletes"),
        ("x -rf y", "unknown-deletes"),
        ("x --purge", "unknown-deletes"),
        ("x --delete-all", "unknown-deletes"),
        ("x -q 'DROP TABLE users'", "unknown-deletes"),
        ("root@host", "unknown-remote"),
        ("deploy@web.example.com:/srv", "unknown-remote"),
        ("-X PATCH https://api.example.com/x", "unknown-remote"),
        ("--output=https://api.example.com/x", "unknown-remote"),
        ("-e 'run(1)'", "unknown-code"),
        ("--eval='a; b'", "unknown-code"),
        ("-o /etc/passwd", "system-files"),
        ("--output ~/.bashrc", "start-up-files"),
        ("/dev/sda", "disk"),
        ("'git push --force'", "git-force"),
        ("x git clean -fdx", "git-clean"),
        ("x -- chmod -R 777 /srv/x", "open-rights"),
    ],
)
def test_words_that_are_asked_about(words: str, expected: str) -> None:
    assert rule(f"frobnicate {words}") == expected


@pytest.mark.parametrize(
    "words",
    [
        "",
        "build --release",
        "delete x --dry-run",
        "delete --help",
        "cache purge",
        "--clear-cache",
        "src/delete.py",
        "delete.py",
        "tests/test_remove.sql",
        "--name delete x",
        "-m 'delete all of it'",
        "--force-color",
        "--format json",
        "-o out.txt",
        "--output ./dist",
        "deleted",
        "droplet",
        "left-pad@5.0.1",
        "-X GET https://api.example.com/x",
        "-X POST http://localhost:8000/x",
        "-c config.yml",
    ],
)
def test_words_that_are_allowed(words: str) -> None:
    assert rule(f"frobnicate {words}") is None


def test_the_words_of_a_script_are_looked_at() -> None:
    for command in ("./tool.sh db drop", "python manage.py flush", "node cli.js users delete 3", "bin/console db:wipe"):
        assert rule(command) is not None, command
    for command in (
        "./run.sh --force",
        "python train.py --drop-last",
        "node server.js --port 3000",
        "./deploy.sh staging",
    ):
        assert rule(command) is None, command
