"""Temporary data: what lives between two steps of a job, in the workers' memory and disks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from forebay import _forebay
from forebay.errors import AlreadyExists, Error, Invalid, NotFound, _make
from forebay.place import size_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from typing_extensions import Buffer

__all__ = ["AsyncNodes", "Node", "NodeUsage", "Nodes"]


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the temporary namespace."""

    #: Its path, as in ``/tmp/job/part``.
    path: str
    #: ``file``, ``key-value``, ``table``, ``directory`` or ``bag``.
    type: str
    #: Bytes of a file or value; 0 of a container.
    size: int
    #: The location that it asks for, as :meth:`Nodes.stat` says; ``None`` where it asks for none, and in listings.
    location: str | None = field(default=None, compare=False)
    #: ``dram`` or ``disk``, as :meth:`Nodes.stat` says; ``None`` in listings.
    storage_class: str | None = field(default=None, compare=False)

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]

    @property
    def container(self) -> bool:
        """Whether it holds nodes."""
        return self.type in ("table", "directory", "bag")


@dataclass(frozen=True, slots=True)
class NodeUsage:
    """What the files and values in a container have, and may have."""

    #: Bytes of the files and values in it; with a quota with those in containers in it.
    size: int
    #: So many at most; ``None`` where there is no quota.
    quota: int | None


class Nodes:
    """The temporary namespace: typed nodes by their paths below ``/tmp``; ``Client.nodes`` gives it.

    A *key-value* has one value, replaced as a whole; a *file* is appended to, and read and written over anywhere; a *directory*
    holds anything, a *table* key-values, and a *bag* files, which can be read as one. Nothing is kept when its worker is lost
    (:class:`forebay.DataLost`): make it again. ``lease`` has what a job made go away with it.
    """

    def __init__(self, nodes: _forebay.Nodes) -> None:
        self._nodes = nodes

    def put(self, path: str, data: Buffer, *, storage_class: str | None = None, location: str | None = None) -> None:
        """Puts a value: anything with bytes. Readers see the old value or the new one, whole. It lies as the old one did, or as
        its container says, unless a ``storage_class`` or ``location`` is asked for, see :meth:`create`."""
        self._nodes.put(path, data, storage_class, location)

    def get(self, path: str) -> memoryview:
        """A key-value's value."""
        return memoryview(self._nodes.get(path))

    def put_many(self, values: Mapping[str, Buffer]) -> dict[str, Error]:
        """Puts values by their paths, small ones a thousand with one message for each container. Each is put by itself: those
        that were not come back, each path with its error."""
        return dict(self._nodes.put_many(list(values.items())))

    def get_many(self, paths: Iterable[str]) -> list[memoryview | Error | None]:
        """Values in the order of their paths, small ones a thousand with one message for each container: ``None`` where there
        is no such node, and an error, which is not raised, in the place of what can't be read."""
        return _values(self._nodes.get_many(_paths(paths)))

    def put_arrow(self, path: str, data: Any) -> None:
        """Puts what Arrow libraries can read (a table, a record batch, a data frame) as one value."""
        self._nodes.put(path, _to_ipc(data))

    def get_arrow(self, path: str) -> Any:
        """The ``pyarrow.Table`` that was put with :meth:`put_arrow`; its columns point into the bytes that came."""
        return _from_ipc(path, self._nodes.get(path))

    def create(
        self,
        path: str,
        type: str = "file",
        *,
        enumerable: bool = True,
        storage_class: str | None = None,
        location: str | None = None,
        exist_ok: bool = False,
    ) -> None:
        """Makes an empty node. One that is not ``enumerable`` is in no listing and no bag. With ``exist_ok`` one of that type
        may be there, and stays as it is; without it a key-value that is there is empty then. Its bytes lie as ``storage_class``
        says: ``dram`` is memory first and disk when that is full, ``disk`` is disk only. They go to workers with the label
        ``location`` as long as these have room; ``"any"`` to all alike, and without one where its container's go."""
        # One would be replaced.
        if exist_ok and type == "key-value" and (there := self._nodes.stat(path)) is not None and there[0] == type:
            return
        try:
            self._nodes.create(path, type, enumerable, storage_class, location)
        except AlreadyExists:
            if not exist_ok or self.stat(path).type != type:
                raise

    def mkdir(
        self,
        path: str,
        type: str = "directory",
        *,
        storage_class: str | None = None,
        location: str | None = None,
        quota: int | str | None = None,
        parents: bool = False,
        exist_ok: bool = False,
    ) -> None:
        """Makes a directory, a table or a bag; with ``parents`` the directories on the way to it. ``storage_class`` and
        ``location`` are for what is in it and asks for nothing else, see :meth:`create`; ``quota`` is what
        all files and values in it may have, see :meth:`set_quota`."""
        most = _quota_of(path, quota)
        if parents:
            for parent in _parents(path):
                self.create(parent, "directory", exist_ok=True)
        self.create(path, type, storage_class=storage_class, location=location, exist_ok=exist_ok)
        if most is not None:
            self.set_quota(path, most)

    def append(self, path: str, data: Buffer, *, storage_class: str | None = None, location: str | None = None) -> int:
        """Adds bytes to the end of a file; gives its length. With a ``storage_class`` or ``location`` the file is made where
        there is none; one that is there keeps its own (:class:`forebay.Invalid` when its class is another one)."""
        length: int = self._nodes.append(path, data, storage_class, location)
        return length

    def write(self, path: str, offset: int, data: Buffer) -> int:
        """Writes over bytes of a file, and on at its end; gives its length. Files have no holes."""
        length: int = self._nodes.write(path, offset, data)
        return length

    def read(self, path: str, offset: int = 0, length: int | None = None) -> memoryview:
        """Bytes of a file or value; fewer at its end."""
        return memoryview(self._nodes.read(path, offset, length))

    def bag(self, path: str) -> memoryview:
        """All files of a bag one after the other, in byte order of their names; those of bags in it where these stand."""
        return memoryview(self._nodes.bag(path))

    def ls(self, path: str = "/tmp") -> list[Node]:
        """What is directly in a container, in byte order of names."""
        return _nodes_of(path, self._nodes.list(path))

    def stat(self, path: str) -> Node:
        """The node at a path."""
        return _node_of(path, self._nodes.stat(path))

    def exists(self, path: str) -> bool:
        """Whether there is a node at a path."""
        return self._nodes.stat(path) is not None

    def rm(self, path: str, *, recursive: bool = False) -> None:
        """Deletes a node; a container with all that is in it when ``recursive``, else only an empty one
        (:class:`forebay.NotEmpty`)."""
        self._nodes.delete(path, recursive)

    def rename(self, path: str, to: str) -> None:
        """Renames a node, at once or not at all. A key-value replaces a key-value; a container that is there takes it in."""
        self._nodes.rename(path, to)

    def set_quota(self, path: str, quota: int | str | None) -> None:
        """From now on the files and values in a container, and in containers in it, have so many bytes at most, or ``"10GiB"``: what
        is more is refused (:class:`forebay.NoSpace`). What is there stays. ``None``: as many as there is room for. Where it holds
        containers that are with other workers, :class:`forebay.Invalid`: set it before they are made."""
        self._nodes.set_quota(path, _quota_of(path, quota))

    def usage(self, path: str) -> NodeUsage:
        """What the files and values in a container have, and may have."""
        return NodeUsage(*self._nodes.usage(path))

    def lease(self, path: str, seconds: float | None) -> None:
        """The node goes away, with all that is in it, unless this is called again within ``seconds``; ``None``: it stays."""
        self._nodes.lease(path, seconds)


