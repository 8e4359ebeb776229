"""The rows of a statement, or of a dataset of shards."""

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
        """The columns as a PyArrow schema, as :meth:`to_arrow` and iterating give them."""
        import pyarrow

        return without_views(pyarrow.schema(self._rows))

    @property
    def progress(self) -> tuple[int, int] | None:
        """Bytes that the plan has said it will read, as far as that is known, and bytes that were read. ``None`` once the
        rows were given out, and of records of shards."""
        return self._rows.progress()

    @property
    def plan(self) -> str | None:
        """The physical plan of a statement, one operator a line, while no rows were asked for."""
        return self._rows.plan()

    def __repr__(self) -> str:
        columns = ", ".join(f"{name}: {kind}" for name, kind in self._rows.columns())
        return f"<{type(self).__module__.partition('.')[0]}.{type(self).__name__} ({columns})>"

    def __arrow_c_schema__(self) -> object:
        return self._rows.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._rows.__arrow_c_stream__(requested_schema)


class Result(_Rows):
    """The rows of a statement, or of a dataset of shards, in any form.

    Rows come when they are asked for. :meth:`to_arrow`, :meth:`to_pandas`, :meth:`to_polars` and :meth:`show` take all of
    them and keep them, so that they can be called one after the other. Iterating, :meth:`reader` and handing the result to
    a library that knows the Arrow PyCapsule interface (``pyarrow.table(result)``, ``polars.DataFrame(result)``, DuckDB)
    stream them instead, once, in bounded memory. Nothing is copied on the way, but text and bytes for PyArrow: the engine has them
    as views, which few of its functions know. ``pyarrow.table(result)`` leaves them so.
    """

    def to_arrow(self) -> pyarrow.Table:
        """All rows as a PyArrow table, text as ``string`` and bytes as ``binary``."""
        self._rows.collect()
        return _table(self._rows)

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

        schema, here = self.schema, self._rows.batches()
        if here is not None:
            for batch in here:
                yield from _cast(pyarrow.record_batch(batch), schema)
            return
        while (batch := self._rows.next()) is not None:
            yield from _cast(pyarrow.record_batch(batch), schema)


class AsyncResult(_Rows):
    """As :class:`Result`, awaited."""

    async def to_arrow(self) -> pyarrow.Table:
        """All rows as a PyArrow table, text as ``string`` and bytes as ``binary``."""
        await self._rows.collect(aio=True)
        return _table(self._rows)

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

        schema, here = self.schema, self._rows.batches()
        if here is not None:
            for batch in here:
                for part in _cast(pyarrow.record_batch(batch), schema):
                    yield part
            return
        while (batch := await self._rows.next(aio=True)) is not None:
            for part in _cast(pyarrow.record_batch(batch), schema):
                yield part


def without_views(schema: pyarrow.Schema) -> pyarrow.Schema:
    """The schema with text and bytes as PyArrow's functions take them, also within lists and structs."""
    import pyarrow

    return pyarrow.schema([field.with_type(_plain(field.type)) for field in schema], schema.metadata)


def _plain(kind: pyarrow.DataType) -> pyarrow.DataType:
    import pyarrow
    from pyarrow import types

    def of(field: pyarrow.Field) -> pyarrow.Field:
        return field.with_type(_plain(field.type))

    if types.is_string_view(kind):
        return pyarrow.string()
    if types.is_binary_view(kind):
        return pyarrow.binary()
    if types.is_list(kind):
        return pyarrow.list_(of(kind.value_field))
    if types.is_large_list(kind):
        return pyarrow.large_list(of(kind.value_field))
    if types.is_fixed_size_list(kind):
        return pyarrow.list_(of(kind.value_field), kind.list_size)
    if types.is_struct(kind):
        return pyarrow.struct([of(kind.field(at)) for at in range(kind.num_fields)])
    if types.is_map(kind):
        key, item = of(kind.key_field), of(kind.item_field)
        # Made anew it would not have the names that it has within.
        is_plain = (key.type, item.type) == (kind.key_type, kind.item_type)
        return kind if is_plain else pyarrow.map_(key, item, kind.keys_sorted)
    if types.is_dictionary(kind):
        return pyarrow.dictionary(kind.index_type, _plain(kind.value_type), kind.ordered)
    return kind


def _table(rows: _forebay.Rows) -> pyarrow.Table:
    import pyarrow

    table = pyarrow.table(rows)
    schema = without_views(table.schema)
    if schema == table.schema:
        return table
    return pyarrow.Table.from_batches([part for batch in table.to_batches() for part in _cast(batch, schema)], schema)


def _cast(batch: pyarrow.RecordBatch, schema: pyarrow.Schema) -> Iterator[pyarrow.RecordBatch]:
    """The batch with the columns of a schema; in parts where its text is more than one array can have."""
    import pyarrow

    if batch.schema == schema:
        yield batch
        return
    try:
        yield batch.cast(schema)
    except pyarrow.ArrowCapacityError:
        half = batch.num_rows // 2
        if half == 0:
            raise
        yield from _cast(batch.slice(0, half), schema)
        yield from _cast(batch.slice(half), schema)


def _shown(table: str, all_rows: int, *, limit: int) -> str:
    more = all_rows - limit
    return table.rstrip("\n") + (f"\n({limit:,} of {all_rows:,} rows)" if more > 0 else "")
