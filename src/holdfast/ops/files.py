"""Operations that copy files to and from the places where commands run."""

from __future__ import annotations

from holdfast.ops.declare import Operation, Record, Scope, Traits, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from holdfast.ops.kinds import Flag, Integer, Size, Text

_PLACE = (
    "`local`; a process (its id, its name, or a unique prefix); `task/T` for the newest process of task T; or a "
    "backend for the newest process of the session there, without one for the place that `start` would use."
)
_PATH = "A relative path begins in the directory of the process, else in the default one there; `~` is the home there."
_LONGEST_PATH = 4096


class CopyReply(Record):
    path: Text = field(help="The file or directory in the place.")
    files: Integer = field(help="Files and symbolic links.")
    bytes: Size = field(help="Bytes of all files.")


class PutFile(Operation):
    """Write a file or a directory into a place. A file is replaced at once, or stays as it was.

    The bytes are sent after the request. A directory appears when it is complete, or its files are replaced one by one
    where it exists. The archive has one file or directory at its top, `.` for the content of a directory; if `path` is
    a directory, it is copied into it. Permission bits and times are kept.
    """

    place: Text = field("local", longest=4096, required_text=True, help=_PLACE)
    path: Text = field(longest=_LONGEST_PATH, required_text=True, help=_PATH)
    format: Literal["tar", "file"] = field("tar", help="The bytes are a tar archive, or one file as it is.")
    mode: Integer | None = field(
        None,
        most=0o777,
        help="With `file`: its permission bits. Default: those that it has, or 420 (0644) if it is new.",
    )

    Reply = CopyReply
    traits = Traits(repeatable=False, uploads=True, scope=Scope.CHECKED, route="PUT /files", http_name="putFile")


class GetFile(Operation):
    """Read a file or a directory from a place. The bytes are sent before the reply."""

    place: Text = field("local", longest=4096, required_text=True, help=_PLACE)
    path: Text = field(longest=_LONGEST_PATH, required_text=True, help=_PATH)
    format: Literal["tar", "file"] = field("tar", help="As a tar archive, or the bytes of one file.")
    follow: Flag = field(False, help="If the path is a symbolic link, read what it points to. Always so with `file`.")

    Reply = CopyReply
    traits = Traits(repeatable=False, streams=True, scope=Scope.CHECKED, route="GET /files", http_name="getFile")
