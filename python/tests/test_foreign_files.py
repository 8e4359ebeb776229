"""Files that others wrote (``foreign/NOTICE``): each is answered as another reader of its format does, or refused with its path, at
once; never wrongly."""

from __future__ import annotations

import datetime
import time
import uuid
from pathlib import Path
from typing import Any

import fastavro
import pyarrow.feather
import pyarrow.parquet
import pytest

import forebay

FOLDER = Path(__file__).parent / "foreign"
FILES = sorted(str(file.relative_to(FOLDER)) for file in FOLDER.rglob("*.*") if file.suffix in {".parquet", ".parq", ".avro", ".feather"})
#: What the error says of files that are no tables for us. Of Avro a table is a record, whose types don't contain themselves.
REFUSED = {
    "fastavro/bool.avro": "no records",
    "fastavro/class-org.apache.avro.tool.TestDataFileTools.seperators.avro": "no records",
    "fastavro/class-org.apache.avro.tool.TestDataFileTools.testWrite.deflate.avro": "no records",
    "fastavro/class-org.apache.avro.tool.TestDataFileTools.testWrite.plain.avro": "no records",
    "fastavro/class-org.apache.avro.tool.TestDataFileTools.zerojsonvalues.avro": "no records",
    "fastavro/deflate.avro": "no records",
    "fastavro/error-type.avro": "'error'",
    "fastavro/null.avro": "no records",
    "fastavro/org.apache.avro.tool.TestDataFileTools.avro": "no records",
    "fastavro/response.avro": "no records",
    "fastavro/snappy.avro": "no records",
    "fastavro/testDataFileMeta.avro": "no records",
    "fastavro/recursive.avro": "LongList",
    # Refers to a name by another namespace than the one that it was defined in, which the library refuses.
    "fastavro/weather-legacy-with-names.avro": "test.Neighbor",
    # Compressed as before Arrow 1.0, which is said where readers of now don't look: taken for plain bytes it would be wrong.
    "pyarrow/v0.17.0.version.2-compression.lz4.feather": "compress",
}


def plain(value: Any) -> Any:
    """A value as both readers can have it: lists for arrays, times without a zone, bytes for what is fixed."""
    match value:
        case dict():
            return {key: plain(inner) for key, inner in value.items()}
        case list() | tuple():
            return [plain(inner) for inner in value]
        case datetime.datetime():
            return value.replace(tzinfo=None).isoformat(timespec="microseconds")
        case uuid.UUID():
            return value.bytes
        case float() if value != value:
            return "nan"
        case _:
            return value


def theirs(file: Path) -> list[dict[str, Any]]:
    match file.suffix:
        case ".avro":
            with file.open("rb") as opened:
                return [dict(row) for row in fastavro.reader(opened)]
        case ".feather":
            return pyarrow.feather.read_table(file).to_pylist()
        case _:
            return pyarrow.parquet.ParquetFile(file, coerce_int96_timestamp_unit="us").read().to_pylist()


@pytest.fixture(scope="module")
def foreign(fb):
    fb.mounts.add("foreign", FOLDER, read_only=True)
    yield fb
    fb.mounts.remove("foreign")


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_others(foreign, name):
    began = time.monotonic()
    try:
        ours = foreign.sql(f"select * from '/foreign/{name}'").to_arrow()
    except forebay.Error as error:
        assert name in REFUSED, error
        assert REFUSED[name] in str(error) and name in str(error)
        return
    finally:
        assert time.monotonic() - began < 10
    assert name not in REFUSED, ours.slice(0, 5).to_pylist()
    # Avro's maps have no key twice; Parquet's may.
    rows = ours.to_pylist(maps_as_pydicts="strict" if name.endswith(".avro") else None)
    assert plain(rows) == plain(theirs(FOLDER / name))
    assert foreign.sql(f"select count(*) as n from '/foreign/{name}'").to_arrow().to_pylist() == [{"n": len(ours)}]
