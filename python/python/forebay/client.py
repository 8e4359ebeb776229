"""The client."""

from __future__ import annotations

import atexit
import json
import os
import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from forebay import _forebay
from forebay.entries import Entry, Loaded, Usage
from forebay.errors import AlreadyExists, Conflict
from forebay.files import BUFFER_BYTES, ObjectReader, ObjectWriter, parse_mode, wrap
from forebay.mounts import Mounts
from forebay.nodes import Nodes
from forebay.place import Place, size_of
from forebay.result import Result
from forebay.shards import Datasets
from forebay.table import Table

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from forebay.aio import AsyncClient
    from forebay.filesystem import ForebayFileSystem

__all__ = ["Client", "connect", "up"]


class Client:
    """A way into a cluster; :func:`connect` and :func:`up` make one.

    Safe to use from many threads. It goes through ``pickle`` by its address, and connects again by itself in another
    process, be it a Dask worker, a Ray task or the child of a fork. Paths are ``/MOUNT/KEY``; sizes are bytes.
    """

    def __init__(self, place: Place, embedded: _forebay.Embedded | None = None) -> None:
        self._place = place
        self._connection = place.connection()
        self._embedded = embedded

    # SQL

    def sql(self, statement: str, parameters: Sequence[Any] | Mapping[str, Any] | None = None) -> Result:
        """Starts one SQL statement: ``fb.sql("select count(*) from '/lake/sales/*.parquet'").to_arrow()``.

        A statement that changes something (CREATE, DROP, SET, COPY, INSERT) is done when this returns; others give rows when
        they are asked for. ``parameters`` are values for ``$1``, ``$2`` (a sequence) or ``$name`` (a mapping), each of which has to
        stand in the statement.
        """
        return Result(self._connection.sql(statement, parameters))

    def script(self, statements: str) -> list[Result]:
        """Runs the statements of a script one after the other, each to its end."""
        results = []
        for statement in self._connection.statements(statements):
            rows = self._connection.sql(statement)
            rows.collect()
            results.append(Result(rows))
        return results

    def table(self, path: str) -> Table:
        """A table file, or a folder or pattern of them: ``fb.table("/lake/sales.albis").to_pyarrow(["id"], "ts > 5")``."""
        return Table(self, path)

    # bytes

    def read(self, path: str, offset: int = 0, length: int | None = None) -> memoryview:
        """Bytes of an object, of the version that is current under the mount's rule.

        On the worker's host nothing is copied: the view points into the worker's memory, which holds the bytes as long as
        the view is alive. ``bytes(view)`` copies them. A negative ``offset`` counts from the end; ``length`` ``None``
        reads to the end. What is past the end is left out.
        """
        return memoryview(self._connection.read(path, offset, length))

    def open(
        self,
        path: str,
        mode: str = "rb",
        *,
        buffering: int = BUFFER_BYTES,
        encoding: str | None = None,
        newline: str | None = None,
    ) -> Any:
        """Opens an object as a file.

        ``rb`` and ``r`` read one version, the current one; ``wb`` and ``w`` write the object whole, which nobody sees before
        ``close()``; ``xb`` and ``x`` do so only when there is no such object (:class:`AlreadyExists` otherwise). A ``with`` block
        that ends by an exception writes nothing.
        """
        direction, text = parse_mode(mode)
        if direction == "r":
            reader = ObjectReader(self._connection.open(path), buffering if buffering > 1 else BUFFER_BYTES)
            return wrap(reader, text, encoding, newline)
        return wrap(self._writer(path, direction == "x"), text, encoding, newline)

    def _writer(self, path: str, creates: bool, autocommit: bool = True) -> ObjectWriter:
        if creates and self.exists(path):
            raise AlreadyExists(f"{path}: there is such an object already", path)
        return ObjectWriter(self._connection.writer(path, creates), path, creates, autocommit)

    def put(self, path: str, data: Buffer, *, if_absent: bool = False) -> Entry:
        """Writes an object; back when shared storage has it. With ``if_absent`` only when there is none
        (:class:`AlreadyExists`)."""
        try:
            return Entry._of(self._connection.put(path, data, if_absent))
        except Conflict as error:
            if if_absent:
                raise AlreadyExists(error.message, error.path) from None
            raise

    def delete(self, path: str | Iterable[str]) -> None:
        """Deletes an object, or many. One that is not there is no error."""
        self._connection.delete([path] if isinstance(path, str) else list(path))

    def copy(self, source: str, target: str) -> Entry:
        """Copies an object, also from mount to mount."""
        return Entry._of(self._connection.copy(source, target))

    # names

    def ls(self, path: str = "/", *, recursive: bool = False) -> list[Entry]:
        """What is directly below a path, or with ``recursive`` all objects below it; of ``/`` the mounts."""
        if path.strip("/") == "":
            mounts = [f"/{name}/" for name in self.mounts]
            if recursive:
                return [entry for mount in mounts for entry in self.ls(mount, recursive=True)]
            return [Entry(mount, True, 0, None, None) for mount in mounts]
        return [Entry._of(entry) for entry in self._connection.list(path, recursive)]

    def stat(self, path: str) -> Entry:
        """The object at a path, or the folder that it is."""
        return Entry._of(self._connection.stat(path))

    def exists(self, path: str) -> bool:
        """Whether there is an object at a path, or something below it."""
        try:
            self._connection.stat(path)
        except FileNotFoundError:
            return False
        return True

    @property
    def mounts(self) -> Mounts:
        """The mounts: a mapping with ``add``, ``set`` and ``remove``."""
        return Mounts(self._connection)

    @property
    def nodes(self) -> Nodes:
        """Temporary data, below ``/tmp``: ``fb.nodes.put("/tmp/job/part", data)``."""
        return Nodes(self._connection.nodes())

    @property
    def shards(self) -> Datasets:
        """Datasets of shards: ``fb.shards["/lake/orders.shards"].search("o_clerk = Clerk#000000951")``."""
        return Datasets(self._connection)

    # tiers

    def load(self, path: str, *, columns: Sequence[str] | None = None, where: str | None = None) -> Loaded:
        """Brings everything below a path into the tiers, by what all others leave of the bandwidth. Back when all of it is there.

        With ``columns`` and ``where``, a condition as SQL says it, what a query of these would read: of Parquet and table files
        these columns, of the row groups and pages that the condition leaves over.
        """
        return Loaded(*self._connection.load(path, columns, where))

    def pin(self, path: str, *, load: bool = True) -> None:
        """Keeps everything below a path in the tiers from now on, and loads it; what can't be loaded is not pinned."""
        self._connection.pin(path, load)

    def unpin(self, path: str) -> None:
        """Lifts the pin of a path."""
        self._connection.unpin(path)

    @property
    def pins(self) -> list[str]:
        """Paths that are kept."""
        return list(self._connection.pins())

    def free(self, path: str) -> int:
        """Drops what is cached below a path; gives the bytes. Shared storage keeps everything."""
        freed: int = self._connection.free(path)
        return freed

    def refresh(self, path: str) -> None:
        """Forgets versions and listings below a path, so that the next look asks shared storage."""
        self._connection.refresh(path)

    def usage(self, path: str) -> Usage:
        """How much is below a path, and how much of it is cached."""
        return Usage(*self._connection.usage(path))

    def status(self) -> dict[str, Any]:
        """The cluster: version, mounts with their counters, pins, workers with their tiers. Bytes and seconds."""
        status: dict[str, Any] = json.loads(self._connection.status())
        return status

    # the rest

    @property
    def address(self) -> str:
        """``host:port`` of the coordinator."""
        return self._place.address

    @property
    def aio(self) -> AsyncClient:
        """The same client for ``async`` programs: ``await fb.aio.read(path)``."""
        from forebay.aio import AsyncClient

        return AsyncClient(self._place, self._embedded, self._connection)

    @property
    def fs(self) -> ForebayFileSystem:
        """The same cluster as an fsspec file system."""
        from forebay.filesystem import ForebayFileSystem

        return ForebayFileSystem(self.address, **self._place.arguments()[1])

    def close(self) -> None:
        """Lets go of the connection, and stops what :func:`up` started: its client is :class:`Closed` then. Bytes that were read stay
        readable."""
        self._connection.close(self._embedded is not None)
        if self._embedded is not None:
            self._embedded.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<forebay.Client of {self.address}{' (embedded)' if self._embedded is not None else ''}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, self._place.arguments()


