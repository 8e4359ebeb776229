"""Whether two engines gave the same rows."""

from __future__ import annotations

import datetime
import json
import math
from decimal import Decimal
from typing import Any

Row = tuple[Any, ...]

# Sums of doubles in another order.
NEARLY = 1e-9
# What DuckDB divides as doubles the engine divides as decimals, which it cuts, and then multiplies.
CUT = 1e-6


def write(rows: list[Row]) -> list[list[Any]]:
    """DuckDB's rows as JSON has them; a decimal as a text with its scale."""
    return [[_plain(value) for value in row] for row in rows]


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return {"decimal": str(value)}
    if isinstance(value, (datetime.date, datetime.datetime)):
        return value.isoformat()
    return value


def read(rows: list[list[Any]]) -> list[Row]:
    return [tuple(Decimal(value["decimal"]) if isinstance(value, dict) else value for value in row) for row in rows]


def of_json_lines(text: str) -> list[Row]:
    """What `forebay sql --json` printed. Columns of one name keep their places."""
    return [json.loads(line, parse_float=Decimal, object_pairs_hook=lambda pairs: tuple(value for _, value in pairs)) for line in text.splitlines() if line]


def differ(expected: list[Row], actual: list[Row]) -> str:
    """What is not the same, or nothing. Rows are a multiset: an order with ties has several right ones."""
    if len(expected) != len(actual):
        return f"{len(actual)} rows for {len(expected)}"
    if any(len(a) != len(b) for a, b in zip(expected, actual)):
        return f"{len(actual[0])} columns for {len(expected[0])}"
    for a, b in zip(sorted(expected, key=_key), sorted(actual, key=_key)):
        for at, (one, other) in enumerate(zip(a, b)):
            if not _same(one, other):
                return f"column {at}: {other!r} for {one!r}, in {b!r} for {a!r}"
    return ""


def _key(row: Row) -> Any:
    # Texts first, since numbers may differ in their last digit.
    texts = [repr(value) for value in row if not _number(value)]
    return texts, [(0, 0.0) if value is None else (1, float(f"{float(value):.6g}")) for value in row if value is None or _number(value)]


def _same(expected: Any, actual: Any) -> bool:
    if expected is None or actual is None:
        return expected is actual
    if isinstance(actual, str) and _number(expected):
        actual = Decimal(actual)
    if _number(expected) and _number(actual):
        if isinstance(expected, Decimal) and isinstance(actual, Decimal):
            unit = 10.0 ** -min(-value.as_tuple().exponent for value in (expected, actual))
            return math.isclose(float(expected), float(actual), rel_tol=NEARLY, abs_tol=unit)
        cut = isinstance(actual, Decimal) and isinstance(expected, float)
        unit = 10.0**actual.as_tuple().exponent if cut else 0.0
        return math.isclose(float(expected), float(actual), rel_tol=CUT if cut else NEARLY, abs_tol=unit)
    return str(expected) == str(actual)


def _number(value: Any) -> bool:
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)
