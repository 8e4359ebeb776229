"""Queries as trees: what the generator makes, both engines are asked, and a failure is made smaller by."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

# The dialects that a query is written in. The last is Forebay's with tables by their names, for the engine below on its own.
FOREBAY, DUCKDB, ENGINE = 0, 1, 2


@dataclass(frozen=True)
class Either:
    """What the two dialects write differently."""

    forebay: str
    duckdb: str


@dataclass(frozen=True)
class Expr:
    """An expression: its type, and text, other expressions and queries in the order in which they are written."""

    kind: str
    parts: tuple[Any, ...]


@dataclass(frozen=True)
class Relation:
    """A base table. `where` is what Forebay reads it from; the other engine knows its name."""

    name: str
    where: str
    alias: str


@dataclass(frozen=True)
class Named:
    """A common table expression's name."""

    name: str
    alias: str


@dataclass(frozen=True)
class Derived:
    query: Any
    alias: str
    # Whether it may name what stands before it.
    lateral: bool = False


@dataclass(frozen=True)
class Values:
    rows: tuple[tuple[Expr, ...], ...]
    alias: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Join:
    kind: str
    left: Any
    right: Any
    on: tuple[Expr, ...]


@dataclass(frozen=True)
class Select:
    items: tuple[tuple[Expr, str], ...]
    source: Any = None
    where: tuple[Expr, ...] = ()
    group: tuple[Expr, ...] = ()
    # `plain`, `rollup`, `cube`, `beside` (a key beside a rollup of the others), or the sets as numbers of keys.
    sets: Any = "plain"
    having: tuple[Expr, ...] = ()
    qualify: tuple[Expr, ...] = ()
    distinct: bool = False
    distinct_on: tuple[Expr, ...] = ()
    order: tuple[str, ...] = ()
    limit: int | None = None
    offset: int | None = None
    ctes: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class SetOp:
    word: str
    left: Any
    right: Any
    order: tuple[str, ...] = ()
    limit: int | None = None
    offset: int | None = None
    ctes: tuple[tuple[str, Any], ...] = ()


def text(node: Any, dialect: int) -> str:
    """A node in a dialect."""
    if isinstance(node, str):
        return node
    if isinstance(node, Either):
        return node.duckdb if dialect == DUCKDB else node.forebay
    if isinstance(node, Expr):
        return "".join(text(part, dialect) for part in node.parts)
    if isinstance(node, Relation):
        return f"{node.where if dialect == FOREBAY else node.name} {node.alias}"
    if isinstance(node, Named):
        return f"{node.name} {node.alias}"
    if isinstance(node, Derived):
        return f"{'lateral ' if node.lateral else ''}({text(node.query, dialect)}) {node.alias}"
    if isinstance(node, Values):
        rows = ", ".join("(" + _list(row, dialect) + ")" for row in node.rows)
        return f"(values {rows}) as {node.alias}({', '.join(node.columns)})"
    if isinstance(node, Join):
        return _join(node, dialect)
    if isinstance(node, Select):
        return _select(node, dialect)
    assert isinstance(node, SetOp), node
    sides = f"({text(node.left, dialect)}) {node.word} ({text(node.right, dialect)})"
    return _with(node, dialect) + sides + _tail(node)


def _list(nodes: Any, dialect: int) -> str:
    return ", ".join(text(node, dialect) for node in nodes)


def _and(nodes: tuple[Expr, ...], dialect: int) -> str:
    return " and ".join(text(node, dialect) for node in nodes)


def _join(node: Join, dialect: int) -> str:
    word = node.kind
    if dialect == DUCKDB and word in ("left semi", "left anti"):
        word = word.removeprefix("left ")
    right = text(node.right, dialect)
    if isinstance(node.right, Join):
        right = f"({right})"
    on = "" if node.kind == "cross" else f" on {_and(node.on, dialect) or 'true'}"
    return f"{text(node.left, dialect)} {word} join {right}{on}"


def _with(node: Any, dialect: int) -> str:
    if not node.ctes:
        return ""
    word = "with recursive " if any(_reads(query, name) for name, query in node.ctes) else "with "
    return word + ", ".join(f"{name} as ({text(query, dialect)})" for name, query in node.ctes) + " "


def _reads(node: Any, name: str) -> bool:
    """Whether a query of `with` is of itself."""
    return isinstance(node, SetOp) and isinstance(node.right, Select) and isinstance(node.right.source, Join) and node.right.source.left == Named(name, "")


def _tail(node: Any) -> str:
    out = f" order by {', '.join(node.order)}" if node.order else ""
    out += f" limit {node.limit}" if node.limit is not None else ""
    return out + (f" offset {node.offset}" if node.offset is not None else "")


def _select(node: Select, dialect: int) -> str:
    out = _with(node, dialect) + "select "
    if node.distinct_on:
        out += f"distinct on ({_list(node.distinct_on, dialect)}) "
    out += "distinct " if node.distinct else ""
    out += ", ".join(f"{text(expr, dialect)} as {name}" for expr, name in node.items)
    out += f" from {text(node.source, dialect)}" if node.source is not None else ""
    out += f" where {_and(node.where, dialect)}" if node.where else ""
    if node.group:
        out += " group by " + _group(node, dialect)
    out += f" having {_and(node.having, dialect)}" if node.having else ""
    out += f" qualify {_and(node.qualify, dialect)}" if node.qualify else ""
    return out + _tail(node)