def _again(address: str, options: dict[str, Any]) -> Client:
    """A client out of a pickle: it connects at first use."""
    return Client(Place(address, **options))


def connect(
    address: str | None = None,
    *,
    token: str | None = None,
    tls_ca: str | os.PathLike[str] | None = None,
    tls_cert: str | os.PathLike[str] | None = None,
    tls_key: str | os.PathLike[str] | None = None,
    in_place: bool = True,
    memory: int | str | None = None,
    partitions: int | None = None,
) -> Client:
    """Connects to a running cluster, as ``forebay up`` starts one.

    ``address`` is the coordinator's ``host:port``, with those of its standbys after it and commas between; else ``$FOREBAY_COORDINATOR``, else ``127.0.0.1:7400``. ``token`` is one
    that ``forebay token add`` made; else ``$FOREBAY_TOKEN``; the user who started a cluster on this machine needs none.
    ``tls_ca`` is a PEM file and switches TLS on; ``tls_cert`` and ``tls_key`` are shown where the cluster asks for them. ``in_place=False`` reads by copies even beside a worker. SQL runs in this
    process: ``memory`` (``"4GiB"``) bounds what queries hold before they spill to disk, ``partitions`` is how many parts they
    are split into (the cores by default).
    """
    tls = {"tls_ca": tls_ca, "tls_cert": tls_cert, "tls_key": tls_key}
    place = Place(address, token=token, **tls, in_place=in_place, memory=memory, partitions=partitions)
    client = Client(place)
    client._connection.connect()
    return client


