"""Random queries over the tables of a seed."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from typing import Any

from expressions import FLAT, NUMBERS, Atom, Expressions, Scope, as_it_is, expr, one_zero
from query import Derived, Either, Expr, Join, Named, Relation, Select, SetOp, Values
from tables import Table

# Rows that a join may be expected to have.
ROWS_MAX = 6000
# What a query may show, but nothing may be computed of: it is right within some ulps.
NEARLY = "nearly"
# What is the same in all rows: nothing is asked of it further up, see `conditions of constants` in `known`.
CONSTANT = "constant"
# What has a least and a greatest value in both engines.
ORDERED = FLAT
COMPARABLE = [*FLAT, "list", "struct", "firm", "deep", "structs", "map"]


def has_columns(of: Expr) -> bool:
    """Whether an expression names a column, or counts rows."""
    return any(has_columns(part) if isinstance(part, Expr) else isinstance(part, str) and re.search(r"^[a-z]+[0-9]+\.|count\(\*", part) for part in of.parts)


class Source:
    """A relation in `from`: its columns, what identifies a row of it, and how many rows it may have."""

    def __init__(self, node: Any, atoms: list[Atom], keys: list[Atom] | None, rows: float) -> None:
        self.node, self.atoms, self.keys, self.rows = node, atoms, keys, rows


class Made:
    """A query with what is known of it: its columns' names and types, a key among them, its rows."""

    def __init__(self, node: Any, columns: list[tuple[str, str]], key: list[str] | None, rows: float) -> None:
        self.node, self.columns, self.key, self.rows = node, columns, key, rows