class AsyncNodes:
    """As :class:`Nodes`, awaited."""

    def __init__(self, nodes: _forebay.Nodes) -> None:
        self._nodes = nodes

    async def put(self, path: str, data: Buffer, *, storage_class: str | None = None, location: str | None = None) -> None:
        """Puts a value: anything with bytes."""
        await self._nodes.put(path, data, storage_class, location, aio=True)

    async def get(self, path: str) -> memoryview:
        """A key-value's value."""
        return memoryview(await self._nodes.get(path, aio=True))

    async def put_many(self, values: Mapping[str, Buffer]) -> dict[str, Error]:
        """Puts values by their paths with few messages; gives those that were not put, each path with its error."""
        return dict(await self._nodes.put_many(list(values.items()), aio=True))

    async def get_many(self, paths: Iterable[str]) -> list[memoryview | Error | None]:
        """Values in the order of their paths: ``None`` where there is no such node, an error in the place of what can't be
        read."""
        return _values(await self._nodes.get_many(_paths(paths), aio=True))

    async def put_arrow(self, path: str, data: Any) -> None:
        """Puts what Arrow libraries can read as one value."""
        await self._nodes.put(path, _to_ipc(data), aio=True)

    async def get_arrow(self, path: str) -> Any:
        """The ``pyarrow.Table`` that was put with :meth:`put_arrow`."""
        return _from_ipc(path, await self._nodes.get(path, aio=True))

    async def create(
        self,
        path: str,
        type: str = "file",
        *,
        enumerable: bool = True,
        storage_class: str | None = None,
        location: str | None = None,
        exist_ok: bool = False,
    ) -> None:
        """Makes an empty node."""
        # One would be replaced.
        if exist_ok and type == "key-value" and (there := await self._nodes.stat(path, aio=True)) is not None and there[0] == type:
            return
        try:
            await self._nodes.create(path, type, enumerable, storage_class, location, aio=True)
        except AlreadyExists:
            if not exist_ok or (await self.stat(path)).type != type:
                raise

    async def mkdir(
        self,
        path: str,
        type: str = "directory",
        *,
        storage_class: str | None = None,
        location: str | None = None,
        quota: int | str | None = None,
        parents: bool = False,
        exist_ok: bool = False,
    ) -> None:
        """Makes a directory, a table or a bag."""
        most = _quota_of(path, quota)
        if parents:
            for parent in _parents(path):
                await self.create(parent, "directory", exist_ok=True)
        await self.create(path, type, storage_class=storage_class, location=location, exist_ok=exist_ok)
        if most is not None:
            await self.set_quota(path, most)

    async def append(self, path: str, data: Buffer, *, storage_class: str | None = None, location: str | None = None) -> int:
        """Adds bytes to the end of a file, which is made where there is none when it is said how it is to lie."""
        length: int = await self._nodes.append(path, data, storage_class, location, aio=True)
        return length

    async def write(self, path: str, offset: int, data: Buffer) -> int:
        """Writes over bytes of a file, and on at its end; gives its length."""
        length: int = await self._nodes.write(path, offset, data, aio=True)
        return length

    async def read(self, path: str, offset: int = 0, length: int | None = None) -> memoryview:
        """Bytes of a file or value; fewer at its end."""
        return memoryview(await self._nodes.read(path, offset, length, aio=True))

    async def bag(self, path: str) -> memoryview:
        """All files of a bag one after the other."""
        return memoryview(await self._nodes.bag(path, aio=True))

    async def ls(self, path: str = "/tmp") -> list[Node]:
        """What is directly in a container, in byte order of names."""
        return _nodes_of(path, await self._nodes.list(path, aio=True))

    async def stat(self, path: str) -> Node:
        """The node at a path."""
        return _node_of(path, await self._nodes.stat(path, aio=True))

    async def exists(self, path: str) -> bool:
        """Whether there is a node at a path."""
        return await self._nodes.stat(path, aio=True) is not None

    async def rm(self, path: str, *, recursive: bool = False) -> None:
        """Deletes a node; a container with all that is in it when ``recursive``."""
        await self._nodes.delete(path, recursive, aio=True)

    async def rename(self, path: str, to: str) -> None:
        """Renames a node, at once or not at all."""
        await self._nodes.rename(path, to, aio=True)

    async def set_quota(self, path: str, quota: int | str | None) -> None:
        """From now on the files and values in a container have so many bytes at most; ``None``: as there is room for."""
        await self._nodes.set_quota(path, _quota_of(path, quota), aio=True)

    async def usage(self, path: str) -> NodeUsage:
        """What the files and values in a container have, and may have."""
        return NodeUsage(*await self._nodes.usage(path, aio=True))

    async def lease(self, path: str, seconds: float | None) -> None:
        """The node goes away unless this is called again within ``seconds``; ``None``: it stays."""
        await self._nodes.lease(path, seconds, aio=True)


