"""Which process is meant by an id, the start of one, or a name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from holdfast.errors import Ambiguous, BadValue, NotFound
from holdfast.model.ids import ProcessId, id_prefix, is_id, is_name
from holdfast.model.process import Process

_NAMED_AT_MOST = 5


def identify(text: str, processes: Mapping[ProcessId, Process]) -> Process:
    """The one process that `text` stands for.

    A name stands for the process that runs under it, else for the one that did so last. Raises BadValue when it can
    stand for nothing, NotFound when it stands for none, Ambiguous when several ids begin so.
    """
    exact = processes.get(ProcessId(text))
    if exact is not None:
        return exact
    prefix = id_prefix(text)
    if not is_id(text) and prefix is None and not is_name(text):
        raise BadValue(f"{text[:80]!r} is no id, prefix of an id or name", next="holdfast ps -a")
    found = _named(text, processes.values())
    if found is None and prefix is not None:
        found = _begins_with(prefix, text, processes)
    if found is None:
        raise NotFound(f"no process {text}")
    return found


def _named(name: str, processes: Iterable[Process]) -> Process | None:
    bearers = [process for process in processes if process.meta.name == name]
    return max(bearers, key=lambda process: (not process.has_ended, process.meta.requested_at), default=None)


def _begins_with(prefix: str, text: str, processes: Mapping[ProcessId, Process]) -> Process | None:
    fitting = sorted(process_id for process_id in processes if process_id.startswith(prefix))
    if len(fitting) > 1:
        some = ", ".join(fitting[:_NAMED_AT_MOST])
        raise Ambiguous(f"{text} may be any of {len(fitting)} processes: {some}")
    return processes[fitting[0]] if fitting else None
