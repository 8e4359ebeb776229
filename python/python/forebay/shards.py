"""Datasets of shards: compressed tables in a mount that workers search and read by key."""

from __future__ import annotations

import base64
import datetime
import decimal
import itertools
import json
import math
import numbers
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from forebay import _forebay
from forebay.result import AsyncResult, Result

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["AsyncDatasets", "AsyncShards", "Datasets", "Shards"]


class _Opened:
    """What is known of a dataset without asking for it."""

    def __init__(self, shards: _forebay.Shards) -> None:
        self._shards = shards
        # By the columns' names, the key's first.
        self._kinds = dict(zip(shards.columns, shards.kinds, strict=True))

    @property
    def path(self) -> str:
        """Where it is."""
        return self._shards.path

    @property
    def columns(self) -> list[str]:
        """The names of its columns, the key's first."""
        return list(self._shards.columns)

    @property
    def orders(self) -> dict[str, Any]:
        """What is ordered of its replicas, as ``{"pin": {"size": 0.9}, "frozen": True, "ack": "two-workers"}``; empty as it is made."""
        return dict(json.loads(self._shards.orders))

    def _found(
        self, condition: str | Mapping[str, Any] | None, columns: Sequence[str] | None, after: Any, limit: int | None
    ) -> _forebay.Rows:
        asked = None if condition is None else _condition(condition)
        return self._shards.rows_found(asked, _columns(columns), _after(after), limit)

    def _of_keys(self, keys: Iterable[Any], columns: Sequence[str] | None) -> _forebay.Rows:
        return self._shards.rows_of(_to_json(_listed(keys, "keys")), _columns(columns))


