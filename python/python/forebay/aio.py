"""The client for ``async`` programs.

Awaiting gives the event loop free; cancelling a task cancels what it waits for.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from forebay import _forebay
from forebay.client import _settings, _stop_at_exit
from forebay.entries import Entry, Loaded, Usage
from forebay.errors import AlreadyExists, Conflict
from forebay.mounts import AsyncMounts
from forebay.nodes import AsyncNodes
from forebay.place import Place
from forebay.result import AsyncResult
from forebay.shards import AsyncDatasets

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["AsyncClient", "AsyncResult", "connect", "up"]


class AsyncClient:
    """As :class:`forebay.Client`, awaited. :func:`connect` and :func:`up` make one, or ``fb.aio`` of a client."""

    def __init__(
        self, place: Place, embedded: _forebay.Embedded | None = None, connection: _forebay.Connection | None = None
    ) -> None:
        self._place = place
        self._embedded = embedded
        self._connection = connection or place.connection()

    async def sql(self, statement: str, parameters: Sequence[Any] | Mapping[str, Any] | None = None) -> AsyncResult:
        """Starts one SQL statement."""
        return AsyncResult(await self._connection.sql(statement, parameters, aio=True))

    async def read(self, path: str, offset: int = 0, length: int | None = None) -> memoryview:
        """Bytes of an object, without a copy on the worker's host."""
        return memoryview(await self._connection.read(path, offset, length, aio=True))

    async def put(self, path: str, data: Buffer, *, if_absent: bool = False) -> Entry:
        """Writes an object; done when shared storage has it."""
        try:
            return Entry._of(await self._connection.put(path, data, if_absent, aio=True))
        except Conflict as error:
            if if_absent:
                raise AlreadyExists(error.message, error.path) from None
            raise

    async def delete(self, path: str | Iterable[str]) -> None:
        """Deletes an object, or many."""
        await self._connection.delete([path] if isinstance(path, str) else list(path), aio=True)

    async def copy(self, source: str, target: str) -> Entry:
        """Copies an object."""
        return Entry._of(await self._connection.copy(source, target, aio=True))

    async def ls(self, path: str = "/", *, recursive: bool = False) -> list[Entry]:
        """What is directly below a path, or with ``recursive`` all objects below it; of ``/`` the mounts."""
        if path.strip("/") == "":
            mounts = [f"/{name}/" for name in await self.mounts.list()]
            if recursive:
                return [entry for mount in mounts for entry in await self.ls(mount, recursive=True)]
            return [Entry(mount, True, 0, None, None) for mount in mounts]
        return [Entry._of(entry) for entry in await self._connection.list(path, recursive, aio=True)]

    async def stat(self, path: str) -> Entry:
        """The object at a path, or the folder that it is."""
        return Entry._of(await self._connection.stat(path, aio=True))

    async def exists(self, path: str) -> bool:
        """Whether there is an object at a path, or something below it."""
        try:
            await self._connection.stat(path, aio=True)
        except FileNotFoundError:
            return False
        return True

    @property
    def mounts(self) -> AsyncMounts:
        """The mounts: ``list``, ``add``, ``set`` and ``remove``."""
        return AsyncMounts(self._connection)

    @property
    def nodes(self) -> AsyncNodes:
        """Temporary data, below ``/tmp``: ``await fb.nodes.put("/tmp/job/part", data)``."""
        return AsyncNodes(self._connection.nodes())

    @property
    def shards(self) -> AsyncDatasets:
        """Datasets of shards: ``await fb.shards.open("/lake/orders.shards")``."""
        return AsyncDatasets(self._connection)

    async def load(self, path: str, *, columns: Sequence[str] | None = None, where: str | None = None) -> Loaded:
        """Brings everything below a path into the tiers, or what a query of ``columns`` and ``where`` would read of it."""
        return Loaded(*await self._connection.load(path, columns, where, aio=True))

    async def pin(self, path: str, *, load: bool = True) -> None:
        """Keeps everything below a path in the tiers from now on, and loads it."""
        await self._connection.pin(path, load, aio=True)

    async def unpin(self, path: str) -> None:
        """Lifts the pin of a path."""
        await self._connection.unpin(path, aio=True)

    async def pins(self) -> list[str]:
        """Paths that are kept."""
        return list(await self._connection.pins(aio=True))

    async def free(self, path: str) -> int:
        """Drops what is cached below a path; gives the bytes."""
        freed: int = await self._connection.free(path, aio=True)
        return freed

    async def refresh(self, path: str) -> None:
        """Forgets versions and listings below a path."""
        await self._connection.refresh(path, aio=True)

    async def usage(self, path: str) -> Usage:
        """How much is below a path, and how much of it is cached."""
        return Usage(*await self._connection.usage(path, aio=True))

    async def status(self) -> dict[str, Any]:
        """The cluster."""
        status: dict[str, Any] = json.loads(await self._connection.status(aio=True))
        return status

    @property
    def address(self) -> str:
        """``host:port`` of the coordinator."""
        return self._place.address

    async def close(self) -> None:
        """Lets go of the connection, and stops what :func:`up` started."""
        self._connection.close(self._embedded is not None)
        if self._embedded is not None:
            await self._embedded.close(aio=True)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<forebay.aio.AsyncClient of {self.address}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, self._place.arguments()


def _again(address: str, options: dict[str, Any]) -> AsyncClient:
    """A client out of a pickle: it connects at first use."""
    return AsyncClient(Place(address, **options))


async def connect(address: str | None = None, **options: Any) -> AsyncClient:
    """Connects to a running cluster; options are those of :func:`forebay.connect`."""
    client = AsyncClient(Place(address, **options))
    await client._connection.connect(aio=True)
    return client


async def up(
    data_dir: str | os.PathLike[str] = "forebay-data",
    *,
    dram: int | str | None = None,
    disk: int | str | None = None,
    listen: str = "127.0.0.1:0",
    token: str | None = None,
    in_place: bool = True,
    memory: int | str | None = None,
    partitions: int | None = None,
) -> AsyncClient:
    """Runs coordinator, worker and engine in this process; options are those of :func:`forebay.up`."""
    embedded = await _forebay.Embedded.start(**_settings(data_dir, dram, disk, listen, token, in_place), aio=True)
    _stop_at_exit(embedded)
    place = Place(embedded.address, token=token, in_place=in_place, memory=memory, partitions=partitions)
    client = AsyncClient(place, embedded)
    await client._connection.connect(aio=True)
    return client
