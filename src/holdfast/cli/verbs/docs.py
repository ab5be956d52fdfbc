"""`holdfast docs`."""

from __future__ import annotations

import os
import sys

from holdfast.cli import console
from holdfast.cli.options import JSON, Option, Verb, load
from holdfast.cli.verbs import VERBS
from holdfast.errors import BadValue, HoldfastError, NotFound
from holdfast.extras import docs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.cli.options import Given

VERB = Verb(
    "docs",
    synopsis=["docs [TOPIC]", "docs --list [--json]"],
    about="""
        Opens the documentation that belongs to this installation. TOPIC is a verb, such as run, whose manual page is
        opened with man, or a page of the documentation, such as restarts. Without TOPIC it is the list of the pages.

        On a terminal it uses $MANPAGER or $PAGER, else less. Elsewhere, or without these, it prints the text. Where a
        verb and a page have the same name, the verb is meant; with .md it is the page.
    """,
    options=[Option("--list", help="List all topics."), JSON],
    exits=[("0", "Shown."), ("125", "There is no such topic.")],
    examples=[("The pages by task", "holdfast docs"), ("One of them", "holdfast docs configuration")],
)


def run(given: Given) -> int:
    if len(given.words) > 1 or (given.list and given.words):
        raise BadValue("docs takes one topic, or --list", next=given.usage)
    if given.list:
        return _list(given)
    pages = _pages()
    topic = given.words[0] if given.words else "README"
    if given.json:
        raise BadValue("--json goes with --list", next="holdfast docs --list --json")
    if topic in VERBS:
        return _open_verb(topic)
    page = topic.removesuffix(".md").removeprefix("docs/")
    if page not in pages:
        raise NotFound(f"there is no topic {topic[:80]!r}{_similar(page, pages)}", next="holdfast docs --list")
    with open(f"{docs()}/{page}.md", encoding="utf-8") as file:
        return _show(file.read())


def _pages() -> list[str]:
    try:
        return sorted(name.removesuffix(".md") for name in os.listdir(docs()) if name.endswith(".md"))
    except OSError as missing:
        raise HoldfastError(
            f"the documentation is not in {docs()}: {missing.strerror}", next="install holdfast again"
        ) from missing


def _similar(topic: str, pages: Sequence[str]) -> str:
    import difflib

    close = difflib.get_close_matches(topic, [*pages, *VERBS], 1)
    return f" (did you mean {close[0]}?)" if close else ""


def topics() -> list[tuple[str, str, str]]:
    """Each with its kind, and what it is about."""
    return [
        *((name, "verb", summary) for name, summary in VERBS.items()),
        *((page, "page", _title(page)) for page in _pages()),
    ]


def _list(given: Given) -> int:
    if given.json:
        console.out_json([{"topic": topic, "kind": kind, "about": about} for topic, kind, about in topics()])
    else:
        console.out(console.table(("TOPIC", "KIND", "ABOUT"), topics()))
    return 0


def _title(page: str) -> str:
    with open(f"{docs()}/{page}.md", encoding="utf-8") as file:
        return file.readline().lstrip("# ").strip()


def _open_verb(verb: str) -> int:
    page = f"{sys.prefix}/share/man/man1/holdfast-{verb}.1"
    if sys.stdout.isatty() and os.path.exists(page) and (man := _find("man")) is not None:
        return _call([man, page])
    from holdfast.cli.help import usage

    return _show(usage.verb_page(load(verb)))


def _show(text: str) -> int:
    """With a pager on a terminal."""
    import shlex

    words = (
        shlex.split(os.environ.get("MANPAGER") or os.environ.get("PAGER") or "less -FRX") if sys.stdout.isatty() else []
    )
    pager = _find(words[0]) if words else None
    if pager is None:
        sys.stdout.write(text if text.endswith("\n") else f"{text}\n")
        return 0
    import subprocess

    done = subprocess.run([pager, *words[1:]], input=text.encode(), check=False)
    return 0 if done.returncode == 0 else 125


def _find(program: str) -> str | None:
    import shutil

    return shutil.which(program)


def _call(command: list[str]) -> int:
    """Become this program: it has the terminal."""
    sys.stdout.flush()
    os.execv(command[0], command)
