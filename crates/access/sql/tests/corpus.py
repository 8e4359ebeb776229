"""Writes tests/corpus: small files as other writers of these formats have them, from which the fuzzer of readers starts.

Run by hand, with pyarrow, duckdb, polars, fastparquet and fastavro installed: `python crates/access/sql/tests/corpus.py`.
"""

from __future__ import annotations

import bz2
import datetime as dt
import decimal
import gzip
import json
import lzma
from pathlib import Path

import duckdb
import fastavro
import pandas as pd
import polars
import pyarrow as pa
import pyarrow.parquet as pq

FOLDER = Path(__file__).parent / "corpus"
ROWS = 24


def table() -> pa.Table:
    at = range(ROWS)
    day = dt.date(2024, 2, 28)
    return pa.table(
        {
            "n": pa.array([None if i % 7 == 3 else i * 1_000_003 for i in at], pa.int64()),
            "small": pa.array([i % 5 for i in at], pa.int8()),
            "x": pa.array([i / 3 for i in at], pa.float64()),
            "flag": pa.array([None if i % 5 == 0 else i % 2 == 0 for i in at]),
            "word": pa.array([None if i % 11 == 0 else "word " * (i % 4) for i in at]),
            "kind": pa.array([("red", "green", None)[i % 3] for i in at]).dictionary_encode(),
            "raw": pa.array([bytes([i, 255 - i]) * (i % 3) for i in at], pa.binary()),
            "price": pa.array([decimal.Decimal(i * 101) / 100 for i in at], pa.decimal128(12, 2)),
            "day": pa.array([day + dt.timedelta(i) for i in at]),
            "at": pa.array([dt.datetime(2024, 2, 28, 23, i % 60, tzinfo=dt.timezone.utc) for i in at], pa.timestamp("us", "UTC")),
            "list": pa.array([None if i % 6 == 5 else list(range(i % 4)) for i in at], pa.list_(pa.int32())),
            "pair": pa.array([{"a": i, "b": None if i % 2 else str(i)} for i in at]),
            "map": pa.array([[(str(j), j) for j in range(i % 3)] for i in at], pa.map_(pa.string(), pa.int32())),
        }
    )


def parquet(rows: pa.Table) -> None:
    flat = rows.drop_columns(["list", "pair", "map", "kind"])
    pq.write_table(rows, FOLDER / "pyarrow.parquet", compression="snappy", row_group_size=10, write_page_index=True)
    pq.write_table(rows, FOLDER / "pyarrow-v2-zstd.parquet", compression="zstd", data_page_version="2.0", use_dictionary=False)
    encodings = {"n": "DELTA_BINARY_PACKED", "x": "BYTE_STREAM_SPLIT", "word": "DELTA_BYTE_ARRAY", "raw": "DELTA_LENGTH_BYTE_ARRAY"}
    pq.write_table(flat, FOLDER / "pyarrow-delta.parquet", compression="lz4", use_dictionary=False, column_encoding=encodings, data_page_size=64)
    pq.write_table(flat, FOLDER / "pyarrow-brotli.parquet", compression="brotli", store_decimal_as_integer=True, write_page_checksum=True)
    pq.write_table(rows.slice(0, 0), FOLDER / "pyarrow-empty.parquet")
    duckdb.sql("set threads = 1")
    for codec in ("zstd", "gzip"):
        duckdb.sql(f"copy (select * from rows) to '{FOLDER}/duckdb-{codec}.parquet' (format parquet, codec '{codec}', parquet_version v2)")
    polars.from_arrow(rows.drop_columns(["map"])).write_parquet(FOLDER / "polars.parquet", statistics="full", row_group_size=10)
    frame: pd.DataFrame = flat.drop_columns(["price", "day", "raw"]).to_pandas()
    import fastparquet

    fastparquet.write(FOLDER / "fastparquet.parquet", frame, compression="GZIP", stats=True)


def arrow(rows: pa.Table) -> None:
    for name, codec in (("", None), ("-lz4", "lz4"), ("-zstd", "zstd")):
        options = pa.ipc.IpcWriteOptions(compression=codec)
        with pa.ipc.new_file(FOLDER / f"pyarrow{name}.arrow", rows.schema, options=options) as writer:
            writer.write_table(rows, max_chunksize=10)
    with pa.ipc.new_stream(FOLDER / "pyarrow-stream.arrow", rows.schema) as writer:
        writer.write_table(rows, max_chunksize=10)
    polars.from_arrow(rows.drop_columns(["map"])).write_ipc(FOLDER / "polars-views.arrow")


def avro(rows: pa.Table) -> None:
    schema = fastavro.parse_schema(
        {
            "type": "record",
            "name": "Row",
            "fields": [
                {"name": "n", "type": ["null", "long"]},
                {"name": "x", "type": "double"},
                {"name": "flag", "type": ["null", "boolean"]},
                {"name": "word", "type": ["null", "string"]},
                {"name": "raw", "type": "bytes"},
                {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["red", "green", "none"]}},
                {"name": "day", "type": {"type": "int", "logicalType": "date"}},
                {"name": "list", "type": {"type": "array", "items": "int"}},
                {"name": "pair", "type": {"type": "record", "name": "Pair", "fields": [{"name": "a", "type": "long"}, {"name": "b", "type": ["null", "string"]}]}},
            ],
        }
    )
    names = ("n", "x", "flag", "word", "raw", "kind", "day", "list", "pair")
    records = [{name: row[name] for name in names} | {"kind": row["kind"] or "none", "list": row["list"] or []} for row in rows.to_pylist()]
    for codec in ("null", "deflate", "bzip2"):
        with open(FOLDER / f"fastavro-{codec}.avro", "wb") as out:
            fastavro.writer(out, schema, records, codec=codec, sync_interval=200)


def text(rows: pa.Table) -> None:
    flat = [{name: row[name] for name in ("n", "x", "flag", "word")} for row in rows.to_pylist()]
    lines = "".join(json.dumps(row) + "\n" for row in flat).encode()
    comma = "n,x,flag,word\n" + "".join(f'{"" if r["n"] is None else r["n"]},{r["x"]},{"" if r["flag"] is None else r["flag"]},"{r["word"] or ""}"\n' for r in flat)
    (FOLDER / "text.csv").write_text(comma)
    (FOLDER / "text.csv.gz").write_bytes(gzip.compress(comma.encode(), mtime=0))
    (FOLDER / "text.csv.zst").write_bytes(pa.compress(comma.encode(), codec="zstd", asbytes=True))
    (FOLDER / "text.ndjson").write_bytes(lines)
    (FOLDER / "text.ndjson.bz2").write_bytes(bz2.compress(lines))
    (FOLDER / "text.ndjson.xz").write_bytes(lzma.compress(lines))


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    rows = table()
    parquet(rows)
    arrow(rows)
    avro(rows)
    text(rows)


if __name__ == "__main__":
    main()