def _group(node: Select, dialect: int) -> str:
    keys = [text(key, dialect) for key in node.group]
    if node.sets == "plain":
        return ", ".join(keys)
    if node.sets == "beside":
        return f"{keys[0]}, rollup ({', '.join(keys[1:])})"
    if isinstance(node.sets, str):
        return f"{node.sets} ({', '.join(keys)})"
    return "grouping sets (" + ", ".join("(" + ", ".join(keys[at] for at in of) + ")" for of in node.sets) + ")"


# What a type's simplest values are, for making failures smaller.
SIMPLEST = {
    "int": ["cast(1 as bigint)"],
    "dec": ["cast(1 as decimal(18, 4))"],
    "float": ["cast(1 as double)"],
    "wild": ["cast(1 as double)"],
    "odd": ["cast(1 as double)"],
    "text": ["'a'"],
    "bool": ["true", "false"],
    "date": ["date '2024-01-05'"],
    "ts": ["timestamp '2024-01-05 00:00:00'"],
}


def smaller(node: Any) -> Iterator[Any]:
    """All queries that are one step smaller than this one; those that are no queries any more are for the engines to refuse."""
    if isinstance(node, (Select, SetOp)):
        yield from _smaller_query(node)
    elif isinstance(node, Expr):
        yield from _smaller_expr(node)
    elif isinstance(node, Derived):
        yield from (replace(node, query=query) for query in smaller(node.query))
    elif isinstance(node, Join):
        yield node.left
        if node.kind not in ("left semi", "left anti"):
            yield node.right
        if node.kind not in ("inner", "cross"):
            yield replace(node, kind="inner")
        yield from (replace(node, on=on) for on in _smaller_list(node.on))
        yield from (replace(node, left=side) for side in smaller(node.left))
        yield from (replace(node, right=side) for side in smaller(node.right))


def _smaller_query(node: Any) -> Iterator[Any]:
    for name in ("limit", "offset"):
        if getattr(node, name) is not None:
            yield replace(node, **{name: None})
    for at in range(len(node.ctes)):
        yield replace(node, ctes=node.ctes[:at] + node.ctes[at + 1 :])
    if isinstance(node, SetOp):
        for side in (node.left, node.right):
            yield replace(side, ctes=node.ctes + side.ctes)
        yield from (replace(node, left=side) for side in smaller(node.left))
        yield from (replace(node, right=side) for side in smaller(node.right))
    else:
        yield from _smaller_select(node)
    if node.order and node.limit is None and node.offset is None:
        yield replace(node, order=())
    for at, (name, query) in enumerate(node.ctes):
        yield from (replace(node, ctes=(*node.ctes[:at], (name, less), *node.ctes[at + 1 :])) for less in smaller(query))


def _smaller_select(node: Select) -> Iterator[Any]:
    if isinstance(node.source, Derived):
        yield replace(node.source.query, ctes=node.ctes + node.source.query.ctes)
    if node.distinct:
        yield replace(node, distinct=False)
    if node.sets != "plain":
        yield replace(node, sets="plain")
        if not isinstance(node.sets, str) and len(node.sets) > 1:
            yield from (replace(node, sets=node.sets[:at] + node.sets[at + 1 :]) for at in range(len(node.sets)))
    for name in ("where", "having", "qualify"):
        yield from (replace(node, **{name: less}) for less in _smaller_list(getattr(node, name)))
    if len(node.items) > 1 and not node.distinct_on:
        for at in range(len(node.items)):
            # Order is by position: without the column, and without what comes after it.
            order = tuple(_shifted(key, at + 1) for key in node.order if int(key.split()[0]) != at + 1)
            yield replace(node, items=node.items[:at] + node.items[at + 1 :], order=order)
    for at in range(len(node.group)):
        if isinstance(node.sets, str):
            least = 2 if node.sets == "beside" else 1
            yield replace(node, group=node.group[:at] + node.group[at + 1 :], sets=node.sets if len(node.group) > least else "plain")
    if node.source is not None:
        yield from (replace(node, source=source) for source in smaller(node.source))
    for at, (expr, name) in enumerate(node.items):
        yield from (replace(node, items=(*node.items[:at], (less, name), *node.items[at + 1 :])) for less in smaller(expr))


def _shifted(key: str, gone: int) -> str:
    at, rest = key.split(" ", 1)
    return f"{int(at) - (int(at) > gone)} {rest}"


def _smaller_list(nodes: tuple[Expr, ...]) -> Iterator[tuple[Expr, ...]]:
    for at in range(len(nodes)):
        yield nodes[:at] + nodes[at + 1 :]
    for at, node in enumerate(nodes):
        yield from ((*nodes[:at], less, *nodes[at + 1 :]) for less in smaller(node))


def _smaller_expr(node: Expr) -> Iterator[Expr]:
    own = text(node, FOREBAY)
    for less in _below(node):
        if less.kind == node.kind:
            yield less
    for simple in SIMPLEST.get(node.kind, []):
        if len(simple) < len(own):
            yield Expr(node.kind, (simple,))
    for at, part in enumerate(node.parts):
        if isinstance(part, (Expr, Select, SetOp)):
            yield from (Expr(node.kind, (*node.parts[:at], less, *node.parts[at + 1 :])) for less in smaller(part))


def _below(node: Expr) -> Iterator[Expr]:
    for part in node.parts:
        if isinstance(part, Expr):
            yield part
            yield from _below(part)