class Generator:
    """The query of a seed."""

    def __init__(self, tables: list[Table], seed: int) -> None:
        self.rng = random.Random(f"query {seed}")
        self.tables = tables
        self.make = Expressions(self.rng)
        self.names = 0
        self.named: list[tuple[str, Made]] = []

    def name(self, letter: str) -> str:
        self.names += 1
        return f"{letter}{self.names}"

    def chance(self, of: float) -> bool:
        return self.rng.random() < of

    def query(self) -> Select | SetOp:
        """A whole query: with common table expressions now and then, and an order at the end."""
        ctes = []
        if self.chance(0.25):
            for _ in range(self.rng.randint(1, 2)):
                made = self.body(2, top=False)
                name = self.name("w")
                self.named.append((name, made))
                ctes.append((name, made.node))
        made = self.body(3, top=True)
        node = self.ordered(made, limit=0.4) if self.chance(0.5) else made.node
        return replace(node, ctes=(*ctes, *node.ctes))

    def ordered(self, made: Made, limit: float) -> Any:
        """The query in an order of all of its columns: equal rows are alike, so that the order is total."""
        at = list(range(len(made.columns)))
        self.rng.shuffle(at)
        order = tuple(f"{ix + 1} {self.rng.choice(['asc', 'desc'])} nulls {self.rng.choice(['first', 'last'])}" for ix in at)
        if getattr(made.node, "distinct_on", ()) or any(kind not in (*FLAT, CONSTANT) for _, kind in made.columns):
            return made.node
        node = replace(made.node, order=order)
        if self.chance(limit):
            node = replace(node, limit=self.rng.choice([0, 1, 3, 10, 50]))
            if self.chance(0.3):
                node = replace(node, offset=self.rng.choice([0, 1, 5, 40]))
        return node

    def body(self, depth: int, top: bool) -> Made:
        if depth > 1 and self.chance(0.14):
            return self.set_operation(depth - 1)
        return self.select(depth, top)

    def set_operation(self, depth: int) -> Made:
        kinds = [self.rng.choice(FLAT) for _ in range(self.rng.randint(1, 3))]
        left, right = self.select(depth, False, kinds), self.select(depth, False, kinds)
        word = self.rng.choice(["union", "union all", "union all", "intersect", "except"])
        key = None if word == "union all" else [name for name, _ in left.columns]
        return Made(SetOp(word, left.node, right.node), left.columns, key, left.rows + right.rows)

    def condition_of_columns(self, scope: Scope, depth: int = 2) -> tuple[Expr, ...]:
        """A condition that some column decides: see `conditions of constants` in `known`."""
        made = self.within(scope, bare=True) if scope.subquery and self.chance(0.08) else None
        made = made or self.make.predicate(scope, depth)
        return (made,) if has_columns(made) else ()

    # What is read.

    def source(self, depth: int) -> Source:
        source = self.relation(depth)
        for _ in range(self.rng.choice([0, 0, 0, 1, 1, 1, 2, 2, 3])):
            joined = self.joined(source, self.relation(depth))
            source = joined or source
        return source

    def relation(self, depth: int) -> Source:
        rng = self.rng
        if self.named and self.chance(0.3):
            name, made = rng.choice(self.named)
            return self.of_made(made, lambda alias: Named(name, alias))
        if depth > 1 and self.chance(0.18):
            made = self.body(depth - 1, top=False)
            if self.chance(0.25):
                made.node = self.ordered(made, limit=1.0)
            return self.of_made(made, lambda alias: Derived(made.node, alias))
        if self.chance(0.04):
            return self.values()
        return self.table(rng.choice(self.tables))

    def table(self, table: Table) -> Source:
        alias = self.name("t")
        atoms = [one_zero(expr(column.kind, f"{alias}.{column.name}")) for column in table.columns]
        node = Relation(table.name, table.extra["from"], alias)
        return Source(node, atoms, atoms[:1], max(len(table.rows), 1))

    def of_made(self, made: Made, node: Any) -> Source:
        alias = self.name("d")
        atoms = [expr(kind, f"{alias}.{name}") for name, kind in made.columns if kind not in (NEARLY, CONSTANT)]
        keys = None if made.key is None else [expr(dict(made.columns)[name], f"{alias}.{name}") for name in made.key]
        return Source(node(alias), atoms, keys, made.rows)

    def values(self) -> Source:
        alias, kinds = self.name("v"), [self.rng.choice(["int", "text", "bool", "dec", "date"]) for _ in range(self.rng.randint(1, 3))]
        rows = [[self.make.literal(kind) for kind in kinds] for _ in range(self.rng.randint(1, 5))]
        # Nulls without a type have that of the others, of which one at least is there.
        typed = self.rng.randrange(len(rows))
        rows = [[expr(of.kind, "null") if at != typed and self.chance(0.15) else of for of in row] for at, row in enumerate(rows)]
        names = tuple(self.name("x") for _ in kinds)
        atoms = [expr(kind, f"{alias}.{name}") for kind, name in zip(kinds, names)]
        return Source(Values(tuple(map(tuple, rows)), alias, names), atoms, None, len(rows))

    def joined(self, left: Source, right: Source) -> Source | None:
        rng, product = self.rng, left.rows * right.rows
        kind = rng.choice(["inner", "inner", "left", "left", "right", "full", "left semi", "left anti", "cross"])
        if kind == "cross":
            if product > ROWS_MAX or product > 40 * max(left.rows, right.rows):
                kind = "inner"
            else:
                return self.as_source(kind, left, right, (), product)
        on, selectivity = self.condition(left, right)
        rows = product * selectivity
        if rows > ROWS_MAX:
            ids = [next((atom for atom in side.atoms if str(atom.parts[0]).endswith(".id")), None) for side in (left, right)]
            if None in ids:
                return None
            on, rows = (expr("bool", "(", ids[0], " = ", ids[1], ")"),), max(left.rows, right.rows)
        if self.chance(0.2):
            on = (*on, self.make.comparison(Scope(left.atoms + right.atoms), 1))
        return self.as_source(kind, left, right, on, max(rows, left.rows if kind in ("left", "full") else 1, right.rows if kind in ("right", "full") else 1))

    def condition(self, left: Source, right: Source) -> tuple[tuple[Expr, ...], float]:
        """Equalities between two relations, and the share of pairs that they keep."""
        kinds = [atom.kind for atom in left.atoms if atom.kind in FLAT]
        shared = [kind for kind in kinds if any(atom.kind == kind for atom in right.atoms)]
        on, share = [], 1.0
        for _ in range(self.rng.choice([1, 1, 1, 2])):
            if not shared:
                break
            kind = self.rng.choice([*shared, *(["int"] if "int" in shared else [])])
            sides = [self.rng.choice([atom for atom in side.atoms if atom.kind == kind]) for side in (left, right)]
            word = "is not distinct from" if self.chance(0.07) else "="
            on.append(expr("bool", "(", as_it_is(sides[0]), f" {word} ", as_it_is(sides[1]), ")"))
            share *= {"bool": 0.5, "text": 0.1, "int": 0.06}.get(kind, 0.05)
        return tuple(on), share

    def as_source(self, kind: str, left: Source, right: Source, on: tuple[Expr, ...], rows: float) -> Source:
        node = Join(kind, left.node, right.node, on)
        if kind in ("left semi", "left anti"):
            return Source(node, left.atoms, left.keys, left.rows)
        keys = None if left.keys is None or right.keys is None else left.keys + right.keys
        return Source(node, left.atoms + right.atoms, keys, rows)

    # What is made of it.

    def select(self, depth: int, top: bool, kinds: list[str] | None = None) -> Made:
        source = self.source(depth)
        scope = Scope(source.atoms, source.keys)
        if depth > 1:
            scope.subquery = lambda kind, around: self.subquery(kind, around, depth - 1)
        shown = replace(scope, subquery=scope.subquery and (lambda kind, around: self.shown_subquery(kind, around, depth - 1)))
        where = tuple(one for _ in range(self.rng.choice([0, 0, 0, 1, 1, 2])) for one in self.condition_of_columns(scope))
        if kinds is None and self.chance(0.1):
            return self.extremes(source, where)
        if self.chance(0.4):
            return self.grouped(source, shown, where, top, kinds)
        if top and kinds is None and self.chance(0.06):
            return self.distinct_on(source, shown, where)
        return self.plain(source, shown, where, top, kinds)

    def plain(self, source: Source, scope: Scope, where: tuple[Expr, ...], top: bool, kinds: list[str] | None) -> Made:
        items, qualify = [], ()
        if kinds is None:
            # Subqueries in what is shown come at most once.
            for _ in range(self.rng.randint(1, 5)):
                items.append(self.item(scope, top))
            if self.chance(0.3):
                items += [self.window(scope) for _ in range(self.rng.randint(0, 2))]
                items += self.both_ways(scope) if self.chance(0.3) or len(items) == 0 else []
                if self.chance(0.2) and (flag := next((item for item in items if item.kind == "int" and " over (" in str(item)), None)):
                    qualify = (expr("bool", "(", flag, " <= 3)"),)
        else:
            items = [one_zero(self.make.of(kind, replace(scope, subquery=None))) for kind in kinds]
        key = None
        if source.keys is not None and kinds is None and self.chance(0.5):
            missing = [atom for atom in source.keys if atom not in items]
            items += missing
            key = source.keys
        columns, named = self.name_all(items)
        distinct = self.chance(0.12) and not any(kind == NEARLY for _, kind in columns)
        names = [next(name for item, name in named if item == atom) for atom in key] if key else None
        if distinct and names is None and all(kind in FLAT for _, kind in columns):
            names = [name for name, _ in columns]
        return Made(Select(named, source.node, where, qualify=qualify, distinct=distinct), columns, names, source.rows)

    def item(self, scope: Scope, top: bool) -> Expr:
        atom = self.make.atom(scope, COMPARABLE if top else None)
        if atom is not None and self.chance(0.45):
            return atom
        return self.make.of(self.rng.choice(FLAT), scope)

    def name_all(self, items: list[Expr]) -> tuple[list[tuple[str, str]], tuple[tuple[Expr, str], ...]]:
        named = tuple((item, self.name("x")) for item in items)
        constant = {name for item, name in named if item.kind != NEARLY and not has_columns(item)}
        return [(name, CONSTANT if name in constant else item.kind) for item, name in named], named

    def distinct_on(self, source: Source, scope: Scope, where: tuple[Expr, ...]) -> Made:
        """The first row of each group, by an order of all that is shown."""
        atoms = [atom for atom in source.atoms if atom.kind in FLAT]
        picked = self.rng.sample(atoms, min(len(atoms), self.rng.randint(2, 5)))
        if not picked:
            return self.plain(source, scope, where, True, None)
        columns, named = self.name_all(picked)
        first = self.rng.randint(1, len(picked))
        order = tuple(f"{ix + 1} {self.rng.choice(['asc', 'desc'])} nulls {self.rng.choice(['first', 'last'])}" for ix in range(len(picked)))
        node = Select(named, source.node, where, distinct_on=tuple(picked[:first]), order=order)
        return Made(node, columns, [name for name, _ in columns[:first]], source.rows)

    def extremes(self, source: Source, where: tuple[Expr, ...]) -> Made:
        """Least and greatest of several columns at once, of everything or of each group: what one of them has found says nothing of the others."""
        rng = self.rng
        atoms = [atom for atom in source.atoms if atom.kind in ORDERED]
        if not atoms:
            return self.plain(source, Scope(source.atoms, source.keys), where, False, None)
        keys = rng.sample(atoms, rng.choice([0, 0, 1, 2]) if len(atoms) > 2 else 0)
        items = [*keys]
        for _ in range(rng.randint(2, 5)):
            of = rng.choice(atoms)
            if of.kind == "int" and self.chance(0.2):
                of = expr("int", "(cast(", of, f" as bigint) {rng.choice('+-')} cast(", rng.choice([atom for atom in atoms if atom.kind == "int"]), " as bigint))")
            items.append(one_zero(expr(of.kind, f"{rng.choice(['min', 'max'])}(", as_it_is(of), ")")))
        columns, named = self.name_all(items)
        key = [name for _, name in named[: len(keys)]]
        return Made(Select(named, source.node, where, tuple(as_it_is(key) for key in keys)), columns, key, max(1.0, source.rows / 3) if keys else 1.0)

    def grouped(self, source: Source, scope: Scope, where: tuple[Expr, ...], top: bool, kinds: list[str] | None) -> Made:
        rng = self.rng
        atoms = [atom for atom in source.atoms if atom.kind in FLAT]
        keys: list[Expr] = []
        inner = replace(scope, subquery=None)
        for _ in range(rng.choice([0, 1, 1, 1, 2, 2, 3]) if atoms else 0):
            key = rng.choice(atoms)
            if self.chance(0.2):
                # Something of a column; a constant would be a position.
                key = expr(key.kind, "coalesce(", key, ", ", self.make.of(key.kind, inner, 1), ")")
            if key not in keys:
                keys.append(key)
        sets: Any = "plain"
        if keys and self.chance(0.3):
            sets = rng.choice(["rollup", "cube", "sets", *(["beside"] if len(keys) > 1 else [])])
            if sets == "sets":
                sets = tuple(tuple(at for at in range(len(keys)) if self.chance(0.5)) for _ in range(rng.randint(1, 3)))
                keys = [key for at, key in enumerate(keys) if any(at in of for of in sets)]
                if not keys:
                    sets = "plain"
                # Numbers of keys that are left.
                used = sorted({at for of in sets for at in of}) if keys else []
                sets = tuple(tuple(used.index(at) for at in of) for of in sets) if keys else sets
        aggregates = [self.aggregate(inner, top and kinds is None) for _ in range(rng.randint(1 if not keys else 0, 4))]
        after = Scope(keys + [one for one in aggregates if one.kind in FLAT], None)
        having = self.condition_of_columns(after, 1) if self.chance(0.2) else ()
        if kinds is None:
            items = [*keys, *aggregates]
            if self.chance(0.3):
                items.append(self.make.of(rng.choice(FLAT), after, 1))
            if keys and sets == "plain" and self.chance(0.12):
                items.append(self.window(replace(after, keys=keys)))
            if sets != "plain" and self.chance(0.5):
                items.append(expr("int", "grouping(", as_it_is(rng.choice(keys)), ")"))
        else:
            items = [one_zero(self.make.of(kind, after, 1)) for kind in kinds]
        if sets != "plain" and not all(has_columns(item) for item in items):
            sets = "plain"
        columns, named = self.name_all(items)
        key_names = None
        if kinds is None and sets == "plain":
            key_names = [name for _, name in named[: len(keys)]]
        node = Select(named, source.node, where, tuple(as_it_is(key) for key in keys), sets, having)
        return Made(node, columns, key_names, max(1.0, source.rows / 3) if keys else 1.0)

    def aggregate(self, scope: Scope, top: bool) -> Expr:
        rng = self.rng
        what = rng.randint(0, 13)
        if what <= 1:
            made = expr("int", "count(*)", *self.filter(scope))
        elif what == 2:
            made = expr("int", "count(", self.make.of(rng.choice(FLAT), scope, 1), ")")
        elif what == 3:
            made = expr("int", "count(distinct ", self.make.of(rng.choice(FLAT), scope, 1), ")")
        elif what <= 6:
            kind = rng.choice(NUMBERS)
            distinct = "distinct " if self.chance(0.15) else ""
            made = self.of_sum(kind, f"sum({distinct}", self.make.of(kind, scope, 1), ")", *self.filter(scope))
        elif what <= 9:
            kind = self.make.kind(scope, ORDERED)
            made = one_zero(expr(kind, f"{rng.choice(['min', 'max'])}(", as_it_is(self.make.of(kind, scope, 1)), ")", *self.filter(scope)))
        elif what == 10:
            made = expr("bool", f"{rng.choice(['bool_and', 'bool_or'])}(", self.make.predicate(scope, 1), ")")
        elif what == 11 and top:
            kind = rng.choice(["int", "float"])
            name = rng.choice(["avg", "stddev_samp", "var_pop", "median"])
            made = expr(NEARLY, f"{name}(cast(", self.make.of(kind, scope, 1), " as double))")
        elif what == 12 and top and scope.keys:
            # In an order that is total, so that the answer is one.
            order = [part for key in scope.keys for part in (", ", key, " nulls last")][1:]
            text = self.make.of("text", scope, 1)
            made = rng.choice([
                expr("text", "string_agg(", text, ", '|' order by ", *order, ")"),
                expr("list", "array_agg(", self.make.of("int", scope, 1), " order by ", *order, ")"),
                expr("text", rng.choice([Either("first_value(", "first("), Either("last_value(", "last(")]), text, " order by ", *order, ")"),
            ])
        else:
            made = expr("int", "count(*)")
        return made

    def filter(self, scope: Scope) -> tuple[Any, ...]:
        return (" filter (where ", self.make.predicate(scope, 1), ")") if self.chance(0.15) else ()

    def of_sum(self, kind: str, *parts: Any) -> Expr:
        """A sum in the type that its terms have here."""
        to = {"int": "bigint", "dec": "decimal(18, 4)", "float": "double"}[kind]
        return expr(kind, "cast(", *parts, f" as {to})") if kind != "float" else expr(kind, *parts)

    def window(self, scope: Scope) -> Expr:
        """A window function, in a total order of the rows where the answer depends on it."""
        partition, order = self.over(scope)
        return self.window_in(scope, partition, order)

    def both_ways(self, scope: Scope) -> list[Expr]:
        """Windows of one partition, in an order, in its reverse, and in one of its own."""
        partition, order = self.over(scope)
        back = [(atom, "desc" if way == "asc" else "asc", "first" if nulls == "last" else "last") for atom, way, nulls in order]
        other = self.over(scope)[1]
        return [self.window_in(scope, partition, one) for one in (order, back, other)[: self.rng.randint(2, 3)]]

    def over(self, scope: Scope) -> tuple[list[Any], list[tuple[Expr, str, str]]]:
        """A partition, and an order within it."""
        rng = self.rng
        atoms = [atom for atom in scope.atoms if atom.kind in FLAT]
        by = [part for atom in rng.sample(atoms, min(len(atoms), rng.choice([0, 0, 1, 1, 2]))) for part in (", ", atom)][1:]
        partition = ["partition by ", *by, " "] if by else []
        order = [(atom, rng.choice(["asc", "desc"]), rng.choice(["first", "last"])) for atom in rng.sample(atoms, min(len(atoms), rng.randint(1, 2)))]
        return partition, order + [(key, "asc", "last") for key in scope.keys or []]

    def window_in(self, scope: Scope, partition: list[Any], order: list[tuple[Expr, str, str]]) -> Expr:
        rng = self.rng
        inner = replace(scope, subquery=None)
        sorted_by = ["order by ", *[part for atom, way, nulls in order for part in (", ", atom, f" {way} nulls {nulls}")][1:]] if order else []
        if not sorted_by or scope.keys is None or self.chance(0.3):
            return self.window_by_peers(inner, partition, sorted_by)
        kind = self.make.kind(scope, FLAT)
        of = self.make.of(kind, inner, 1)
        what = rng.randint(0, 6)
        # Within the call in DuckDB, behind it here.
        ends = (Either(") ignore nulls", " ignore nulls)"),) if self.chance(0.3) else (")",)
        if what == 0:
            made = expr("int", "row_number()")
        elif what == 1:
            made = expr("int", f"ntile({rng.randint(1, 5)})")
        elif what == 2:
            made = expr(kind, f"{rng.choice(['lag', 'lead'])}(", of, f", {rng.randint(1, 3)}", *ends)
        elif what == 3:
            return expr(kind, f"{rng.choice(['first_value', 'last_value'])}(", of, *ends, " over (", *partition, *sorted_by, self.frame(), ")")
        elif what == 4:
            return expr(kind, "nth_value(", of, f", {rng.randint(1, 3)}", *ends, " over (", *partition, *sorted_by, self.frame(), ")")
        else:
            return self.aggregate_over(inner, partition, sorted_by, self.frame())
        return expr(made.kind, *made.parts, " over (", *partition, *sorted_by, ")")

    def window_by_peers(self, scope: Scope, partition: list[Any], sorted_by: list[Any]) -> Expr:
        """What is the same for rows that the order doesn't tell apart."""
        if sorted_by and self.chance(0.4):
            name = self.rng.choice(["rank()", "dense_rank()", "percent_rank()", "cume_dist()"])
            kind = "int" if name.endswith("_rank()") and not name.startswith("percent") or name == "rank()" else "wild"
            return expr(kind, f"{name} over (", *partition, *sorted_by, ")")
        return self.aggregate_over(scope, partition, sorted_by, "")

    def aggregate_over(self, scope: Scope, partition: list[Any], sorted_by: list[Any], frame: str) -> Expr:
        rng = self.rng
        kind = rng.choice(NUMBERS)
        over = (*self.filter(scope), " over (", *partition, *sorted_by, frame, ")")
        what = rng.randint(0, 3)
        if what == 0:
            return expr("int", "count(", self.make.of(rng.choice(FLAT), scope, 1), ")", *over)
        if what == 1:
            of = self.make.kind(scope, ORDERED)
            return one_zero(expr(of, f"{rng.choice(['min', 'max'])}(", as_it_is(self.make.of(of, scope, 1)), ")", *over))
        return self.of_sum(kind, "sum(", self.make.of(kind, scope, 1), ")", *over)

    def frame(self) -> str:
        rng = self.rng
        unit = rng.choice(["rows", "rows", "groups", "range"])
        start = rng.choice(["unbounded preceding", f"{rng.randint(0, 4)} preceding", "current row", f"{rng.randint(1, 2)} following"])
        end = rng.choice([f"{rng.randint(2, 5)} following", "unbounded following", "current row"])
        if unit == "range":
            start, end = rng.choice(["unbounded preceding", "current row"]), rng.choice(["unbounded following", "current row"])
        if "following" in start and end == "current row":
            end = "unbounded following"
        return f" {unit} between {start} and {end}"

    # Queries within expressions.

    def subquery(self, kind: str, around: Scope, depth: int) -> Expr | None:
        """A condition or a value by a query."""
        if kind == "bool":
            return self.rng.choice([self.exists, lambda around, depth: self.within(around), self.compared])(around, depth)
        return self.scalar(kind, around, depth)

    def shown_subquery(self, kind: str, around: Scope, depth: int) -> Expr | None:
        """What may be in a select list: the engine plans `in` and `exists` in conditions only."""
        return self.compared(around, depth) if kind == "bool" else self.scalar(kind, around, depth)

    def bare(self, scope: Scope) -> list[Atom]:
        """Columns, which a subquery may name; not what is computed."""
        return [atom for atom in scope.atoms if len(atom.parts) == 1]

    def exists(self, around: Scope, depth: int) -> Expr:
        inner = self.source(1)
        scope = Scope(inner.atoms)
        where = [self.make.predicate(scope, 1)] if self.chance(0.5) else []
        where += self.correlation(around, inner)
        word = self.rng.choice(["exists", "not exists"])
        return expr("bool", f"({word} (", Select(((expr("int", "1"), "one"),), inner.node, tuple(where)), "))")

    def correlation(self, around: Scope, inner: Source) -> list[Expr]:
        outer = [atom for atom in self.bare(around) if atom.kind in FLAT]
        pairs = [(a, b) for a in outer for b in inner.atoms if a.kind == b.kind and len(b.parts) == 1]
        if not pairs or not self.chance(0.85):
            return []
        a, b = self.rng.choice(pairs)
        return [expr("bool", "(", b, " = ", a, ")")]

    def within(self, around: Scope, bare: bool = False) -> Expr | None:
        """`in` a query. Nulls come in conditions that stand by themselves only: see `in with nulls` in `known`."""
        kind = self.make.kind(around, ["int", "text", "date", "dec", "float"])
        made = self.select(1, False, [kind])
        left = self.make.of(kind, replace(around, subquery=None), 1)
        if not has_columns(left):
            return None
        if not bare:
            left = self.never_null(left)
            items = tuple((self.never_null(item), name) for item, name in made.node.items)
            made.node = replace(made.node, items=items)
        return expr("bool", "(", left, f" {self.rng.choice(['in', 'in', 'not in'])} (", made.node, "))")

    def never_null(self, of: Expr) -> Expr:
        other = {"int": "0", "text": "''", "date": "date '2024-01-01'", "dec": "cast(0 as decimal(18, 4))", "float": "cast(0 as double)"}
        return expr(of.kind, "coalesce(", of, f", {other[of.kind]})")

    def compared(self, around: Scope, depth: int) -> Expr | None:
        kind = self.make.kind(around, ["int", "text", "date", "dec", "float", "ts"])
        value = self.scalar(kind, around, depth)
        return None if value is None else expr("bool", "(", self.make.of(kind, replace(around, subquery=None), 1), f" {self.rng.choice(['=', '<', '>='])} ", value, ")")

    def scalar(self, kind: str, around: Scope, depth: int) -> Expr | None:
        """One value: an aggregate of a query that may name columns around it."""
        if kind not in ORDERED:
            return None
        inner = self.source(1)
        scope = Scope(inner.atoms)
        of = self.make.of(kind, scope, 1)
        value = expr(kind, f"{self.rng.choice(['min', 'max'])}(", of, ")")
        if kind == "int" and self.chance(0.5):
            value = expr("int", "count(*)")
        where = [self.make.predicate(scope, 1)] if self.chance(0.4) else []
        where += self.correlation(around, inner)
        return expr(kind, "(", Select(((value, self.name("x")),), inner.node, tuple(where)), ")")
