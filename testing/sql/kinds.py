"""Kinds of queries that wrong answers were found in, each asked for by itself: what comes of chance alone has them too seldom."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from expressions import FLAT, NUMBERS, Scope, as_it_is, expr, one_zero
from generate import ORDERED, Generator, Source
from parts import of_kinds, selected, several_files, table, where
from query import Derived, Either, Expr, Join, Named, Select, SetOp, Values
from subqueries import absent, among, inside
from tables import Table

# The share of queries that are of these kinds.
SHARE = 0.4
STRUCTS = ("struct", "firm")
# What is computed of a column again and again, by the same words at each depth.
AGAIN: dict[str, tuple[Any, Any]] = {"int": ("(", " + 1)"), "float": ("(", " + 0.25)"), "text": ("concat(", ", 'x')"), "bool": ("(not ", ")")}


def query(tables: list[Table], seed: int) -> Any:
    """The query of a seed."""
    gen = Generator(tables, seed)
    return gen.rng.choice(KINDS)(gen) if gen.chance(SHARE) else gen.query()


def bare(names: dict[str, str]) -> list[Expr]:
    return [expr(kind, name) for name, kind in names.items()]


def repeated(gen: Generator) -> Any:
    """One name and one expression at several depths, each of what the one below gives."""
    source = table(gen)
    inner, kinds = deeper(gen, source)
    if gen.chance(0.3):
        # Both sides have the same names.
        other, others = deeper(gen, source)
        joined = Join(gen.rng.choice(["inner", "left", "full"]), Derived(inner, "a"), Derived(other, "b"), (expr("bool", "(a.id = b.id)"),))
        atoms = [expr(kind, f"{side}.{name}") for side, of in (("a", kinds), ("b", others)) for name, kind in of.items()]
        return selected(gen, atoms, joined, where(gen, Scope(atoms), 0.8))
    atoms = bare(kinds)
    if gen.chance(0.3):
        least = [one_zero(expr(atom.kind, f"{gen.rng.choice(['min', 'max'])}(", as_it_is(atom), ")")) for atom in atoms]
        return selected(gen, least, Derived(inner, ""), where(gen, Scope(atoms), 0.3))
    return selected(gen, atoms, Derived(inner, ""), where(gen, Scope(atoms), 0.3))


def deeper(gen: Generator, source: Source) -> tuple[Select, dict[str, str]]:
    """Queries in queries of a table, all of the same names, and what these are."""
    rng = gen.rng
    atoms = [atom for atom in source.atoms[1:] if atom.kind in AGAIN]
    first = rng.sample(atoms, min(len(atoms), rng.randint(1, 2)))
    # What both engines count in the same width.
    wide = [expr("int", "cast(", atom, " as bigint)") if atom.kind == "int" else atom for atom in first]
    kinds = {"id": "int"} | {f"s{at}": atom.kind for at, atom in enumerate(wide)}
    made = Select(tuple(zip([source.atoms[0], *wide], kinds)), source.node)
    again = [expr(kind, AGAIN[kind][0], name, AGAIN[kind][1]) if name != "id" else expr(kind, name) for name, kind in kinds.items()]
    if rng.random() < 0.4:
        again = [expr(kind, "(s0 + s0)") if name == "s0" and kind in NUMBERS else one for one, (name, kind) in zip(again, kinds.items())]
    if len(wide) == 2 and wide[0].kind == wide[1].kind and rng.random() < 0.4:
        again[1:] = bare({"s1": kinds["s1"], "s0": kinds["s0"]})
    alias = rng.choice(["", "", "d"])
    for _ in range(rng.randint(2, 4)):
        items, more = again, {}
        if rng.random() < 0.2:
            # One of them passes as it is.
            at = rng.randint(1, len(again) - 1) if len(again) > 1 else 0
            items = [*again[:at], bare(kinds)[at], *again[at + 1 :]]
        if rng.random() < 0.15:
            # Ids tell rows apart: the least of each group is what is there.
            items = [items[0], *[expr(of.kind, "min(", of, ")") for of in items[1:]]]
            more["group"] = (items[0],)
        made = Select(tuple(zip(items, kinds)), Derived(made, alias), where(gen, Scope(bare(kinds)), 0.15), distinct=rng.random() < 0.1, **more)
    return made, kinds


def summaries(gen: Generator) -> Any:
    """Several aggregates of all rows of many files: what one of them leaves out the others still count."""
    rng, source = gen.rng, table(gen, several_files)
    atoms = [atom for atom in source.atoms if atom.kind in ORDERED]
    items = []
    for _ in range(rng.randint(2, 6)):
        of = rng.choice(atoms)
        filtered = (" filter (where ", gen.make.comparison(Scope(atoms), 1), ")") if gen.chance(0.2) else ()
        if of.kind in NUMBERS and gen.chance(0.3):
            items.append(gen.of_sum(of.kind, "sum(", as_it_is(of), ")", *filtered))
        elif gen.chance(0.2):
            items.append(expr("int", f"count({rng.choice(['', 'distinct '])}", of, ")", *filtered))
        else:
            items.append(one_zero(expr(of.kind, f"{rng.choice(['min', 'max'])}(", as_it_is(of), ")", *filtered)))
    return selected(gen, items, source.node, where(gen, Scope(atoms)) + where(gen, Scope(atoms), 0.2))


def windows(gen: Generator) -> Any:
    """Windows of several orders in one query, and frames by values and by peers."""
    source = table(gen)
    scope = Scope(source.atoms, source.keys)
    items = [source.atoms[0], *gen.both_ways(scope)]
    items += [gen.rng.choice([framed, wide])(gen, scope) for _ in range(gen.rng.randint(1, 4))]
    # Of the first rows, which are told apart by their key, others are still looked at.
    first = {"order": (f"1 {gen.rng.choice(['asc', 'desc'])}",), "limit": gen.rng.choice([1, 7, 40])} if gen.chance(0.3) else {}
    return selected(gen, items, source.node, where(gen, scope, 0.3), **first)


def first_groups(gen: Generator) -> Any:
    """The first of groups by what they have least or most of, which other groups may have too."""
    rng, source = gen.rng, table(gen)
    flat = [atom for atom in source.atoms if atom.kind in FLAT]
    key, of = rng.choice(flat), rng.choice(flat)
    shown = rng.choice([one_zero(key), one_zero(expr(of.kind, f"{rng.choice(['min', 'max'])}(", as_it_is(of), ")"))])
    order = f"1 {rng.choice(['asc', 'desc'])} nulls {rng.choice(['first', 'last'])}"
    return selected(gen, [shown], source.node, where(gen, Scope(source.atoms), 0.3), group=(as_it_is(key),), order=(order,), limit=rng.choice([1, 3, 10]))


def framed(gen: Generator, scope: Scope) -> Expr:
    """An aggregate of rows whose values, or peers, lie within bounds."""
    rng = gen.rng
    partition, _ = gen.over(scope)
    # Floats that are no numbers lie within other bounds in the two.
    by = rng.choice([atom for atom in scope.atoms if atom.kind in ("int", "date", "ts")])
    unit = rng.choice(["range", "range", "groups"])
    most = rng.choice([1, 3, 40])
    bound = str(most) if by.kind == "int" or unit == "groups" else f"interval '{most} days'"
    start, end = rng.choice([
        (f"{bound} preceding", f"{bound} following"),
        (f"{bound} preceding", "current row"),
        ("unbounded preceding", f"{bound} preceding"),
        (f"{bound} following", "unbounded following"),
    ])
    of = expr("int", "cast(", by, " as bigint)") if by.kind == "int" else by
    order = ["order by ", of, f" {rng.choice(['asc', 'desc'])} nulls {rng.choice(['first', 'last'])}"]
    return gen.aggregate_over(replace(scope, subquery=None), partition, order, f" {unit} between {start} and {end}")


def wide(gen: Generator, scope: Scope) -> Expr:
    """A value, or an aggregate, of many rows around each: more of them than a part of the rows is computed at once, or all."""
    rng = gen.rng
    partition, order = gen.over(scope)
    if gen.chance(0.5):
        partition = []
    by = ["order by ", *[part for atom, way, nulls in order for part in (", ", atom, f" {way} nulls {nulls}")][1:]]
    start = rng.choice([f"{rng.choice([30, 500, 100000])} preceding", "unbounded preceding", f"{rng.choice([20, 200])} following"])
    end = rng.choice(["unbounded following", f"{rng.choice([250, 1000, 100000])} following"])
    if start.endswith("preceding") and gen.chance(0.4):
        end = rng.choice(["current row", f"{rng.choice([3, 25])} preceding"])
    unit = rng.choice(["rows", "rows", "groups"])
    inner = replace(scope, subquery=None)
    if unit == "rows" and gen.chance(0.4):
        # One row's, long texts as well, which each row then has.
        of = gen.make.of(gen.make.kind(scope, FLAT), inner, 1)
        name = rng.choice(["first_value", "last_value", "nth_value"])
        return expr(of.kind, f"{name}(", of, f", {rng.choice([1, 7, 120])})" if name == "nth_value" else ")", " over (", *partition, *by, f" rows between {start} and {end})")
    return gen.aggregate_over(inner, partition, by, f" {unit} between {start} and {end}")


def struct(gen: Generator, source: Source) -> Expr:
    """A struct of a source: a column, one within another, one in a list, or one that is made of columns."""
    found = [atom for atom in source.atoms if atom.kind in STRUCTS]
    found += [expr("struct", atom, "['s']") for atom in source.atoms if atom.kind == "deep"]
    found += [expr("struct", atom, "[1]") for atom in source.atoms if atom.kind == "structs"]
    if found and gen.chance(0.8):
        return gen.rng.choice(found)
    scope = Scope(source.atoms)
    number = expr("int", "cast(", gen.make.of("int", scope, 0), " as bigint)")
    return expr("struct", Either("named_struct('a', ", "struct_pack(a := "), number, Either(", 'b', ", ", b := "), gen.make.of("text", scope, 0), ")")


def fields(gen: Generator) -> Any:
    """Fields of structs that come through joins, unions, `case` and `coalesce`."""
    rng = gen.rng
    has = of_kinds(*STRUCTS, "deep", "structs")
    left, right = table(gen, has), table(gen, has)
    a, b = struct(gen, left), struct(gen, right)
    if gen.chance(0.35):
        sides = [Select(((side.atoms[0], "id"), (of, "s")), side.node) for side, of in ((left, a), (right, b))]
        if gen.chance(0.3):
            sides[0] = Select(((left.atoms[0], "id"), (expr("struct", "cast(null as ", struct_type(), ")"), "s")), left.node)
        inner: Any = SetOp("union all", *sides)
        if gen.chance(0.3):
            inner = Select(((expr("int", "id"), "id"), (expr("struct", "s"), "s")), Derived(inner, ""), (expr("bool", "(id % 3 <> 1)"),))
        return shown(gen, [expr("int", "d.id")], expr("struct", "d.s"), Derived(inner, "d"))
    kind = rng.choice(["inner", "left", "left", "right", "full"])
    joined = Join(kind, left.node, right.node, (expr("bool", "(", left.atoms[0], " = ", right.atoms[0], ")"),))
    scope = Scope(left.atoms + right.atoms)
    made = rng.choice([
        a,
        b,
        expr("struct", "coalesce(", a, ", ", b, ")"),
        expr("struct", "(case when ", gen.make.comparison(scope, 1), " then ", a, " else ", b, " end)"),
        expr("struct", "(case when ", gen.make.comparison(scope, 1), " then ", a, " end)"),
        expr("struct", "nullif(", a, ", ", b, ")"),
    ])
    if gen.chance(0.5):
        inner = Select(((left.atoms[0], "id"), (right.atoms[0], "other"), (made, "s")), joined)
        return shown(gen, [expr("int", "d.id"), expr("int", "d.other")], expr("struct", "d.s"), Derived(inner, "d"))
    return shown(gen, [left.atoms[0], right.atoms[0]], made, joined)


def struct_type() -> Either:
    return Either("struct<a bigint, b varchar>", "struct(a bigint, b varchar)")


def shown(gen: Generator, keys: list[Expr], of: Expr, source: Any) -> Select:
    """A struct as it is, its fields, and whether it is there; or its fields as groups."""
    a, b = expr("int", of, "['a']"), expr("text", of, "['b']")
    absent = expr("bool", "(", of, " is null)")
    conditions = (gen.rng.choice([expr("bool", "(", a, " is null)"), expr("bool", "(", a, " >= 3)"), expr("bool", "(", b, " < 'b')")]),) if gen.chance(0.4) else ()
    if gen.chance(0.25):
        return selected(gen, [a, absent, expr("int", "count(*)"), expr("int", "count(", b, ")")], source, conditions, group=(a, absent))
    return selected(gen, [*keys, a, b, absent, *([of] if gen.chance(0.5) else [])], source, conditions)


def elements(gen: Generator) -> Any:
    """Lists and maps: their elements, keys and values, where they are null, empty, or have nulls."""
    rng, source = gen.rng, table(gen, of_kinds("list", "map"))
    key = source.atoms[0]
    items = [key]
    for of in [atom for atom in source.atoms if atom.kind in ("list", "map")]:
        if of.kind == "map":
            items += [expr("int", of, f"['{rng.choice('abc')}']"), expr("int", "cardinality(", of, ")"), expr("texts", "map_keys(", of, ")")]
            items += [expr("list", "map_values(", of, ")")] if gen.chance(0.5) else [expr("map", of)]
            continue
        two = [rng.randint(-3, 9), rng.randint(-3, 9)]
        items += rng.sample([
            of,
            expr("list", of, f"[{rng.randint(1, 2)}:{rng.randint(2, 4)}]"),
            expr("list", "array_append(", of, f", {two[0]})"),
            expr("int", "array_position(", of, f", {two[0]})"),
            expr("int", Either("array_max(", "list_max("), of, ")"),
            expr("bool", Either("array_has_all(", "list_has_all("), of, f", [{two[0]}, {two[1]}])"),
            expr("bool", Either("array_has_any(", "list_has_any("), of, f", [{two[0]}, {two[1]}])"),
            expr("bool", "(", of, " is null)"),
        ], 4)
    lists = [atom for atom in source.atoms if atom.kind in ("list", "structs")]
    if lists and gen.chance(0.5):
        # A row each, none of what is null or empty.
        of = rng.choice(lists)
        inner = Select(((key, "id"), (expr("int" if of.kind == "list" else "struct", "unnest(", of, ")"), "u")), source.node)
        atoms = [expr("int", "d.id")]
        if of.kind == "structs":
            return shown(gen, atoms, expr("struct", "d.u"), Derived(inner, "d"))
        atoms.append(expr("int", "d.u"))
        return selected(gen, atoms, Derived(inner, "d"), where(gen, Scope(atoms)))
    return selected(gen, items, source.node, where(gen, Scope(source.atoms), 0.3))


def counted(gen: Generator) -> Any:
    """`except all` and `intersect all`, of sides in which rows come several times."""
    rng = gen.rng
    kinds = [rng.choice(["int", "text", "bool", "date", "dec", "float"]) for _ in range(rng.randint(1, 2))]
    sides = []
    for _ in range(2):
        source = table(gen, lambda one: all(of_kinds(kind)(one) for kind in kinds))
        scope = Scope(source.atoms)
        items = [gen.make.of(kind, scope, 0) for kind in kinds]
        few = [expr("int", "(cast(", item, " as bigint) % 4)") if item.kind == "int" else item for item in items]
        sides.append(selected(gen, few, source.node, where(gen, scope)))
    return SetOp(rng.choice(["except all", "intersect all"]), *sides)


# Numbers that are written out, beside those of a type: of a decimal and a double a decimal is made here, a double in DuckDB.
WRITTEN = {
    "dec": ["null", "1", "2", "cast(3 as smallint)", "cast(2.5 as decimal(5, 1))", "cast(-0.25 as decimal(4, 2))", "cast(2 as decimal(38, 10))"],
    "float": ["null", "1", "2", "cast(3 as smallint)", "cast(2.5 as double)", "cast(-0.25 as double)", "cast(2 as real)"],
}


def mixed(gen: Generator) -> Any:
    """Sides whose numbers are of several types, and rows that are written out, with nulls among them."""
    rng = gen.rng
    kinds = [rng.choice(["dec", "float"]) for _ in range(rng.randint(1, 2))]
    sides = [numbers(gen, kinds) for _ in range(rng.choice([2, 2, 3]))]
    made: Any = sides[0]
    for side in sides[1:]:
        made = SetOp(rng.choice(["union", "union all", "intersect", "except", "intersect all", "except all"]), made, side)
    if gen.chance(0.5):
        return made
    shown = [expr(kind, f"d.{name}") for kind, (_, name) in zip(kinds, sides[0].items)]
    if gen.chance(0.5):
        return selected(gen, [*shown, expr("int", "count(*)")], Derived(made, "d"), group=tuple(shown))
    return selected(gen, [expr(one.kind, f"{rng.choice(['min', 'max', 'count'])}(", one, ")") for one in shown], Derived(made, "d"))


def numbers(gen: Generator, kinds: list[str]) -> Select:
    """Whole numbers of all widths, or such as a kind is."""
    rng = gen.rng
    if gen.chance(0.3):
        names = tuple(gen.name("x") for _ in kinds)
        # Nulls alone have no type.
        rows = [[WRITTEN[kind][1] for kind in kinds]]
        rows += [[rng.choice(WRITTEN[kind]) for kind in kinds] for _ in range(rng.randint(1, 6))]
        rng.shuffle(rows)
        cells = tuple(tuple(expr(kind, cell) for kind, cell in zip(kinds, row)) for row in rows)
        return selected(gen, [expr(kind, f"v.{name}") for kind, name in zip(kinds, names)], Values(cells, "v", names))
    source = table(gen, of_kinds("dec", "float"))
    items = [rng.choice([atom for atom in source.atoms if atom.kind in ("int", kind)]) for kind in kinds]
    return selected(gen, items, source.node, where(gen, Scope(source.atoms)), distinct=gen.chance(0.1))


def several(gen: Generator) -> Any:
    """Rows of several lists at once, the shorter ones with nulls, and what is computed of these."""
    rng, source = gen.rng, table(gen, of_kinds("list", "structs"))
    key = source.atoms[0]
    lists = [atom for atom in source.atoms if atom.kind in ("list", "structs")]
    made = [expr("int", "unnest(", rng.choice(["[1, null, 3]", "[7]", "[4, 4, 4, 4]"]), ")")]
    for of in rng.sample(lists, min(len(lists), rng.randint(1, 2))):
        made.append(expr("int" if of.kind == "list" else "struct", "unnest(", of, ")"))
    rng.shuffle(made)
    inner = Select(((key, "id"), *[(one, f"u{at}") for at, one in enumerate(made)]), source.node, where(gen, Scope([key]), 0.3))
    atoms = [expr("int", "d.id")] + [expr(one.kind, f"d.u{at}") for at, one in enumerate(made)]
    atoms = [expr("int", atom, "['a']") if atom.kind == "struct" and gen.chance(0.5) else atom for atom in atoms]
    flat = [atom for atom in atoms if atom.kind == "int"]
    if gen.chance(0.4):
        of = rng.choice(flat)
        return selected(gen, [of, expr("int", "count(*)"), *[expr("int", "count(", atom, ")") for atom in atoms]], Derived(inner, "d"), group=(of,))
    return selected(gen, atoms, Derived(inner, "d"), where(gen, Scope(flat)))


def beside(gen: Generator) -> Any:
    """A table and, for each of its rows, a query that names it (`lateral`)."""
    rng, outer, inner = gen.rng, table(gen), table(gen)
    # The engine knows the row around in conditions of equality only.
    pairs = [(a, b) for a in outer.atoms[1:] for b in inner.atoms if a.kind == b.kind and a.kind in ("int", "text", "date", "bool") and len(b.parts) == 1]
    a, b = rng.choice(pairs)
    on = (expr("bool", "(", b, " = ", a, ")"), *where(gen, Scope(inner.atoms), 0.4))
    alias = gen.name("d")
    flat = [atom for atom in inner.atoms if atom.kind in FLAT]
    if gen.chance(0.5):
        of = rng.choice(flat)
        items = [expr("int", "count(*)"), one_zero(expr(of.kind, f"{rng.choice(['min', 'max'])}(", as_it_is(of), ")"))]
    else:
        items = [inner.atoms[0], rng.choice(flat)]
    made = selected(gen, items, inner.node, on)
    joined = Join(rng.choice(["cross", "left"]), outer.node, Derived(made, alias, lateral=True), ())
    return selected(gen, [outer.atoms[0], *[expr(item.kind, f"{alias}.{name}") for item, name in made.items]], joined)


def recursive(gen: Generator) -> Any:
    """Rows that lead to other rows, some steps far."""
    rng, source = gen.rng, table(gen)
    name, steps = gen.name("r"), rng.randint(1, 4)
    start = where(gen, Scope(source.atoms)) or (expr("bool", "(", source.atoms[0], " < 20)"),)
    first = Select(((source.atoms[0], "id"), (expr("int", "cast(", source.atoms[1], " as bigint)"), "k"), (expr("int", "cast(0 as bigint)"), "n")), source.node, start)
    another = gen.table(next(one for one in gen.tables if one.name == source.node.name)) if gen.chance(0.5) else table(gen)
    step = expr("int", f"({name}.n + 1)")
    below = expr("bool", f"({name}.n < {steps})")
    joined = Join("inner", Named(name, ""), another.node, (expr("bool", "(", another.atoms[0], f" = {name}.k)"),))
    following = Select(((another.atoms[0], "id"), (expr("int", "cast(", another.atoms[1], " as bigint)"), "k"), (step, "n")), joined, (below,))
    ctes = ((name, SetOp(rng.choice(["union all", "union"]), first, following)),)
    if gen.chance(0.5):
        return selected(gen, [expr("int", f"{name}.n"), expr("int", "count(*)"), expr("int", f"min({name}.k)")], Named(name, ""), group=(expr("int", f"{name}.n"),), ctes=ctes)
    return selected(gen, [expr("int", f"{name}.{column}") for column in ("id", "k", "n")], Named(name, ""), ctes=ctes)


def correlated(gen: Generator) -> Any:
    """Rows for which a query about them finds something, or with what it finds."""
    outer = table(gen)
    scope = Scope(outer.atoms, outer.keys)
    condition = gen.rng.choice([gen.exists(scope, 1), gen.within(scope), gen.compared(scope, 1)])
    conditions = () if condition is None else (condition,)
    if gen.chance(0.3):
        conditions = (expr("bool", "(", gen.exists(scope, 1), f" {gen.rng.choice(['or', 'and'])} ", gen.make.comparison(scope, 1), ")"),)
    found = gen.scalar(gen.make.kind(scope, ["int", "text", "date"]), scope, 1) if gen.chance(0.5) else None
    return selected(gen, [outer.atoms[0], *([] if found is None else [found])], outer.node, conditions)


def instants(gen: Generator) -> Any:
    """Dates and times with and without zones, and what lies some while before and after them."""
    rng, source = gen.rng, table(gen, of_kinds("tz", "ts", "date"))
    scope = Scope(source.atoms)
    many = " ".join(f"{rng.randint(1, 40)} {unit}" for unit in rng.sample(["months", "days", "hours", "minutes"], 2))
    items = [source.atoms[0]]
    for _ in range(rng.randint(2, 4)):
        # A day, a month and a date of another zone are that zone's here, and of the session's zone in DuckDB.
        tz = gen.make.of("tz", scope, 0)
        ts = rng.choice([gen.make.of("ts", scope, 0), expr("ts", "cast(", tz, " as timestamp)")])
        date = gen.make.of("date", scope, 0)
        items.append(rng.choice([
            expr("tz", "(", tz, f" {rng.choice('+-')} interval '{rng.randint(1, 99)} hours')"),
            expr("ts", "(", ts, f" {rng.choice('+-')} interval '{many}')"),
            # With an interval a date is a date here, and a time in DuckDB.
            expr("ts", "(cast(", date, f" as timestamp) {rng.choice('+-')} interval '{many}')"),
            expr("int", f"cast(extract({rng.choice(['hour', 'minute', 'doy', 'epoch', 'isodow'])} from date_trunc('second', ", ts, ")) as bigint)"),
            expr("tz", "cast(", rng.choice([ts, date]), " as timestamp with time zone)"),
            expr("bool", "(", tz, " < cast(", ts, " as timestamp with time zone))"),
            expr("bool", "(cast(", date, " as timestamp) <= ", ts, ")"),
            expr("int", "cast((", date, " - date '2000-01-01') as bigint)"),
        ]))
    return selected(gen, items, source.node, where(gen, scope))


def decimals(gen: Generator) -> Any:
    """Decimals of many digits. Division is another type's in the two, and products of more than 38 digits are errors of one of them."""
    rng, source = gen.rng, table(gen, of_kinds("dec"))
    scope = Scope(source.atoms)
    nearly = rng.choice(["99999999999999.9999", "-99999999999999.9999", "0.0001"])
    items = []
    for _ in range(rng.randint(2, 4)):
        a, b = gen.make.of("dec", scope, 1), gen.make.of("dec", scope, 1)
        wide = expr("dec", "cast(", a, " as decimal(28, 6))")
        items.append(rng.choice([
            expr("dec", "(", wide, f" {rng.choice('+-')} cast('{nearly}' as decimal(30, 4)))"),
            expr("dec", "(cast(", a, " as decimal(17, 4)) * cast(", b, " as decimal(19, 4)))"),
            expr("dec", "round(", wide, f", {rng.randint(0, 3)})"),
            expr("dec", "(", wide, f" % {rng.choice([2, 7])})"),
            expr("bool", "(", wide, " > cast(", b, " as decimal(38, 10)))"),
            expr("dec", "cast(", wide, " as decimal(38, 12))"),
        ]))
    if gen.chance(0.4):
        return selected(gen, [expr("dec", f"{rng.choice(['sum', 'min', 'max'])}(", item, ")") if item.kind == "dec" else expr("int", "count(", item, ")") for item in items], source.node, where(gen, scope))
    return selected(gen, [source.atoms[0], *items], source.node, where(gen, scope))


def qualified(gen: Generator) -> Any:
    """The first rows of each group, by a window that is shown or not."""
    source = table(gen)
    scope = Scope(source.atoms, source.keys)
    partition, order = gen.over(scope)
    by = [part for atom, way, nulls in order for part in (", ", atom, f" {way} nulls {nulls}")][1:]
    number = expr("int", gen.rng.choice(["row_number()", "rank()", "dense_rank()"]), " over (", *partition, "order by ", *by, ")")
    items = [source.atoms[0], gen.rng.choice([atom for atom in source.atoms if atom.kind in FLAT]), *([number] if gen.chance(0.5) else [])]
    return selected(gen, items, source.node, where(gen, scope), qualify=(expr("bool", "(", number, f" <= {gen.rng.randint(1, 3)})"),))


KINDS: list[Callable[[Generator], Any]] = [
    repeated, summaries, summaries, first_groups, windows, windows, fields, fields, elements, counted, beside, recursive, correlated, instants, decimals, qualified,
    absent, absent, among, inside, mixed, several,
]
