"""Table files."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from forebay.result import Result

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.dataset

    from forebay.client import Client

__all__ = ["Table"]

_TAKEN_MAX = 100_000
"""Rows that are taken by their number at once."""


class Table:
    """A table file (``.albis``), or several of one schema; :meth:`Client.table` makes one.

    It is read by the columns and the rows that are asked for: row groups whose statistics rule the filter out are not
    touched, the filter's columns are read first, and of the others only what has passed. On the worker's host the batches of
    columns that stand alone point into the worker's memory: nothing is copied, but text and bytes for PyArrow (see
    :class:`forebay.Result`). ``columns`` are names, all without any;
    ``filter`` is a condition of SQL such as ``"ts >= $1 and region = 'EU'"``, with ``parameters`` as in :meth:`Client.sql`.
    """

    def __init__(self, client: Client, path: str) -> None:
        self._client = client
        self.path = path

    @property
    def schema(self) -> pyarrow.Schema:
        """The columns."""
        return self._select(None, "false", None).to_arrow().schema

    @property
    def num_rows(self) -> int:
        """Rows; no data is read."""
        rows: int = self._client.sql(f"select count(*) as n from {_text(self.path)}").to_arrow()["n"][0].as_py()
        return rows

    def to_pyarrow(
        self,
        columns: Sequence[str] | None = None,
        filter: str | None = None,
        parameters: Sequence[Any] | Mapping[str, Any] | None = None,
    ) -> pyarrow.Table:
        """The rows as a PyArrow table."""
        return self._select(columns, filter, parameters).to_arrow()

    def reader(
        self,
        columns: Sequence[str] | None = None,
        filter: str | None = None,
        parameters: Sequence[Any] | Mapping[str, Any] | None = None,
    ) -> pyarrow.RecordBatchReader:
        """The rows as a stream of record batches, in bounded memory."""
        return self._select(columns, filter, parameters).reader()

    def scanner(
        self,
        columns: Sequence[str] | None = None,
        filter: str | None = None,
        parameters: Sequence[Any] | Mapping[str, Any] | None = None,
    ) -> pyarrow.dataset.Scanner:
        """The rows as a scanner of PyArrow's datasets, for libraries that take one. It can be read once."""
        import pyarrow.dataset

        return pyarrow.dataset.Scanner.from_batches(self.reader(columns, filter, parameters))

    def take(self, rows: Sequence[int], columns: Sequence[str] | None = None) -> pyarrow.Table:
        """Rows of one file by their number in it, from 0, in the order asked for; a row may be asked for twice.

        Row groups that have none of them are not touched, and of the others these rows are copied. At most 100,000 at once;
        an ``IndexError`` for one that is not there. A file with a column ``row`` of its own can't be asked so.
        """
        import pyarrow
        import pyarrow.compute

        wanted = [operator.index(row) for row in rows]
        if len(wanted) > _TAKEN_MAX:
            raise ValueError(f"{len(wanted)} rows at once: ask for {_TAKEN_MAX} at most")
        if not self.path.lower().endswith(".albis") or any(sign in self.path for sign in "*?["):
            raise ValueError(f"rows have numbers in one file, and {self.path} may be several")
        listed = ", ".join(str(row) for row in sorted(set(wanted)))
        names = None if columns is None else [*_checked(columns), "row"]
        found = Table(self._client, f"{self.path}#row").to_pyarrow(names, f"row in ({listed})" if listed else "false")
        numbers = found.column("row").combine_chunks()
        places = pyarrow.compute.index_in(pyarrow.array(wanted, pyarrow.int64()), value_set=numbers)
        for row, place in zip(wanted, places.to_pylist(), strict=True):
            if place is None:
                raise IndexError(f"row {row} of a table that has {self.num_rows}")
        return found.select([name for name in found.schema.names if name != "row"]).take(places)

    def _select(
        self, columns: Sequence[str] | None, filter: str | None, parameters: Sequence[Any] | Mapping[str, Any] | None
    ) -> Result:
        names = "*" if columns is None else ", ".join(_name(column) for column in _checked(columns))
        condition = "" if filter is None else f" where (\n{filter}\n)"
        return self._client.sql(f"select {names} from {_text(self.path)}{condition}", parameters)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._select(None, None, None).__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return self.num_rows

    def __repr__(self) -> str:
        return f"<forebay.Table {self.path}>"


def _checked(columns: Sequence[str]) -> Sequence[str]:
    if isinstance(columns, str):
        raise TypeError("columns is a list of names")
    if not columns:
        raise ValueError("columns is empty: name at least one, or leave it out")
    return columns


def _name(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