class Shards(_Opened):
    """A dataset, as ``fb.shards["/lake/orders.shards"]`` opens it: records by their key, and keys by conditions.

    A condition is text, as on the command line (``"o_clerk = Clerk#000000951 and o_comment *= requests"``), or a mapping in
    the form of ``forebay shard batch`` (``{"attr": "o_clerk", "eq": "Clerk#000000951"}``). It stays at the state of the dataset that
    was there when it was opened, or when something was ordered of its replicas through it: open it anew to see a later one.
    """

    def get(self, key: Any, columns: Sequence[str] | None = None) -> dict[str, Any] | None:
        """The record of a key, with all columns or those that are asked for; ``None`` where there is none."""
        return self.get_many([key], columns)[0]

    def get_many(self, keys: Iterable[Any], columns: Sequence[str] | None = None) -> list[dict[str, Any] | None]:
        """The records of keys, in their order, with one call to each shard that has some."""
        return _records(self._shards.get_many(_to_json(_listed(keys, "keys")), columns and _listed(columns, "columns")), self._kinds)

    def search(self, condition: str | Mapping[str, Any], *, after: Any = None, limit: int | None = None) -> list[Any]:
        """The keys of the records that meet a condition, ascending: those above ``after``, at most ``limit``."""
        return _keys(self._shards.search(_condition(condition), _after(after), limit), self._kinds)

    def scan(self, columns: Sequence[str] | None = None, *, after: Any = None) -> Iterator[dict[str, Any]]:
        """All records, ascending by their keys: those above ``after``, with all columns or those that are asked for.

        They are asked for page by page: what is changed meanwhile may be among them as it was or as it is.
        """
        while keys := self.search(_ALL, after=after, limit=_PAGE):
            yield from (record for record in self.get_many(keys, columns) if record is not None)
            after = keys[-1]

    def get_many_arrow(self, keys: Iterable[Any], columns: Sequence[str] | None = None) -> Result:
        """The records of keys as columns, in the order of the keys; a key without a record has no row.

        They come when they are asked for, as those of a statement: ``to_arrow()``, ``to_pandas()``, ``reader()``, or batch by batch.
        """
        return Result(self._of_keys(keys, columns))

    def search_arrow(
        self,
        condition: str | Mapping[str, Any],
        columns: Sequence[str] | None = None,
        *,
        after: Any = None,
        limit: int | None = None,
    ) -> Result:
        """The records that meet a condition as columns, ascending by their keys: those above ``after``, at most ``limit``.

        They are asked for page by page, and meet the condition as they are given.
        """
        return Result(self._found(condition, columns, after, limit))

    def scan_arrow(self, columns: Sequence[str] | None = None, *, after: Any = None) -> Result:
        """All records as columns, ascending by their keys: those above ``after``. They are asked for as by :meth:`scan`."""
        return Result(self._found(None, columns, after, None))

    def count(self, condition: str | Mapping[str, Any] | None = None) -> int:
        """How many records meet a condition; all of them without one."""
        return int(self._shards.count(None if condition is None else _condition(condition)))

    def get_versioned(self, key: Any) -> tuple[dict[str, Any] | None, int]:
        """The record of a key (``None`` where there is none) with its version, for ``if_version``."""
        return _versioned(self._shards.get_versioned(_to_json(key)), self._kinds)

    def put(self, record: Mapping[str, Any], *, if_absent: bool = False, if_version: int | None = None) -> int:
        """Writes a record, a new one or in place of its key's; gives its version once shared storage has it.

        :class:`forebay.Conflict` where ``if_absent`` or ``if_version`` does not hold. What ends in :class:`forebay.Retry` may
        have been done.
        """
        return self.change([_put(record, if_absent, if_version)])[0]

    def put_many(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Writes records: those of one shard together or not at all, of several shards some perhaps and others not."""
        for together in _batches(records):
            self.change([{"put": record} for record in together])

    def delete(self, key: Any, *, if_version: int | None = None) -> int:
        """Deletes the record of a key; one that is not there is no error."""
        return self.change([_delete(key, if_version)])[0]

    def change(self, changes: Iterable[Mapping[str, Any]]) -> list[int]:
        """Makes changes in the form of ``forebay shard batch``, as ``{"delete": 7, "if_version": 3}``; gives their versions."""
        return list(self._shards.change(_to_json([dict(change) for change in changes])))

    def status(self) -> list[dict[str, Any]]:
        """Its shards: records, bytes, and how each replica stands."""
        return list(json.loads(self._shards.status()))

    def pin(self, *, size: float | None = None) -> tuple[int, int]:
        """Keeps its replicas where they are, each at ``size`` of the input at least (without it at the size that it starts with).

        Has their workers bring what they don't have, and gives how many of how many are there: the others come when there is room. An
        order takes the right to administer the mount, and holds for all who ask the dataset.
        """
        self._shards = self._shards.set_orders(pinned=True, size=size)
        return _brought(self._shards.bring())

    def unpin(self) -> None:
        """Lets its replicas come and go with their load again."""
        self._shards = self._shards.set_orders(pinned=False)

    def freeze(self) -> None:
        """Keeps the layers of its replicas as they are, whatever the load."""
        self._shards = self._shards.set_orders(frozen=True)

    def thaw(self) -> None:
        """Lets the layers of its replicas follow their load again."""
        self._shards = self._shards.set_orders(frozen=False)

    def acknowledge(self, when: str) -> None:
        """Has changes acknowledged when shared storage has them (``"storage"``), or when the disks of two workers do (``"two-workers"``).

        With two workers a change is in shared storage within seconds; what both lose before that is lost, and said (:class:`forebay.DataLost`).
        """
        self._shards = self._shards.set_orders(ack=when)

    def forgo(self) -> list[int]:
        """Gives up changes that two workers' disks have lost both, and gives the numbers of the shards that may have lost some.

        They are waited for a minute. It takes the right to administer the mount.
        """
        return list(self._shards.forgo())

    def follows(self) -> dict[str, Any] | None:
        """The objects that it follows, how often workers look, and how the last refresh ended; ``None`` where it follows nothing."""
        return _follows(self._shards.follows())

    def refresh(self) -> dict[str, Any]:
        """Takes over what has changed of the objects that it follows; gives how many came, changed and went, and what could not be read.

        Objects are brought to this machine's temporary folder, up to 1 GiB or as much as the largest of them. :class:`forebay.Retry` while
        somebody else refreshes it. Takes the right to write in the mount.
        """
        return dict(json.loads(self._shards.refresh()))

    def refresh_every(self, every: str | None) -> None:
        """Has workers refresh it so often (``"5m"``), or not by themselves any more (``None``)."""
        self._shards.refresh_every(every)

    def reshard(
        self, *, shards: int | None = None, size: str | int | None = None, split: int | None = None, merge: int | None = None
    ) -> dict[str, Any]:
        """Gives it so many shards, or as many as have about ``size`` of input each (``"128MiB"``, or bytes), while it is asked and changed.

        Of ranges of keys ``split`` is the shard, numbered from 0, that is cut in two, and ``merge`` the one that becomes one with the next.

        The new ones are made on this machine, one after the other, in its temporary folder. Gives how many there were and are.
        Takes the right to write in the mount. :class:`forebay.Retry` where more is written meanwhile than the new shards could take
        over.
        """
        self._shards, told = self._shards.reshard(_reshard_to(shards, size, split, merge))
        return dict(json.loads(told))

    def __repr__(self) -> str:
        return f"<forebay.Shards {self.path}>"

    def __len__(self) -> int:
        return self.count()

    def __iter__(self) -> Iterator[Any]:
        """The keys of all records, ascending, asked for page by page as those of :meth:`scan`."""
        after = None
        while keys := self.search(_ALL, after=after, limit=_PAGE):
            yield from keys
            after = keys[-1]

    def __contains__(self, key: Any) -> bool:
        return self.get(key, self.columns[:1]) is not None

    def __getitem__(self, key: Any) -> dict[str, Any]:
        record = self.get(key)
        if record is None:
            raise KeyError(key)
        return record


class Datasets:
    """Datasets by their path."""

    def __init__(self, connection: _forebay.Connection) -> None:
        self._connection = connection

    def open(self, path: str) -> Shards:
        """Opens a dataset; :class:`forebay.NotFound` where there is none."""
        return Shards(self._connection.shards(path))

    def __getitem__(self, path: str) -> Shards:
        return self.open(path)


class AsyncShards(_Opened):
    """As :class:`Shards`, awaited."""

    async def get(self, key: Any, columns: Sequence[str] | None = None) -> dict[str, Any] | None:
        """The record of a key; ``None`` where there is none."""
        return (await self.get_many([key], columns))[0]

    async def get_many(self, keys: Iterable[Any], columns: Sequence[str] | None = None) -> list[dict[str, Any] | None]:
        """The records of keys, in their order."""
        asked = _to_json(_listed(keys, "keys"))
        return _records(await self._shards.get_many(asked, columns and _listed(columns, "columns"), aio=True), self._kinds)

    async def search(self, condition: str | Mapping[str, Any], *, after: Any = None, limit: int | None = None) -> list[Any]:
        """The keys of the records that meet a condition."""
        return _keys(await self._shards.search(_condition(condition), _after(after), limit, aio=True), self._kinds)

    async def scan(self, columns: Sequence[str] | None = None, *, after: Any = None) -> AsyncIterator[dict[str, Any]]:
        """All records, ascending by their keys."""
        while keys := await self.search(_ALL, after=after, limit=_PAGE):
            for record in await self.get_many(keys, columns):
                if record is not None:
                    yield record
            after = keys[-1]

    async def __aiter__(self) -> AsyncIterator[Any]:
        """The keys of all records, ascending."""
        after = None
        while keys := await self.search(_ALL, after=after, limit=_PAGE):
            for key in keys:
                yield key
            after = keys[-1]

    def get_many_arrow(self, keys: Iterable[Any], columns: Sequence[str] | None = None) -> AsyncResult:
        """The records of keys as columns. What is awaited is what is asked of these: ``await orders.get_many_arrow(keys).to_arrow()``."""
        return AsyncResult(self._of_keys(keys, columns))

    def search_arrow(
        self,
        condition: str | Mapping[str, Any],
        columns: Sequence[str] | None = None,
        *,
        after: Any = None,
        limit: int | None = None,
    ) -> AsyncResult:
        """The records that meet a condition as columns, ascending by their keys."""
        return AsyncResult(self._found(condition, columns, after, limit))

    def scan_arrow(self, columns: Sequence[str] | None = None, *, after: Any = None) -> AsyncResult:
        """All records as columns, ascending by their keys."""
        return AsyncResult(self._found(None, columns, after, None))

    async def count(self, condition: str | Mapping[str, Any] | None = None) -> int:
        """How many records meet a condition."""
        return int(await self._shards.count(None if condition is None else _condition(condition), aio=True))

    async def get_versioned(self, key: Any) -> tuple[dict[str, Any] | None, int]:
        """The record of a key, with its version."""
        return _versioned(await self._shards.get_versioned(_to_json(key), aio=True), self._kinds)

    async def put(self, record: Mapping[str, Any], *, if_absent: bool = False, if_version: int | None = None) -> int:
        """Writes a record, and gives its version."""
        return (await self.change([_put(record, if_absent, if_version)]))[0]

    async def put_many(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Writes records."""
        for together in _batches(records):
            await self.change([{"put": record} for record in together])

    async def delete(self, key: Any, *, if_version: int | None = None) -> int:
        """Deletes the record of a key."""
        return (await self.change([_delete(key, if_version)]))[0]

    async def change(self, changes: Iterable[Mapping[str, Any]]) -> list[int]:
        """Makes changes in the form of ``forebay shard batch``."""
        return list(await self._shards.change(_to_json([dict(change) for change in changes]), aio=True))

    async def status(self) -> list[dict[str, Any]]:
        """Its shards, and how each replica stands."""
        return list(json.loads(await self._shards.status(aio=True)))

    async def pin(self, *, size: float | None = None) -> tuple[int, int]:
        """Keeps its replicas where they are, at a size at least; gives how many of how many are there."""
        self._shards = await self._shards.set_orders(pinned=True, size=size, aio=True)
        return _brought(await self._shards.bring(aio=True))

    async def unpin(self) -> None:
        """Lets its replicas come and go with their load again."""
        self._shards = await self._shards.set_orders(pinned=False, aio=True)

    async def freeze(self) -> None:
        """Keeps the layers of its replicas as they are."""
        self._shards = await self._shards.set_orders(frozen=True, aio=True)

    async def thaw(self) -> None:
        """Lets the layers of its replicas follow their load again."""
        self._shards = await self._shards.set_orders(frozen=False, aio=True)

    async def acknowledge(self, when: str) -> None:
        """Has changes acknowledged when they are in ``"storage"``, or on the disks of ``"two-workers"``."""
        self._shards = await self._shards.set_orders(ack=when, aio=True)

    async def forgo(self) -> list[int]:
        """Gives up changes that two workers' disks have lost both; the numbers of the shards that may have lost some."""
        return list(await self._shards.forgo(aio=True))

    async def follows(self) -> dict[str, Any] | None:
        """The objects that it follows, and how the last refresh ended."""
        return _follows(await self._shards.follows(aio=True))

    async def refresh(self) -> dict[str, Any]:
        """Takes over what has changed of the objects that it follows."""
        return dict(json.loads(await self._shards.refresh(aio=True)))

    async def refresh_every(self, every: str | None) -> None:
        """Has workers refresh it so often, or not by themselves any more."""
        await self._shards.refresh_every(every, aio=True)

    async def reshard(
        self, *, shards: int | None = None, size: str | int | None = None, split: int | None = None, merge: int | None = None
    ) -> dict[str, Any]:
        """Gives it other shards, as :meth:`Shards.reshard` does."""
        self._shards, told = await self._shards.reshard(_reshard_to(shards, size, split, merge), aio=True)
        return dict(json.loads(told))


class AsyncDatasets:
    """Datasets by their path, awaited."""

    def __init__(self, connection: _forebay.Connection) -> None:
        self._connection = connection

    async def open(self, path: str) -> AsyncShards:
        """Opens a dataset."""
        return AsyncShards(await self._connection.shards(path, aio=True))


# Records of one call.
_TOGETHER = 1024

# What all records meet, and how many of them are asked for at once.
_ALL: Mapping[str, Any] = {"and": []}
_PAGE = 1000


def _listed(values: Iterable[Any], what: str) -> list[Any]:
    """A list of them: a text is one of them, and its letters are none."""
    if isinstance(values, (str, bytes)):
        raise TypeError(f"{what} is a list, as in [{values!r}]")
    return list(values)


def _columns(columns: Sequence[str] | None) -> list[str] | None:
    return None if columns is None else _listed(columns, "columns")


def _brought(brought: tuple[int, int]) -> tuple[int, int]:
    here, replicas = brought
    return int(here), int(replicas)


def _follows(text: str) -> dict[str, Any] | None:
    follows = json.loads(text)
    return None if follows is None else dict(follows)


def _reshard_to(shards: int | None, size: str | int | None, split: int | None, merge: int | None) -> str:
    if [shards, size, split, merge].count(None) == 3:
        if shards is not None:
            return str(int(shards))
        if split is not None:
            return f"split:{int(split)}"
        if merge is not None:
            return f"merge:{int(merge)}"
        if size is not None:
            # Without a unit it would be a number of shards.
            return f"{int(size)}B" if str(size).isdigit() else str(size)
    raise ValueError("one of shards=, size=, split= and merge= says which shards there are to be")


def _batches(records: Iterable[Mapping[str, Any]]) -> Iterable[list[Mapping[str, Any]]]:
    rest = iter(records)
    while together := list(itertools.islice(rest, _TOGETHER)):
        yield together


def _put(record: Mapping[str, Any], if_absent: bool, if_version: int | None) -> dict[str, Any]:
    change: dict[str, Any] = {"put": dict(record)}
    if if_absent:
        change["if_absent"] = True
    if if_version is not None:
        change["if_version"] = if_version
    return change


def _delete(key: Any, if_version: int | None) -> dict[str, Any]:
    return {"delete": key} if if_version is None else {"delete": key, "if_version": if_version}


def _versioned(text: str, kinds: Mapping[str, str]) -> tuple[dict[str, Any] | None, int]:
    answer = json.loads(text)
    return _record(answer["record"], kinds), answer["version"]


def _condition(condition: str | Mapping[str, Any]) -> str:
    return condition if isinstance(condition, str) else _to_json(dict(condition))


def _after(key: Any) -> str | None:
    return None if key is None else _to_json(key)


def _to_json(value: Any) -> str:
    try:
        return json.dumps(value, default=_written, allow_nan=False)
    except ValueError:
        return json.dumps(_spelled(value), default=_written)


def _written(value: Any) -> Any:
    """A value that JSON has no form for, as shards read it."""
    if isinstance(value, bytes | bytearray | memoryview):
        return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, datetime.datetime):
        return (value if value.tzinfo is None else value.astimezone(datetime.timezone.utc).replace(tzinfo=None)).isoformat()
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    if isinstance(value, numbers.Integral):
        return int(value)
    raise TypeError(
        f"{value!r} is no value of a shard: a string, a number, a bool, bytes, a date, a datetime, a Decimal or None"
    )


def _spelled(value: Any) -> Any:
    """The same with text for the numbers that JSON has none for, infinity and not-a-number."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {name: _spelled(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_spelled(inner) for inner in value]
    return value


def _of_json(value: Any, kind: str) -> Any:
    if isinstance(value, dict) and value.keys() == {"base64"}:
        return base64.b64decode(value["base64"])
    if isinstance(value, str) and kind == "bytes":
        return value.encode()
    if isinstance(value, str) and kind == "number":
        return float(value)
    # JSON has a number or, where that would not be exact, text.
    if isinstance(value, int | float | str) and kind == "decimal":
        return decimal.Decimal(str(value))
    return value


def _keys(text: str, kinds: Mapping[str, str]) -> list[Any]:
    kind = next(iter(kinds.values()))
    return [_of_json(key, kind) for key in json.loads(text)]


def _record(record: dict[str, Any] | None, kinds: Mapping[str, str]) -> dict[str, Any] | None:
    return record and {name: _of_json(value, kinds[name]) for name, value in record.items()}


def _records(text: str, kinds: Mapping[str, str]) -> list[dict[str, Any] | None]:
    return [_record(record, kinds) for record in json.loads(text)]