def _parents(path: str) -> list[str]:
    """The paths of the directories that it is in, ``/tmp`` left out, the outermost first."""
    names = path.split("/")
    return ["/".join(names[:end]) for end in range(3, len(names))]


def _quota_of(path: str, quota: int | str | None) -> int | None:
    """Bytes of a quota, before anything is made."""
    try:
        most = size_of(quota)
    except ValueError as error:
        raise Invalid(f"{path}: {error}", path) from None
    if most is not None and not 0 <= most < 1 << 64:
        raise Invalid(f"{path}: {quota!r} is no quota: it is 0 bytes or more, and less than 16 EiB", path)
    return most


def _values(values: list[Any]) -> list[memoryview | Error | None]:
    return [value if value is None or isinstance(value, Error) else memoryview(value) for value in values]


def _nodes_of(path: str, entries: list[tuple[str, str, int]]) -> list[Node]:
    return [Node(f"{path}/{name}", type, size) for name, type, size in entries]


def _node_of(path: str, stat: tuple[str, int, str | None, str] | None) -> Node:
    if stat is None:
        raise _make(NotFound, f"{path}: there is no such node", path)
    return Node(path, *stat)


def _to_ipc(data: Any) -> Any:
    import pyarrow

    reader = pyarrow.RecordBatchReader.from_stream(data if hasattr(data, "__arrow_c_stream__") else pyarrow.table(data))
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, reader.schema) as writer:
        for batch in reader:
            writer.write_batch(batch)
    return sink.getvalue()


def _from_ipc(path: str, data: Any) -> Any:
    import pyarrow

    try:
        return pyarrow.ipc.open_stream(pyarrow.py_buffer(data)).read_all()
    except pyarrow.ArrowInvalid as error:
        raise Invalid(f"{path}: it is no table that put_arrow has put: {error}", path) from None


def _paths(paths: Iterable[str]) -> list[str]:
    if isinstance(paths, str):
        raise TypeError("paths is a list of paths")
    return list(paths)
