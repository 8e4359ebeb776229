"""What the two engines differ in by intent or by a fault that is not Forebay's, by name and with the reason.

`REFUSED` are errors that count as no failure: a statement that the engine below does not take. What would give other rows is not
generated at all; `NOT_ASKED` says what that is.
"""

from __future__ import annotations

import re

REFUSED: dict[str, tuple[str, str]] = {
    "not in of distinct rows within or": (
        "Projections require unique expression names",
        "DataFusion makes two columns of one name of `a or b not in (select distinct ..)`",
    ),
    "a condition of constants in having": (
        r"HAVING clause references: .* must appear in the GROUP BY clause",
        "DataFusion takes a condition without columns for a column",
    ),
    "two aggregates of one name": (
        r"Schema contains duplicate unqualified field name",
        "DataFusion names what it computes by its text without casts: `sum(cast(x as double)), sum(cast(cast(x as double) as double))`",
    ),
    "decimals of several widths": (
        r"Invalid comparison operation: Decimal128",
        "DataFusion compares the sum as it is with constants of the type that it was cast to: `cast(sum(x) as decimal(18, 4)) not in (1, 2)`",
    ),
    "a window over what is empty by constants": (
        r"Expects PARTITION BY expression to be ordered",
        "DataFusion takes columns of no rows for ordered, and then not",
    ),
    "a union whose first side is empty": (
        r"No field named x\d+\.\s(Did you mean 'x\d+'|Valid fields are x\d+)",
        "DataFusion drops a side of no rows (`limit 0`), and the names of the first side, which are the union's, with it",
    ),
    "a lateral query of nothing": (
        r"undecorrelated Subquery",
        "DataFusion leaves a lateral query as it is where its condition is never true",
    ),
    "not in of what is about the row around": (
        r"null_aware anti join only supports single column join key",
        "DataFusion knows nulls in `not in` by one column only, and not by another that the query around is equal to",
    ),
    "groups of which nothing is computed": (
        "Correlated scalar subquery must be aggregated to return at most one row",
        "DataFusion wants an aggregate in a subquery about the row around, also where its groups are one",
    ),
    "an order that constants keep": (
        r"SanityCheckPlan",
        "DataFusion counts on an order that a join of constants does not have, and then refuses its own plan",
    ),
}

NOT_ASKED = {
    "division of whole numbers by `/`, and by 0": "a whole number here, a fraction in DuckDB, which writes `//`; an error here, NULL there",
    "division of decimals": "scales differ",
    "decimals beside doubles": "are decimals here, doubles in DuckDB",
    "lists and structs as keys of an order": "DataFusion does not compare them within windows",
    "avg of decimals": "a decimal here, a double in DuckDB",
    "arithmetic of narrow integers": "runs over without an error here, is an error in DuckDB: operands are cast to bigint",
    "-0.0": "is another value than 0.0 in windows, to `nullif` and in orders of several columns; equal to it in DuckDB: `x + 0.0` is asked there",
    "length of a list without elements": "NULL or 0",
    "sums of floats that are not exact": "depend on the order",
    "upper and lower of letters that become several": "ß is SS here, ẞ in DuckDB",
    "reverse": "DuckDB keeps letters that are put together, and line ends of two signs, in their order",
    "parts of times with another zone": "a day, a month and a date are those of the column's zone here, of the session's in DuckDB",
    "an interval and a date": "a date here, a time in DuckDB",
    "a lateral query that shows a column of the row around it": "DataFusion knows that row in equalities only",
    "order by lists and structs": "nulls in them lie elsewhere",
    "a null among the objects of a list in JSON": "DataFusion refuses it",
    "in with nulls": "DataFusion takes NULL for false in `or`, `is not false` and the like, and of a constant `in` a subquery",
    "conditions of constants": "DataFusion asks them below aggregates, where those of all rows still make one",
    "an empty field of CSV": "is NULL here, whatever its type",
}


def refused(message: str) -> str | None:
    """The name of a known refusal."""
    return next((name for name, (pattern, _) in REFUSED.items() if re.search(pattern, message)), None)