def up(
    data_dir: str | os.PathLike[str] = "forebay-data",
    *,
    dram: int | str | None = None,
    disk: int | str | None = None,
    listen: str = "127.0.0.1:0",
    token: str | None = None,
    in_place: bool = True,
    memory: int | str | None = None,
    partitions: int | None = None,
) -> Client:
    """Runs coordinator, worker and engine in this process: no server is needed.

    ``data_dir`` keeps the mounts and what is cached; it comes back warm. ``dram`` and ``disk`` are the capacities of the tiers
    (a quarter of the memory and of the free disk by default; ``disk=0`` for none). Other processes of this machine can
    connect to :attr:`Client.address`. It stops with :meth:`Client.close`, the end of a ``with`` block, or the interpreter.
    """
    embedded = _forebay.Embedded.start(**_settings(data_dir, dram, disk, listen, token, in_place))
    _stop_at_exit(embedded)
    client = Client(Place(embedded.address, token=token, in_place=in_place, memory=memory, partitions=partitions), embedded)
    client._connection.connect()
    return client


def _settings(
    data_dir: str | os.PathLike[str],
    dram: int | str | None,
    disk: int | str | None,
    listen: str,
    token: str | None,
    in_place: bool,
) -> dict[str, Any]:
    return {
        "data_dir": os.fspath(data_dir),
        "listen": listen,
        "dram": size_of(dram),
        "disk": size_of(disk),
        "token": token,
        "in_place": in_place,
    }


_embedded: weakref.WeakSet[_forebay.Embedded] = weakref.WeakSet()


def _stop_at_exit(embedded: _forebay.Embedded) -> None:
    _embedded.add(embedded)


@atexit.register
def _stop_all() -> None:
    for embedded in list(_embedded):
        embedded.close()
