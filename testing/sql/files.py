"""Tables as files in the mounted folders, and the statements that make the engine know them."""

from __future__ import annotations

import bz2
import csv
import datetime
import gzip
import io
import itertools
import json
import lzma
import math
import random
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet

from tables import COMPRESSIONS, DEEP, STRUCT, STRUCTS, TEXT_FORMS, Column, Table

Rows = list[tuple[Any, ...]]
# What lies in a struct that is null, in files that say that its fields are always there.
LIES: dict[pa.DataType, Any] = {STRUCT: {"a": 7, "b": "lies"}, DEEP: {"a": 7, "s": {"a": 7, "b": "lies"}}, pa.int64(): 7, pa.string(): "lies"}
# Rows of CSV that surely lie in the 16 KiB that are looked at for line ends within quotes.
LOOKED_AT = 40


def write(table: Table, roots: dict[str, Path]) -> list[str]:
    """Writes a table's files below its mount's folder. Answers the statements that finish it, in order."""
    rng = random.Random(table.seed)
    root = roots[table.mount]
    statements = []
    for path, columns, rows in _cut(table, rng):
        if table.form == "albis":
            # Forebay writes its own format, from a file beside the table's.
            source = f"sources/{path.removesuffix('.albis')}.parquet"
            _file(root / source, "parquet", table, columns, rows, rng)
            statements.append(f"copy (select * from '/{table.mount}/{source}') to '/{table.mount}/{path}'")
        else:
            _file(root / path, table.form, table, columns, rows, rng)
    if table.layout == "many" and table.form != "albis" and rng.random() < 0.5:
        # A file of no bytes, as writers that died leave them.
        (root / table.path / f"zz.{table.form}").write_bytes(b"")
    statements += _definition(table, rng)
    return statements


def _cut(table: Table, rng: random.Random) -> list[tuple[str, list[Column], Rows]]:
    """The files of a table: path, columns, rows."""
    columns, rows = table.columns, table.rows
    if table.layout in ("one", "big"):
        return [(table.path, columns, rows)]
    if table.layout == "parts":
        # An empty table still needs a file to be one.
        parts: dict[tuple[Any, ...], Rows] = {} if rows else {(1, "x"): []}
        for row in rows:
            parts.setdefault(row[-2:], []).append(row)
        return [(f"{table.path}part={part}/name={name}/f.{table.form}", columns[:-2], of) for (part, name), of in parts.items()]
    count = rng.randint(2, 4)
    cuts = sorted(rng.randint(0, len(rows)) for _ in range(count - 1))
    files, whole = [], rng.randrange(count)
    for at, (start, end) in enumerate(zip([0, *cuts], [*cuts, len(rows)])):
        part, own = rows[start:end], columns
        if table.layout == "more" and at == 0:
            # The first file was written before its table had its last columns: these are null there.
            own = columns[: max(3, len(columns) - 2)]
            part = [row[: len(own)] + (None,) * (len(columns) - len(own)) for row in part]
            table.rows[start:end] = part
        if table.layout == "mixed":
            own = _mixed(columns, rng, lacks=0.0 if at == whole else 0.25)
            table.rows[start:end] = [tuple(cell if column in own else None for cell, column in zip(row, columns)) for row in part]
            part = [tuple(row[columns.index(column)] for column in own) for row in part]
        if table.layout == "wide" and at == 0:
            own = [_narrower(column) for column in columns]
        files.append((f"{table.path}f{at}.{table.form}", own, part))
    return files


def _mixed(columns: list[Column], rng: random.Random, lacks: float) -> list[Column]:
    """The columns of one file among others: what comes after the first two may lack, and none has its place."""
    own = columns[:2] + [column for column in columns[2:] if rng.random() >= lacks]
    rng.shuffle(own)
    return own


def _narrower(column: Column) -> Column:
    """What the column was before its type was widened; values stay what they are."""
    narrow = {pa.int64(): pa.int32(), pa.int32(): pa.int16()}.get(column.arrow, column.arrow)
    if pa.types.is_decimal(column.arrow) and column.arrow.precision > column.arrow.scale + 4:
        narrow = pa.decimal128(column.arrow.scale + 4, column.arrow.scale)
    if column.name == "id":
        narrow = pa.int16()
    if column.name != "id" and column.arrow == pa.float64() and column.kind == "float":
        narrow = pa.float32()
    return Column(column.name, column.kind, narrow, column.truth, column.declared)


def _file(path: Path, form: str, table: Table, columns: list[Column], rows: Rows, rng: random.Random) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if form in TEXT_FORMS:
        text = _csv(table, columns, rows) if form.startswith("csv") else _json(columns, rows)
        path.write_bytes(_compressed(text.encode(), form, rng))
        return
    names = [column.name for column in columns]
    of = Table(table.name, table.mount, table.path, form, table.layout, columns, rows, table.seed)
    data = of.arrow([row[: len(names)] for row in rows])
    for at, column in enumerate(columns):
        cells, of_struct = [row[at] for row in rows], column.arrow in (STRUCT, DEEP, STRUCTS)
        always = None not in cells and rng.random() < 0.3
        if form == "parquet" and (always or (of_struct and rng.random() < 0.5)):
            values = _always(cells, column.arrow, rng) if of_struct else data.column(at)
            data = data.set_column(at, pa.field(column.name, values.type, nullable=not always), values)
    if form == "arrow":
        with pa.ipc.new_file(path, data.schema, options=pa.ipc.IpcWriteOptions(compression=rng.choice([None, "lz4", "zstd"]))) as writer:
            writer.write_table(data, max_chunksize=rng.choice([17, 200, 10000]))
        return
    pa.parquet.write_table(
        data,
        path,
        row_group_size=rng.choice([20, 100, 1000]),
        compression=rng.choice(["none", "snappy", "zstd", "gzip"]),
        use_dictionary=rng.random() < 0.6,
        write_page_index=rng.random() < 0.5,
        data_page_size=rng.choice([256, 4096, 1 << 20]),
        data_page_version=rng.choice(["1.0", "2.0"]),
        # Of all files or of none: types that only Arrow has are others without it.
        store_schema=table.seed % 10 < 7,
    )


