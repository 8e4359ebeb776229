"""The rows of a statement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, AsyncIterator, Iterator

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from forebay import _forebay

__all__ = ["Result"]


class _Rows:
    """What waits and what does not wait for rows."""

    def __init__(self, rows: _forebay.Rows) -> None:
        self._rows = rows

    @property
    def columns(self) -> list[str]:
        """Names of the columns; none for a statement without rows."""
        return [name for name, _ in self._rows.columns()]

    @property
    def schema(self) -> pyarrow.Schema:
        """The columns as a PyArrow schema."""
        import pyarrow

        return pyarrow.schema(self._rows)

    @property
    def progress(self) -> tuple[int, int] | None:
        """Bytes that the plan has said it will read, as far as that is known, and bytes that were read. ``None`` once the
        rows were given out."""
        return self._rows.progress()

    @property
    def plan(self) -> str | None:
        """The physical plan, one operator a line, while no rows were asked for."""
        return self._rows.plan()

    def __repr__(self) -> str:
        columns = ", ".join(f"{name}: {kind}" for name, kind in self._rows.columns())
        return f"<{type(self).__module__.partition('.')[0]}.{type(self).__name__} ({columns})>"

    def __arrow_c_schema__(self) -> object:
        return self._rows.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._rows.__arrow_c_stream__(requested_schema)


class Result(_Rows):
    """The rows of a statement, in any form.

    Rows come when they are asked for. :meth:`to_arrow`, :meth:`to_pandas`, :meth:`to_polars` and :meth:`show` take all of
    them and keep them, so that they can be called one after the other. Iterating, :meth:`reader` and handing the result to
    a library that knows the Arrow PyCapsule interface (``pyarrow.table(result)``, ``polars.DataFrame(result)``, DuckDB)
    stream them instead, once, in bounded memory. Nothing is copied on the way.
    """

    def to_arrow(self) -> pyarrow.Table:
        """All rows as a PyArrow table."""
        import pyarrow

        self._rows.collect()
        return pyarrow.table(self._rows)

    def to_pandas(self, **options: Any) -> pandas.DataFrame:
        """All rows as a pandas frame; ``options`` are those of ``pyarrow.Table.to_pandas``."""
        return self.to_arrow().to_pandas(**options)

    def to_polars(self) -> polars.DataFrame:
        """All rows as a Polars frame."""
        import polars

        self._rows.collect()
        return polars.DataFrame(self._rows)

    def show(self, rows: int = 20) -> None:
        """Prints the first rows."""
        print(_shown(*self._rows.text(rows), limit=rows))

    def reader(self) -> pyarrow.RecordBatchReader:
        """The rows as a stream of PyArrow record batches."""
        import pyarrow

        # Through Python, so that Ctrl-C comes out as what it is.
        return pyarrow.RecordBatchReader.from_batches(self.schema, iter(self))

    def __iter__(self) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow

        here = self._rows.batches()
        if here is not None:
            yield from (pyarrow.record_batch(batch) for batch in here)
            return
        while (batch := self._rows.next()) is not None:
            yield pyarrow.record_batch(batch)


class AsyncResult(_Rows):
    """As :class:`Result`, awaited."""

    async def to_arrow(self) -> pyarrow.Table:
        """All rows as a PyArrow table."""
        import pyarrow

        await self._rows.collect(aio=True)
        return pyarrow.table(self._rows)

    async def to_pandas(self, **options: Any) -> pandas.DataFrame:
        """All rows as a pandas frame."""
        return (await self.to_arrow()).to_pandas(**options)

    async def to_polars(self) -> polars.DataFrame:
        """All rows as a Polars frame."""
        import polars

        await self._rows.collect(aio=True)
        return polars.DataFrame(self._rows)

    async def show(self, rows: int = 20) -> None:
        """Prints the first rows."""
        print(_shown(*await self._rows.text(rows, aio=True), limit=rows))

    async def __aiter__(self) -> AsyncIterator[pyarrow.RecordBatch]:
        import pyarrow

        here = self._rows.batches()
        if here is not None:
            for batch in here:
                yield pyarrow.record_batch(batch)
            return
        while (batch := await self._rows.next(aio=True)) is not None:
            yield pyarrow.record_batch(batch)


def _shown(table: str, all_rows: int, *, limit: int) -> str:
    more = all_rows - limit
    return table.rstrip("\n") + (f"\n({limit:,} of {all_rows:,} rows)" if more > 0 else "")
