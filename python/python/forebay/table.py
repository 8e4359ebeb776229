"""Table files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from forebay.result import Result

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.dataset

    from forebay.client import Client

__all__ = ["Table"]


class Table:
    """A table file (``.albis``), or several of one schema; :meth:`Client.table` makes one.

    It is read by the columns and the rows that are asked for: row groups whose statistics rule the filter out are not
    touched, the filter's columns are read first, and of the others only what has passed. On the worker's host the batches of
    columns that stand alone point into the worker's memory: nothing is copied. ``columns`` are names, all without any;
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

    def _select(
        self, columns: Sequence[str] | None, filter: str | None, parameters: Sequence[Any] | Mapping[str, Any] | None
    ) -> Result:
        if isinstance(columns, str):
            raise TypeError("columns is a list of names")
        if columns is not None and not columns:
            raise ValueError("columns is empty: name at least one, or leave it out")
        names = "*" if columns is None else ", ".join(_name(column) for column in columns)
        condition = "" if filter is None else f" where {filter}"
        return self._client.sql(f"select {names} from {_text(self.path)}{condition}", parameters)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._select(None, None, None).__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return self.num_rows

    def __repr__(self) -> str:
        return f"<forebay.Table {self.path}>"


def _name(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
