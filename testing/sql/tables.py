"""Tables of a seed: their columns, their rows, and where they lie."""

from __future__ import annotations

import datetime
import math
import random
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pyarrow as pa

EPOCH = datetime.datetime(1970, 1, 1)
# Short and long, with and without what needs quoting or several bytes; some are prefixes of others.
WORDS = ["", "a", "ab", "abc", "Ærøskøbing", "Ω", "日本", "日本語の長い文字列です", "é", "naïve", "a,b", "c|d;e", 'say "x"', "O'Neil", "%", "a_c", "😀 face", " lead", "trail ", "NULL", "null", "nan", "0", "12", "true"]
# Line ends, as CSV has them within quotes.
LINES = ["two\nlines", "\n", "a\r\nb", "ends\n"]
LONG = "a rather long string that is kept out of line "
ZONES = ["UTC", "+02:00", "America/New_York"]


@dataclass(frozen=True)
class Column:
    """`kind` is what the generator knows; `arrow` is what the files have; `truth` is what the other engine is given."""

    name: str
    kind: str
    arrow: pa.DataType
    truth: pa.DataType
    declared: str


@dataclass
class Table:
    """One table: `rows` in the order of `columns`, cut into the files of its `layout`."""

    name: str
    mount: str
    path: str
    form: str
    layout: str
    columns: list[Column]
    rows: list[tuple[Any, ...]]
    seed: int
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def location(self) -> str:
        return f"/{self.mount}/{self.path}"

    def truth(self) -> pa.Table:
        return self.arrow(self.rows, truth=True)

    def arrow(self, rows: list[tuple[Any, ...]], truth: bool = False, columns: list[Column] | None = None) -> pa.Table:
        picked = self.columns if columns is None else columns
        at = [self.columns.index(column) for column in picked]
        types = [column.truth if truth else column.arrow for column in picked]
        arrays = [_array([row[i] for row in rows], kind) for i, kind in zip(at, types)]
        return pa.table(arrays, schema=pa.schema([(column.name, kind) for column, kind in zip(picked, types)]))


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(kind):
        return pa.array(values, kind.value_type).dictionary_encode().cast(kind)
    # Of a struct that is null, zeros and empty texts lie in the fields.
    return pa.array(values, kind)


INTS = [
    (pa.int8(), "tinyint", -100, 100),
    (pa.int16(), "smallint", -300, 300),
    (pa.int32(), "int", -1000, 1000),
    (pa.int64(), "bigint", -1000, 1000),
    (pa.uint8(), "tinyint unsigned", 0, 200),
    (pa.uint32(), "int unsigned", 0, 1000),
]
# What two of them become together has no more than 38 digits, where one engine would leave some out.
DECIMALS = [(5, 1), (9, 2), (15, 0), (18, 4), (38, 10), (30, 10)]
STRUCT = pa.struct([("a", pa.int64()), ("b", pa.string())])
# A struct in a struct, and structs in a list: each of them, and each field, may be null.
DEEP = pa.struct([("a", pa.int64()), ("s", STRUCT)])
STRUCTS = pa.list_(STRUCT)
MAP = pa.map_(pa.string(), pa.int64())
# How text is compressed, by the ends of its files' names.
COMPRESSIONS = {"gz": "gzip", "bz2": "bzip2", "zst": "zstd", "xz": "xz"}
TEXT_FORMS = tuple(f"{form}{end}" for form in ("csv", "ndjson") for end in ("", *(f".{name}" for name in COMPRESSIONS)))


