"""What kinds of queries are put together of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from expressions import Scope
from generate import Generator, Source
from query import Expr, Select
from tables import Table


def table(gen: Generator, has: Callable[[Table], bool] = lambda _: True) -> Source:
    """A table, one that has what is asked for where there is any."""
    return gen.table(gen.rng.choice([one for one in gen.tables if has(one)] or gen.tables))


def of_kinds(*kinds: str) -> Callable[[Table], bool]:
    return lambda one: any(column.kind in kinds for column in one.columns)


def several_files(one: Table) -> bool:
    return one.layout != "one"


def where(gen: Generator, scope: Scope, chance: float = 0.5) -> tuple[Expr, ...]:
    return gen.condition_of_columns(replace(scope, subquery=None), 1) if gen.chance(chance) else ()


def selected(gen: Generator, items: list[Expr], source: Any, conditions: tuple[Expr, ...] = (), **more: Any) -> Select:
    """A query that shows each item by a name of its own."""
    return Select(tuple((item, gen.name("x")) for item in items), source, conditions, **more)
