"""Every command of README and docs runs as it is printed, in a clean home, and prints what the page says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.shell import ROOT, commands_of, page_shell, pages

#: How many commands a page marks as not run: they need a network, another program or service, or change the clone.
NOT_RUN = {
    "README.md": 6,
    "docs/approvals.md": 4,
    "docs/backends.md": 13,
    "docs/architecture.md": 4,
    "docs/benchmarks.md": 9,
    "docs/commands.md": 1,
    "docs/installing.md": 8,
    "docs/agent.md": 6,
    "docs/dashboard.md": 1,
    "docs/integrations.md": 2,
    "docs/listing.md": 1,
    "docs/mcp.md": 2,
    "docs/reading.md": 1,
    "docs/reliability.md": 2,
    "docs/restarts.md": 1,
    "docs/service.md": 4,
    "docs/sinks.md": 2,
    "docs/takeover.md": 1,
    "docs/tui.md": 2,
}


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_the_commands_of_a_page_run_as_printed(page: Path) -> None:
    commands = commands_of(page)
    assert len([command for command in commands if command.why_not]) == NOT_RUN.get(str(page.relative_to(ROOT)), 0)
    to_run = [command for command in commands if not command.why_not]
    if to_run:
        with page_shell() as shell:
            for command in to_run:
                shell.check(command)


def test_a_page_that_says_something_else_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "<!-- not run: all (a service) -->\n```sh\nfalse\n```\n"
        "<!-- before: export X=proc_000000000001 -->\n```console\n"
        "$ echo $X\nproc_5b1f0a7c93de\n$ echo proc_5b1f\nproc_0000\n"
        "$ echo 'exit 3 after 2.0s'\nexit 3 after 1m02s\n$ echo exit 3\nexit 4\n$ false\n```\n"
    )
    service, *right, wrong, failing = commands_of(page)
    assert (service.why_not, len(right)) == ("a service", 4)
    with page_shell() as shell:
        for command in right:
            shell.check(command)
        for command in (wrong, failing):
            with pytest.raises(AssertionError):
                shell.check(command)