def column(rng: random.Random, name: str, kind: str, form: str) -> Column:
    """A column whose values are of a kind, in a width that the form of the file can have."""
    text = form in TEXT_FORMS
    if kind == "int":
        arrow, declared, _, _ = rng.choice(INTS)
        return Column(name, kind, arrow, pa.int64(), declared)
    if kind == "dec":
        precision, scale = rng.choice(DECIMALS)
        arrow = pa.decimal128(precision, scale)
        return Column(name, kind, arrow, arrow, f"decimal({precision}, {scale})")
    if kind == "float":
        narrow = rng.random() < 0.3
        return Column(name, kind, pa.float32() if narrow else pa.float64(), pa.float64(), "float" if narrow else "double")
    if kind in ("wild", "odd"):
        return Column(name, kind, pa.float64(), pa.float64(), "double")
    if kind == "text":
        arrow = pa.string() if text or form == "albis" else rng.choice([pa.string(), pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
        return Column(name, kind, arrow, pa.string(), "varchar")
    if kind == "bool":
        return Column(name, kind, pa.bool_(), pa.bool_(), "boolean")
    if kind == "date":
        return Column(name, kind, pa.date32(), pa.date32(), "date")
    if kind == "ts":
        unit = "us" if text else rng.choice(["s", "ms", "us", "ns"])
        # Parquet has no seconds.
        unit = "ms" if unit == "s" and form == "parquet" else unit
        return Column(name, kind, pa.timestamp(unit), pa.timestamp("us"), "timestamp(6)")
    if kind == "tz":
        unit = "us" if text else rng.choice(["ms", "us", "ns"])
        zone = "UTC" if form == "parquet" and rng.random() < 0.7 else rng.choice(ZONES)
        return Column(name, kind, pa.timestamp(unit, zone), pa.timestamp("us", "UTC"), "timestamp with time zone")
    if kind == "list":
        return Column(name, kind, pa.list_(pa.int64()), pa.list_(pa.int64()), "bigint[]")
    if kind == "deep":
        return Column(name, kind, DEEP, DEEP, "struct<a bigint, s struct<a bigint, b varchar>>")
    if kind == "map":
        return Column(name, kind, MAP, MAP, "map(varchar, bigint)")
    if kind == "structs":
        return Column(name, kind, STRUCTS, STRUCTS, "struct<a bigint, b varchar>[]")
    assert kind in ("struct", "firm"), kind
    return Column(name, kind, STRUCT, STRUCT, "struct<a bigint, b varchar>")


def value(rng: random.Random, of: Column, form: str) -> Any:
    """A value, none now and then."""
    if rng.random() < 0.12:
        return None
    kind = of.kind
    if kind == "int":
        low, high = next((low, high) for arrow, _, low, high in INTS if arrow == of.arrow)
        return rng.randint(max(low, -9), min(high, 30)) if rng.random() < 0.7 else rng.randint(low, high)
    if kind == "dec":
        number = Decimal(rng.randint(-40, 400)) / 4 if rng.random() < 0.8 else Decimal(rng.randint(-99999, 99999)) / 100
        if of.arrow.scale > 6 and rng.random() < 0.2:
            number += Decimal(rng.randint(-9, 9)).scaleb(-of.arrow.scale)
        return number.quantize(Decimal(1).scaleb(-of.arrow.scale))
    if kind == "float":
        return rng.randint(-40, 160) / 4 or 0.0
    if kind == "wild":
        # JSON has no word for the others.
        if not form.startswith("ndjson") and rng.random() < 0.2:
            return rng.choice([math.nan, math.inf, -math.inf])
        return rng.choice([rng.randint(-9, 9) / 4, rng.uniform(-10, 10), rng.uniform(-1, 1) * 1e18]) or 0.0
    if kind == "odd":
        if not form.startswith("ndjson") and rng.random() < 0.1:
            return math.nan
        return rng.choice([0.0, -0.0, rng.randint(-9, 9) / 4, rng.randint(-9, 30) / 4])
    if kind == "text":
        word = rng.choice(WORDS if rng.random() < 0.95 else LINES) if rng.random() < 0.8 else LONG + str(rng.randint(0, 12))
        # An empty field of CSV is a null.
        return word if word or not form.startswith("csv") else "x"
    if kind == "bool":
        return rng.random() < 0.5
    if kind == "date":
        return datetime.date(2024, 1, 1) + datetime.timedelta(days=rng.choice([rng.randint(-20, 90), rng.randint(-30000, 9000)]))
    if kind in ("ts", "tz"):
        seconds = rng.choice([rng.randint(1704000000, 1706000000), rng.randint(-2000000000, 3000000000)])
        exact = of.arrow.unit == "s"
        when = EPOCH + datetime.timedelta(seconds=seconds, milliseconds=0 if exact else rng.choice([0, 0, rng.randint(0, 999)]))
        return when.replace(tzinfo=datetime.timezone.utc) if kind == "tz" else when
    if kind == "list":
        return [None if rng.random() < 0.1 else rng.randint(-3, 9) for _ in range(rng.choice([0, 1, 2, 3, 7]))]
    if kind == "map":
        return [(key, rng.choice([None, rng.randint(0, 9)])) for key in rng.sample("abcd", rng.randint(0, 3))]
    if kind == "deep":
        return {"a": rng.choice([None, rng.randint(0, 9)]), "s": rng.choice([None, _struct(rng)])}
    if kind == "structs":
        # See `a null among the objects of a list in JSON` in `known`.
        nulls = 0.0 if form.startswith("ndjson") else 0.2
        return [None if rng.random() < nulls else _struct(rng) for _ in range(rng.choice([0, 1, 2, 3]))]
    # One whose first field is there wherever it is, which some Parquet files say.
    return _struct(rng, always=kind == "firm")


def _struct(rng: random.Random, always: bool = False) -> dict[str, Any]:
    return {"a": rng.randint(0, 9) if always else rng.choice([None, rng.randint(0, 9)]), "b": rng.choice([None, *WORDS[1:6]])}


# A pair of tables lies at one path, in two stores: (form, layout). Layouts: `one` file; `many` files, some empty; `more`, where later
# files have columns that earlier ones have not; `mixed`, where each has an order of columns of its own and lacks some; `wide`, where later
# ones have wider types; `parts`, partitioned by folders; `big`, one file of more than a MiB, whose texts have line ends.
PAIRS = [
    ("parquet", "one"),
    ("parquet", "many"),
    ("parquet", "more"),
    ("parquet", "wide"),
    ("parquet", "parts"),
    ("parquet", "mixed"),
    ("csv", "one"),
    ("csv", "mixed"),
    ("csv", "parts"),
    ("csv", "big"),
    ("csv.gz", "big"),
    ("csv.gz", "many"),
    ("csv.bz2", "many"),
    ("csv.zst", "one"),
    ("csv.xz", "big"),
    ("ndjson", "one"),
    ("ndjson.gz", "more"),
    ("ndjson.bz2", "one"),
    ("ndjson.zst", "mixed"),
    ("ndjson.xz", "many"),
    ("arrow", "one"),
    ("arrow", "many"),
    ("arrow", "mixed"),
    ("ndjson", "mixed"),
    ("albis", "one"),
    ("albis", "many"),
]
BIG = 1500
SIZES = [0, 1, 7, 40, 40, 100, 150, 300, 300, 300, 500, 500, 1500]
FLAT = ["int", "int", "dec", "dec", "float", "wild", "odd", "text", "text", "bool", "date", "ts", "tz"]
NESTED = ["list", "struct", "firm", "deep", "structs"]


def tables(seed: int) -> list[Table]:
    """The tables of a seed: seven pairs."""
    rng = random.Random(f"tables {seed}")
    made = []
    for at, (form, layout) in enumerate(rng.sample(PAIRS, 7)):
        columns = _columns(rng, form, layout)
        for mount in ("one", "two"):
            # Two in three pairs have the same columns in both stores, so that one's file read for the other's would go unnoticed.
            if mount == "two" and rng.random() < 0.33:
                columns = _columns(rng, form, layout)
            name = f"w{seed}_{mount}_{at}"
            path = f"w{seed}/{at}" + (f".{form}" if layout in ("one", "big") else "/")
            made.append(Table(name, mount, path, form, layout, columns, _rows(rng, columns, form, layout), rng.getrandbits(32)))
    return made


def _columns(rng: random.Random, form: str, layout: str) -> list[Column]:
    kinds = rng.sample(FLAT, rng.randint(4, 8))
    if not form.startswith("csv") and rng.random() < 0.6:
        # JSON and `.albis` have no maps, nor have tables that are declared.
        has_maps = form in ("parquet", "arrow") and layout != "wide"
        kinds += rng.sample([*NESTED, "map"] if has_maps else NESTED, rng.randint(2, 4))
    if layout == "big" and "text" not in kinds:
        kinds.append("text")
    found = [Column("id", "int", pa.int64(), pa.int64(), "bigint"), Column("k", "int", pa.int32(), pa.int64(), "int")]
    found += [column(rng, f"c{at}", kind, form) for at, kind in enumerate(kinds)]
    if layout == "parts":
        found.append(Column("part", "int", pa.int64(), pa.int64(), "bigint"))
        found.append(Column("name", "text", pa.string(), pa.string(), "varchar"))
    return found


def _rows(rng: random.Random, columns: list[Column], form: str, layout: str) -> list[tuple[Any, ...]]:
    count = BIG if layout == "big" else rng.choice(SIZES)
    ids = list(range(count))
    if rng.random() < 0.5:
        rng.shuffle(ids)
    rows = []
    for key in ids:
        row: list[Any] = [key, rng.randint(0, 24) if rng.random() < 0.9 else None]
        for of in columns[2:]:
            if of.name == "part":
                row.append(rng.choice([1, 2, 10, -3]))
            elif of.name == "name":
                row.append(rng.choice(["x", "y z", "ü", "07"]))
            else:
                row.append(value(rng, of, form))
                if layout == "big" and of.kind == "text":
                    row[-1] = rng.choice(LINES) + f"{row[-1]}, " * rng.randint(50, 200) + rng.choice(['"', "'", ",", ""])
        rows.append(tuple(row))
    return rows