def _compressed(data: bytes, form: str, rng: random.Random) -> bytes:
    """Text as files of its form have it: several parts behind each other now and then, cut anywhere, some of nothing."""
    end = form.partition(".")[2]
    if not end:
        return data
    cuts = sorted(rng.randint(0, len(data)) for _ in range(rng.choice([0, 0, 1, 3])))
    parts = [data[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(data)])]
    if len(parts) > 1 and rng.random() < 0.3:
        parts.insert(rng.randint(0, len(parts)), b"")
    make = {
        "gz": lambda part: gzip.compress(part, mtime=0),
        "bz2": bz2.compress,
        "zst": lambda part: pa.compress(part, codec="zstd", asbytes=True),
        "xz": lzma.compress,
    }[end]
    return b"".join(make(part) for part in parts)


def _always(values: list[Any], kind: pa.DataType, rng: random.Random) -> pa.Array:
    """Structs, alone or in lists, that say of their fields that they are always there, where they are and now and then."""
    absent = pa.array([value is None for value in values], pa.bool_())
    if pa.types.is_list(kind):
        ends = list(itertools.accumulate((len(value or []) for value in values), initial=0))
        items = _always([one for value in values for one in value or []], kind.value_type, rng)
        return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), items, mask=absent)
    if not pa.types.is_struct(kind):
        return pa.array(values, kind)
    fields, arrays = [], []
    for field in kind:
        there = [value[field.name] for value in values if value is not None]
        always = None not in there and rng.random() < 0.8
        lies = LIES[field.type] if always else None
        arrays.append(_always([lies if value is None else value[field.name] for value in values], field.type, rng))
        fields.append(pa.field(field.name, arrays[-1].type, nullable=not always))
    return pa.StructArray.from_arrays(arrays, fields=fields, mask=absent)


def _delimiter(table: Table) -> str:
    return ",,;|"[table.seed % 4]


def _csv(table: Table, columns: list[Column], rows: Rows) -> str:
    out = io.StringIO()
    writer = csv.writer(out, delimiter=_delimiter(table), lineterminator="\r\n" if table.seed % 3 == 0 else "\n")
    writer.writerow([column.name for column in columns])
    for row in rows:
        writer.writerow(["" if cell is None else _text(cell) for cell in row[: len(columns)]])
    return out.getvalue()


def _text(cell: Any) -> str:
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float):
        return "NaN" if math.isnan(cell) else ("inf" if cell > 0 else "-inf") if math.isinf(cell) else repr(cell)
    if isinstance(cell, datetime.datetime):
        return cell.replace(tzinfo=None).isoformat() + ("Z" if cell.tzinfo else "")
    return str(cell)


def _json(columns: list[Column], rows: Rows) -> str:
    def plain(cell: Any) -> Any:
        if isinstance(cell, Decimal):
            return str(cell)
        if isinstance(cell, (datetime.date, datetime.datetime)):
            return _text(cell)
        return cell

    names = [column.name for column in columns]
    # Every other null is left out instead of written.
    lines = []
    for at, row in enumerate(rows):
        cells = zip(names, row[: len(names)])
        lines.append(json.dumps({name: plain(cell) for name, cell in cells if cell is not None or at % 2}, ensure_ascii=at % 3 == 0))
    return "".join(line + "\n" for line in lines)


def _definition(table: Table, rng: random.Random) -> list[str]:
    """The statement that declares the table. Without one, queries name its path."""
    text = table.form in TEXT_FORMS
    declares = text or table.layout == "wide"
    if not declares and rng.random() < 0.5:
        table.extra["from"] = f"'{table.location}'"
        return []
    table.extra["from"] = table.name
    base, _, end = table.form.partition(".")
    kind = {"ndjson": "json"}.get(base, base)
    options = []
    if kind == "csv":
        options.append("'format.has_header' 'true'")
        if _delimiter(table) != ",":
            options.append(f"'format.delimiter' '{_delimiter(table)}'")
        # What comes late in a file is not seen beforehand.
        texts = [str(cell) for row in table.rows[LOOKED_AT:] for cell in row]
        late = any("\n" in text or "\r" in text for text in texts)
        # The first rows of a big file have some.
        if (late and (table.layout != "big" or rng.random() < 0.5)) or rng.random() < 0.2:
            options.append("'format.newlines_in_values' 'true'")
    if end:
        options.append(f"'format.compression' '{COMPRESSIONS[end]}'")
    statement = f"create external table {table.name}"
    if declares:
        statement += " (" + ", ".join(f"{column.name} {column.declared}" for column in table.columns) + ")"
    statement += f" stored as {kind}"
    if table.layout == "parts" and declares:
        statement += " partitioned by (part, name)"
    statement += f" location '/{table.mount}/{quote(table.path)}'"
    if options:
        statement += f" options ({', '.join(options)})"
    return [statement]
