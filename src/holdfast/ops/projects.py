"""Operations on projects, for clients that have no files of their own: pages of the dashboard."""

from __future__ import annotations

from holdfast.errors import BadValue
from holdfast.ops.declare import Operation, Record, Scope, Traits, field
from holdfast.ops.start import TIME_LIMIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from holdfast.ops.kinds import Text
    from holdfast.ops.records import ProcessFields

_NAME = "^[A-Za-z0-9_-]{1,60}$"


def _check_project(value: str) -> None:
    import re

    if not re.fullmatch(_NAME, value):
        raise BadValue("a project has a name of A-Z a-z 0-9 _ -", next="holdfast ps --all")


class ControlProject(Operation):
    """Bring a project up or down in the order of its file, as `holdfast up -d` and `holdfast down` do. The reply is the
    process that does it: its output and its exit code say how that went. A project is known by the processes that
    `holdfast up` started.
    """

    project: Text = field(longest=60, pattern=_NAME, rule=_check_project, help="The name of the project.")
    action: Literal["up", "down"] = field(help="What to do.")

    class Reply(Record):
        process: ProcessFields = field()

    traits = Traits(
        repeatable=False,
        completes=True,
        scope=Scope.OPERATOR,
        audited=True,
        time_limit=TIME_LIMIT,
        route="POST /projects/{project}/control",
        http_name="controlProject",
        positional=("project", "action"),
        returns="process",
    )
