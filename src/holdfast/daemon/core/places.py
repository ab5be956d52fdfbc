"""Every place where processes run: this machine, and the places of other backends, which are opened when needed.

A place other than this machine has a directory `places/KEY` in the home: `place.json` says what it is and is written
before the place is made, `keeper` has the bundles of its processes, or copies of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import time
import traceback
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any

from holdfast import files
from holdfast.daemon.core.log import note
from holdfast.daemon.core.recovery import Recovery
from holdfast.daemon.core.registry import Registry
from holdfast.daemon.core.supervisor import Supervisor
from holdfast.daemon.core.tasks import BackgroundTasks
from holdfast.errors import BadValue, HoldfastError, Unreachable
from holdfast.model.events import Event
from holdfast.model.probes.usage import Track
from holdfast.model.process import HeldProcess, ProcessId, StreamExtent
from holdfast.places.absent import AbsentPlace
from holdfast.places.backend import Backend, PlaceSpec, Sandbox, Site
from holdfast.places.backends import kinds
from holdfast.places.base import ExecutionPlace, PlaceGone, Refused
from holdfast.places.keeper_link import KeeperLink
from holdfast.records import Struct, asdict, field
from holdfast.store.store import Store
from holdfast_keeper.protocol import Message

_LEAVE_TIMEOUT = 2.0
#: How often places are looked at that may be unused.
_IDLE_PAUSE = 5.0
#: After the code of a backend has failed, until it is tried again.
_FAILED_PAUSE = 1.0
_FILE = "place.json"


class _OpenPlace(Struct):
    """A place whose keeper is connected, or is being connected."""

    place: ExecutionPlace
    tasks: list[asyncio.Task[Any]]
    is_reachable: bool = False
    #: Starts that are under way in it: it is not closed meanwhile.
    uses: int = 0
    unused_since: float = field(default_factory=time.monotonic)


class Places:
    """`local` is this machine. `tables` are the tables of backends in config.toml."""

    def __init__(
        self,
        local: ExecutionPlace,
        home: str,
        tables: Mapping[str, Mapping[str, Any]],
        environ: Mapping[str, str],
        hello: Message,
        registry: Registry,
        store: Store,
        background: BackgroundTasks,
    ) -> None:
        self.local = local
        self.tables = tables
        self.environ = environ
        self._home = home
        self._directory = f"{home}/places"
        self._hello = {**hello, "revive": None}
        self._registry = registry
        self._store = store
        self._background = background
        self._known: dict[str, ExecutionPlace] = {}
        self._specs: dict[str, PlaceSpec] = {}
        self._open: dict[str, _OpenPlace] = {}
        self._turns: dict[str, asyncio.Lock] = {}
        self._stored: set[str] = set()
        #: Set once there is one: it needs the places itself.
        self.supervisor: Supervisor | None = None
        for key, spec in _read_all(self._directory):
            self._specs[key] = spec
            self._stored.add(key)

    @property
    def instance(self) -> str:
        """Identifies this instance in the labels of containers: another home is another instance."""
        found = os.stat(self._home)
        return f"{found.st_dev:x}-{found.st_ino:x}"

    # Which place.

    def get(self, key: str | None) -> ExecutionPlace:
        """The place with this key; this machine for None."""
        if key is None:
            return self.local
        place = self._known.get(key)
        if place is None:
            place = self._known[key] = self._make(key)
        return place

    def of_id(self, process_id: ProcessId) -> ExecutionPlace:
        """Where a process runs; this machine for one that is unknown."""
        process = self._registry.get(process_id)
        return self.local if process is None else self.get(process.meta.place)

    def keeper_of(self, process_id: ProcessId) -> KeeperLink:
        return self.of_id(process_id).keeper

    def tracks_of(self, process: HeldProcess) -> dict[ProcessId, Track]:
        """What was last measured in its place."""
        return self.get(process.meta.place).usage.tracks

    async def measured(self, process: HeldProcess) -> dict[str, StreamExtent]:
        """The extent of its logs as they are on disk."""
        place = self.get(process.meta.place)
        try:
            return await place.read(place.extents, process)
        except OSError:
            return process.streams

    def directory_of(self, process_id: ProcessId) -> str:
        """The directory with its bundle."""
        return self.of_id(process_id).directory

    def grouped(self, processes: Collection[HeldProcess]) -> list[tuple[ExecutionPlace, list[HeldProcess]]]:
        """The processes of each place."""
        found: dict[str | None, list[HeldProcess]] = {}
        for process in processes:
            found.setdefault(process.meta.place, []).append(process)
        return [(self.get(key), held) for key, held in found.items()]

    def all(self) -> list[ExecutionPlace]:
        """This machine, and every place that has a directory."""
        return [self.local, *(self.get(key) for key in self._specs)]

    def choose(self, backend: str | None, given: Mapping[str, Any], owner: str) -> ExecutionPlace:
        """The place for a start: `given` are its options, `owner` its task or session. Nothing is made yet.

        Raises BadValue, NotFound, Unsupported.
        """
        if backend in (None, "local"):
            for name in given:
                raise BadValue(f"{name} needs a backend other than this machine", next="holdfast backends")
            return self.local
        assert backend is not None
        chosen = self.backend(backend)
        task = owner if chosen.is_per_task else ""
        spec = PlaceSpec(backend, task, chosen.check_options(given), self._kind_of(backend))
        self._specs.setdefault(spec.key, spec)
        return self.get(spec.key)

    def backend(self, name: str) -> Backend:
        """Raises NotFound, Unsupported, BadValue."""
        table = dict(self.tables.get(name, {}))
        table.pop("kind", None)
        kind = self._kind_of(name)
        found = kinds.find(kind)
        if found is None and kind == name and name in self.tables:
            raise BadValue(f"[backends.{name}] in config.toml has no kind", next='add kind = "podman", or another kind')
        if found is None and kind == name and any(spec.backend == name for spec in self.specs().values()):
            what = f"there is no backend {name!r}: its table is not in config.toml any more"
            raise BadValue(what, next="put it back and: holdfast daemon restart; or: holdfast backends clean")
        if found is None:
            what = f"there is no backend {name[:80]!r}" if kind == name else f"backend {name}: no kind {kind!r}"
            raise BadValue(what, next="holdfast backends")
        return found(name, table)

    def _kind_of(self, backend: str) -> str:
        return str(self.tables.get(backend, {}).get("kind", backend))

    def _backend_of(self, spec: PlaceSpec) -> Backend:
        """The backend that made the place, also where the configuration has forgotten it or gives its name to another.

        Raises BadValue, Unsupported.
        """
        if self._kind_of(spec.backend) == spec.kind:
            return self.backend(spec.backend)
        found = kinds.find(spec.kind)
        if found is None:
            raise BadValue(f"backend {spec.backend}: no kind {spec.kind!r}", next="holdfast backends")
        return found(spec.backend, {})

    def backend_names(self) -> list[str]:
        """All that can be used: built in, installed or configured; and those of places that are known."""
        return list(dict.fromkeys([*kinds.names(), *self.tables, *(spec.backend for spec in self.specs().values())]))

    def specs(self) -> dict[str, PlaceSpec]:
        """Of all places that have a directory, by key."""
        return {key: spec for key, spec in self._specs.items() if key in self._stored}

    def is_open(self, key: str) -> bool:
        return key in self._open

    def _make(self, key: str) -> ExecutionPlace:
        spec = self._specs.get(key)
        site = self._site(key)
        if spec is None:
            return AbsentPlace("unknown", site, f"nothing is known of the place {key}")
        try:
            place = self._backend_of(spec).open(spec, site)
        except HoldfastError as failed:
            place = AbsentPlace(spec.backend, site, failed.message)
        place.key, place.name, place.task = key, spec.backend, spec.task
        place.keeper.backend = spec.backend
        return place

    def _site(self, key: str) -> Site:
        return Site(
            directory=f"{self._directory}/{key}/keeper",
            cache=f"{self._home}/runtimes",
            instance=self.instance,
            environ=self.environ,
            hello=self._hello,
            note=note,
            running=lambda: [one for one in self._registry.active() if one.meta.place == key],
        )

    # Opening and closing.

    async def reopen(self) -> None:
        """After a start of the daemon: connect to every place with processes that may live."""
        assert self.supervisor is not None
        for stored in self._stored:
            await Recovery(self.get(stored), self._registry, self.supervisor, self._background).adopt_bundles()
        for key in {process.meta.place for process in self._registry.all.values() if _is_open(process)}:
            if key is not None:
                self._begin(self.get(key))

    @contextlib.asynccontextmanager
    async def using(self, place: ExecutionPlace) -> AsyncIterator[None]:
        """While something is started in the place, whose keeper answers. The place is made where it does not exist.

        Raises HoldfastError with the reason when it cannot be made or reached.
        """
        if place.key is None:
            yield
            return
        async with self._turn(place.key):
            opened = await self._reached(place)
            opened.uses += 1
        try:
            yield
        finally:
            opened.uses -= 1
            opened.unused_since = time.monotonic()

    async def _reached(self, place: ExecutionPlace) -> _OpenPlace:
        key = place.key
        assert key is not None
        is_new = key not in self._stored
        if is_new:
            await asyncio.to_thread(_write, f"{self._directory}/{key}", self._specs[key])
            self._stored.add(key)
        opened = self._open.get(key) or self._begin(place)
        try:
            await place.keeper.answered()
        except PlaceGone as gone:  # the next attempt makes it anew
            await asyncio.wait(opened.tasks[:1])
            opened = self._begin(place)
            try:
                await place.keeper.answered()
            except OSError as failed:
                raise self._unreachable(place, failed) from gone
        except OSError as failed:
            if not self._is_needed(key):
                await self._end(key)
                await self._drop_unused(key, is_new)
            raise self._unreachable(place, failed) from failed
        except HoldfastError:
            if not self._is_needed(key):
                await self._end(key)
                await self._drop_unused(key, is_new)
            raise
        return opened

    def _unreachable(self, place: ExecutionPlace, failed: OSError) -> Unreachable:
        assert place.key is not None
        host = self._specs[place.key].options.get("host")
        is_backend = place.name == "ssh" and host in self.tables  # the user may have meant that
        step = f"--backend {host} is the backend of config.toml: use it instead of --host" if is_backend else None
        return Unreachable(f"{place.name}: {failed.strerror or failed}", next=step or "holdfast backends")

    async def _drop_unused(self, key: str, is_new: bool) -> None:
        """A place that has never opened and has no process is not kept."""
        if is_new and not any(one.meta.place == key for one in self._registry.all.values()):
            self._stored.discard(key)
            await asyncio.to_thread(shutil.rmtree, f"{self._directory}/{key}", ignore_errors=True)

    def _begin(self, place: ExecutionPlace) -> _OpenPlace:
        key = place.key
        assert key is not None
        assert self.supervisor is not None
        recovery = Recovery(place, self._registry, self.supervisor, self._background)
        opened = self._open[key] = _OpenPlace(place, [])

        def on_hello(hello: Message) -> None:
            place.fd_store.hurry()
            forgotten = set(_names(f"{self._directory}/{key}/forgotten"))
            finished = [name for name in hello.get("finished", ()) if name not in forgotten]
            recovery.on_hello({**hello, "finished": finished})
            self._background.start(place.login.refresh(), "login environment")
            self._background.start(self._forget_forgotten(place), "forget")

        opened.tasks = [
            self._background.start(
                self._hold(place, on_hello, partial(self.supervisor.apply_fact, key)), f"place {key}"
            ),
            self._background.start(place.fd_store.run(), "fd store"),
            self._background.start(place.usage.run(), "sampler"),
        ]
        return opened

    async def _hold(
        self, place: ExecutionPlace, on_hello: Callable[[Message], None], on_fact: Callable[[Message], None]
    ) -> None:
        """Stay connected, until the place is gone: then its processes have ended."""
        key = place.key
        assert key is not None

        def on_change(is_reachable: bool) -> None:
            self._announce("place.reachable" if is_reachable else "place.unreachable", key)

        place.keeper.on_change = on_change
        try:
            while True:
                try:
                    await place.keeper.run(on_hello, on_fact)
                except PlaceGone:
                    raise
                except Exception:  # noqa: BLE001 - a defect of a backend must not make its place unreachable for ever
                    note("place-failed", place=key, why=traceback.format_exc())
                await asyncio.sleep(_FAILED_PAUSE)
        except PlaceGone as gone:
            note("place-gone", place=key, why=str(gone))
            self._announce("place.gone", key, why=str(gone))
            opened = self._open.pop(key, None)
            for task in opened.tasks[1:] if opened is not None else ():
                task.cancel()
            await self._end_processes(place, str(gone))

    async def _end_processes(self, place: ExecutionPlace, why: str) -> None:
        """Of a place that is gone: with the end that their bundle has, else as lost, with this reason."""
        assert self.supervisor is not None
        for process in [one for one in self._registry.all.values() if one.meta.place == place.key and _is_open(one)]:
            report = await asyncio.to_thread(place.recorded_end, process.id)
            if report is not None:
                await self.supervisor.take(report)
            else:
                await self.supervisor.lose(process.id, why)

    async def watch_idle(self) -> None:
        """Close places that were not used for longer than they allow, for ever."""
        while True:
            await asyncio.sleep(_IDLE_PAUSE)
            for key in list(self._open):
                async with self._turn(key):
                    opened = self._open.get(key)
                    if opened is None or self._is_needed(key):
                        continue
                    limit = opened.place.idle_limit
                    if limit is not None and time.monotonic() - opened.unused_since > limit:
                        await self._discard(opened.place)

    def _is_needed(self, key: str) -> bool:
        opened = self._open.get(key)
        if opened is None:
            return False
        if opened.uses or any(one.meta.place == key and _is_open(one) for one in self._registry.all.values()):
            opened.unused_since = time.monotonic()
            return True
        return False

    async def discard(self, key: str, by_force: bool) -> int:
        """End a place, and what runs in it; how many processes did. Raises HoldfastError."""
        place = self.get(key)
        async with self._turn(key):
            held = [one for one in self._registry.all.values() if one.meta.place == key and not one.has_ended]
            if held and not by_force:
                return -len(held)
            await self._discard(place)
            await self._end_processes(place, "its place was closed: holdfast backends stop --all")
            return len(held)

    async def _discard(self, place: ExecutionPlace) -> None:
        assert place.key is not None
        note("place-closed", place=place.key)
        try:
            await place.discard()
        except (OSError, HoldfastError, Refused) as failed:
            note("place-not-closed", place=place.key, why=str(failed))
        await self._end(place.key)
        self._announce("place.closed", place.key)

    async def _end(self, key: str) -> None:
        """Stop the connections to a place. Its next use opens it anew, also where it has just been found to be gone."""
        if (opened := self._open.pop(key, None)) is not None:
            for task in opened.tasks:
                task.cancel()
            await asyncio.wait(opened.tasks)
        if (place := self._known.pop(key, None)) is not None:
            place.close()

    async def leave(self) -> None:
        """The daemon stops on purpose: keepers without commands may exit."""
        links = [self.local.keeper, *(opened.place.keeper for opened in self._open.values())]
        await asyncio.gather(*(_leave(link) for link in links if link.is_reachable))

    def close(self) -> None:
        for place in [self.local, *self._known.values()]:
            place.close()

    def _turn(self, key: str) -> asyncio.Lock:
        return self._turns.setdefault(key, asyncio.Lock())

    def _announce(self, topic: str, key: str, **more: object) -> None:
        spec = self._specs[key]
        fields = {"place": key, "backend": spec.backend, "task": spec.task or None, **more}
        self._store.record_soon([Event(topic, time.time(), fields)])

    # Removing processes.

    async def forget(self, process: HeldProcess) -> None:
        """Remove its bundle. Where the place does not answer, the copy here, and the rest when it answers again.

        Raises Refused, Unreachable.
        """
        place = self.get(process.meta.place)
        if place.key is None or place.keeper.is_reachable:
            await place.keeper.request("forget", id=process.id)
        else:
            await asyncio.to_thread(self._put_off, place, process.id)
        place.forget(process.id)

    def _put_off(self, place: ExecutionPlace, process_id: ProcessId) -> None:
        place.remove_bundle(process_id)
        if place.is_mirrored:
            directory = f"{self._directory}/{place.key}/forgotten"
            os.makedirs(directory, mode=0o700, exist_ok=True)
            files.replace(f"{directory}/{process_id}", b"")

    async def _forget_forgotten(self, place: ExecutionPlace) -> None:
        directory = f"{self._directory}/{place.key}/forgotten"
        for process_id in await asyncio.to_thread(_names, directory):
            try:
                await place.keeper.request("forget", id=process_id)
            except Refused:
                pass  # it was forgotten before
            except Unreachable:
                return
            await asyncio.to_thread(os.unlink, f"{directory}/{process_id}")

    # Sandboxes of all backends.

    async def orphans(self) -> list[tuple[Backend, Sandbox]]:
        """What carries the label of this instance, and no process needs."""
        found = []
        for name in self.backend_names():
            with contextlib.suppress(HoldfastError, OSError):
                backend = self.backend(name)
                for sandbox in await backend.sandboxes(self.instance, self.environ):
                    if not self._is_held(sandbox.key):
                        found.append((backend, sandbox))
        return found

    def _is_held(self, key: str) -> bool:
        opened = self._open.get(key)
        uses = opened.uses if opened is not None else 0
        return bool(uses) or any(one.meta.place == key and _is_open(one) for one in self._registry.all.values())


def _is_open(process: HeldProcess) -> bool:
    """Whether its place may have more to say about it."""
    return not process.is_queued and not (process.has_ended and process.output_closed)


async def _leave(link: KeeperLink) -> None:
    with contextlib.suppress(Unreachable, Refused, TimeoutError):
        async with asyncio.timeout(_LEAVE_TIMEOUT):
            await link.request("leave")


def _read_all(directory: str) -> Iterable[tuple[str, PlaceSpec]]:
    for key in _names(directory):
        try:
            with open(f"{directory}/{key}/{_FILE}", "rb") as file:
                value = json.load(file)
            kind = str(value.get("kind", value["backend"]))
            yield key, PlaceSpec(str(value["backend"]), str(value["task"]), dict(value["options"]), kind)
        except (OSError, ValueError, KeyError, TypeError) as broken:
            note("place-unreadable", place=key, why=repr(broken))


def _write(directory: str, spec: PlaceSpec) -> None:
    try:
        os.makedirs(f"{directory}/keeper", mode=0o700, exist_ok=True)
        files.replace(f"{directory}/{_FILE}", json.dumps(asdict(spec)).encode(), finish=os.fsync)
    except OSError as failed:
        raise HoldfastError(f"cannot make a place: {failed.strerror}") from failed


def _names(directory: str) -> list[str]:
    try:
        return sorted(os.listdir(directory))
    except FileNotFoundError:
        return []
