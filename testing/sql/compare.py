"""Whether two answers are the same rows."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pyarrow as pa

# What sums in another order may differ by, of functions that are right within some ulps.
NEARLY = 1e-9


def plain(table: pa.Table) -> list[tuple[Any, ...]]:
    """Rows as values that compare by value, whatever the width or unit of their types."""
    return list(zip(*(_column(column) for column in table.columns))) if table.num_columns else []


def _column(column: pa.ChunkedArray) -> list[Any]:
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if pa.types.is_timestamp(kind):
        micros = column.cast(pa.timestamp("us", kind.tz)).cast(pa.int64())
        return [None if value is None else ("instant" if kind.tz else "time", value) for value in micros.to_pylist()]
    values = column.to_pylist()
    if pa.types.is_nested(kind) or pa.types.is_floating(kind):
        return [_value(value) for value in values]
    return values


def _value(value: Any) -> Any:
    if isinstance(value, float):
        # Not a number is itself here, and there is one zero.
        return "nan" if math.isnan(value) else value or 0.0
    if isinstance(value, list):
        return tuple(_value(one) for one in value)
    if isinstance(value, dict):
        return tuple(_value(one) for one in value.values())
    return value


def same(expected: list[tuple[Any, ...]], actual: list[tuple[Any, ...]], ordered: bool, nearly: list[int]) -> bool:
    """Whether the rows are the same: in their order if the query has one, and within some ulps in the columns `nearly`."""
    if len(expected) != len(actual):
        return False
    if not nearly:
        return expected == actual if ordered else Counter(expected) == Counter(actual)
    exact = [at for at in range(len(expected[0]) if expected else 0) if at not in nearly]

    def key(row: tuple[Any, ...]) -> Any:
        return repr([row[at] for at in exact]), [_rounded(row[at]) for at in nearly]

    pairs = zip(sorted(expected, key=key), sorted(actual, key=key))
    return all([a[at] for at in exact] == [b[at] for at in exact] and all(_near(a[at], b[at]) for at in nearly) for a, b in pairs)


def _rounded(value: Any) -> tuple[int, float]:
    """A place in an order in which what is nearly alike is close."""
    if not isinstance(value, (int, float)):
        return (0 if value is None else 1), 0.0
    return 2, round(value, 6)


def _near(a: Any, b: Any) -> bool:
    if a == b or not (isinstance(a, float) and isinstance(b, float)):
        return a == b
    return math.isclose(a, b, rel_tol=NEARLY, abs_tol=NEARLY)


def shown(rows: list[tuple[Any, ...]], other: list[tuple[Any, ...]], most: int = 10) -> str:
    """Rows that the other side has not, then some of the rest."""
    missing = Counter(rows) - Counter(other)
    lines = [f"    {'only here: ' if missing.get(row) else ''}{row!r}" for row in sorted(rows, key=lambda row: not missing.get(row))[:most]]
    return "\n".join([f"  {len(rows)} rows", *lines])
