"""Queries within queries that may give no row, or nulls: as values and as conditions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from expressions import FLAT, NUMBERS, Atom, Scope, as_it_is, expr, one_zero
from generate import Generator, Source
from parts import of_kinds, selected, table, where
from query import FOREBAY, Derived, Expr, Join, Select, text

KINDS = ["int", "int", "text", "date", "dec", "float"]
# What a value is computed further with.
MORE: dict[str, tuple[str, str]] = {
    "int": ("(cast(", " as bigint) + 1)"),
    "dec": ("cast((", " + cast(1.25 as decimal(18, 4))) as decimal(18, 4))"),
    "float": ("(", " * 2)"),
    "text": ("(", " || 'x')"),
    "date": ("cast((", " - interval '3 days') as date)"),
}


def absent(gen: Generator) -> Any:
    """Values of queries that may give no row, and what is made of them."""
    rng, outer = gen.rng, table(gen)
    scope = Scope(outer.atoms, outer.keys)
    items, conditions = [outer.atoms[0]], list(where(gen, scope, 0.2))
    for _ in range(rng.randint(1, 3)):
        kind = gen.make.kind(scope, KINDS)
        made = used(gen, scope, kind, value(gen, outer, kind))
        if made.kind == "bool" and gen.chance(0.4):
            conditions.append(made)
        else:
            items.append(made)
    inner = selected(gen, items, outer.node, tuple(conditions))
    if gen.chance(0.7):
        return inner
    # What stands above counts on what is said of the columns.
    atoms = [expr(item.kind, f"d.{name}") for item, name in inner.items]
    of = rng.choice(atoms)
    return rng.choice([
        selected(gen, [expr("int", "count(", atom, ")") for atom in atoms], Derived(inner, "d")),
        selected(gen, [one_zero(of), expr("int", "count(*)")], Derived(inner, "d"), group=(of,)),
        selected(gen, [atoms[0]], Derived(inner, "d"), (expr("bool", "(", of, f" is {rng.choice(['', 'not '])}null)"),)),
    ])


def used(gen: Generator, scope: Scope, kind: str, of: Expr) -> Expr:
    """A value within what treats null by rules of its own, or within nothing."""
    other = gen.make.of(kind, scope, 0)
    null = f" is {gen.rng.choice(['', 'not '])}null"
    return gen.rng.choice([
        of,
        expr(kind, "coalesce(", of, ", ", other, ")"),
        expr("bool", "(", of, null, ")"),
        expr(kind, "(case when ", of, null, " then ", other, " else ", of, " end)"),
        expr("bool", "(", other, f" {gen.rng.choice(['=', '<>', '<', '>='])} ", of, ")"),
        expr("bool", "(", other, f" is {gen.rng.choice(['', 'not '])}distinct from ", of, ")"),
        expr(kind, MORE[kind][0], of, MORE[kind][1]),
        expr("bool", "(", expr(kind, MORE[kind][0], of, MORE[kind][1]), null, ")"),
    ])


def value(gen: Generator, outer: Source, kind: str) -> Expr:
    """A query of one value, of a table that may have no row for it."""
    inner = table(gen, of_kinds(kind))
    equal = pair(gen, outer, inner) if gen.chance(0.6) else None
    if equal is None:
        made = alone(gen, inner, kind)
    else:
        made = first(gen, inner, kind, equal) if gen.chance(0.2) else about(gen, inner, kind, equal)
    return expr(kind, "(", made, ")")


def pair(gen: Generator, outer: Source, inner: Source) -> tuple[Atom, Atom] | None:
    """A column of each that may be equal."""
    pairs = [(a, b) for a in outer.atoms for b in inner.atoms if a.kind == b.kind and a.kind in ("int", "text", "date", "bool")]
    return gen.rng.choice(pairs) if pairs else None


def aggregate(gen: Generator, inner: Source, kind: str) -> Expr:
    """One of all rows; a number of them is never null where there is a row."""
    rng, scope = gen.rng, Scope(inner.atoms)
    of = gen.make.of(kind, scope, 0)
    least = expr(kind, f"{rng.choice(['min', 'max'])}(", of, ")")
    if kind == "int" and gen.chance(0.5):
        return rng.choice([expr("int", "count(*)"), expr("int", "count(", rng.choice(inner.atoms), ")")])
    if kind in NUMBERS and gen.chance(0.3):
        return gen.of_sum(kind, "sum(", of, ")")
    # Never null where there is a row.
    return expr(kind, "coalesce(", least, ", ", gen.make.literal(kind), ")") if gen.chance(0.3) else least


def having(gen: Generator) -> tuple[Expr, ...]:
    return (gen.rng.choice([
        expr("bool", "(count(*) > ", str(gen.rng.choice([0, 1, 3, 100])), ")"),
        expr("bool", "(count(*) = 0)"),
        expr("bool", "false"),
        expr("bool", "(max(1) is null)"),
    ]),)


def alone(gen: Generator, inner: Source, kind: str) -> Select:
    """One that knows nothing of the row around it."""
    rng, scope = gen.rng, Scope(inner.atoms)
    conditions = where(gen, scope)
    key = inner.atoms[0]
    one = expr("bool", "(", key, f" = {rng.choice([0, 3, 5, 39, 9000])})")
    of = gen.make.of(kind, scope, 0)
    what = rng.randint(0, 4)
    if what == 0:
        return selected(gen, [aggregate(gen, inner, kind)], inner.node, conditions, limit=rng.choice([0, 1]), offset=rng.choice([None, 1]))
    if what == 1:
        return selected(gen, [aggregate(gen, inner, kind)], inner.node, conditions, having=having(gen))
    if what == 2:
        return selected(gen, [of], inner.node, (one,))
    if what == 3:
        return selected(gen, [aggregate(gen, inner, kind)], inner.node, (one, *conditions), group=(key,))
    # The order is of one column that tells rows apart.
    first = Select(((key, "id"), (of, "v")), inner.node, conditions, order=("1 asc",), limit=1, offset=rng.choice([0, 5, 2000]))
    return selected(gen, [expr(kind, "f.v")], Derived(first, "f"))


def first(gen: Generator, inner: Source, kind: str, equal: tuple[Atom, Atom]) -> Select:
    """The first of the rows about the row around it, by what tells them apart."""
    a, b = equal
    conditions = (expr("bool", "(", b, " = ", a, ")"), *where(gen, Scope(inner.atoms), 0.3))
    order = f"{text(inner.atoms[0], FOREBAY)} {gen.rng.choice(['asc', 'desc'])}"
    return selected(gen, [gen.make.of(kind, Scope(inner.atoms), 0)], inner.node, conditions, order=(order,), limit=1)


def about(gen: Generator, inner: Source, kind: str, equal: tuple[Atom, Atom]) -> Select:
    """One about the row around it."""
    rng, (a, b) = gen.rng, equal
    conditions = (expr("bool", "(", b, " = ", a, ")"), *where(gen, Scope(inner.atoms), 0.3))
    more: dict[str, Any] = {}
    if gen.chance(0.5):
        more["group"] = (b,)
    if gen.chance(0.5):
        more["having"] = having(gen)
    return selected(gen, [aggregate(gen, inner, kind)], inner.node, conditions, **more)


def among(gen: Generator) -> Any:
    """Rows whose value is, or is not, among what groups have, or for which there are such groups. Nulls are on both sides, in conditions that stand by
    themselves: see `in with nulls` in `known`."""
    rng, outer, inner = gen.rng, table(gen), table(gen)
    scope = Scope(outer.atoms, outer.keys)
    kinds = [kind for kind in KINDS if outer.atoms and any(atom.kind == kind for atom in outer.atoms) and any(atom.kind == kind for atom in inner.atoms)]
    conditions = list(where(gen, scope, 0.3))
    for _ in range(rng.randint(1, 2)):
        kind = rng.choice(kinds)
        left = rng.choice([atom for atom in outer.atoms if atom.kind == kind])
        of = rng.choice([atom for atom in inner.atoms if atom.kind == kind])
        equal = pair(gen, outer, inner) if gen.chance(0.5) else None
        if equal is None or gen.chance(0.3):
            found = groups(gen, inner, of) if equal is None else about(gen, inner, kind, equal)
            conditions.append(expr("bool", "(", left, f" {rng.choice(['in', 'not in'])} (", found, "))"))
        else:
            conditions.append(expr("bool", f"({rng.choice(['exists', 'not exists'])} (", about(gen, inner, kind, equal), "))"))
    return selected(gen, [outer.atoms[0], left], outer.node, tuple(conditions))


def groups(gen: Generator, inner: Source, of: Expr) -> Select:
    """What groups have of a column, of no row now and then."""
    rng = gen.rng
    least = expr(of.kind, f"{rng.choice(['min', 'max'])}(", of, ")")
    if of.kind in NUMBERS and gen.chance(0.3):
        least = gen.of_sum(of.kind, "sum(", of, ")")
    key = rng.choice([atom for atom in inner.atoms if atom.kind in FLAT])
    conditions = where(gen, Scope(inner.atoms))
    if gen.chance(0.2):
        return selected(gen, [least], inner.node, conditions)
    more: dict[str, Any] = {"having": (expr("bool", f"(count(*) > {rng.choice([0, 1, 5])})"),)} if gen.chance(0.4) else {}
    return selected(gen, [least], inner.node, conditions, group=(as_it_is(key),), **more)


def inside(gen: Generator) -> Any:
    """Values of queries where they are one of several things that decide: in an aggregate, in `having`, in the condition of a join, in both arms of a
    condition, and in a query that is itself one."""
    rng, outer = gen.rng, table(gen)
    scope = Scope(outer.atoms, outer.keys)
    kind = gen.make.kind(scope, KINDS)
    made = used(gen, scope, kind, value(gen, outer, kind))
    what = rng.randint(0, 4)
    if what == 0:
        inner = gen.rng.choice([expr("int", "count(", made, ")"), one_zero(expr(made.kind, f"{rng.choice(['min', 'max'])}(", made, ")"))])
        key = rng.choice([atom for atom in outer.atoms if atom.kind in ("int", "bool", "text")])
        groups_by: dict[str, Any] = {"group": (key,)} if gen.chance(0.5) else {}
        return selected(gen, [*groups_by.get("group", ()), inner], outer.node, where(gen, scope, 0.3), **groups_by)
    if what == 1:
        key = rng.choice([atom for atom in outer.atoms if atom.kind in ("int", "bool", "text")])
        found = expr("int", "(", alone(gen, table(gen, of_kinds("int")), "int"), ")")
        least = expr("bool", "(count(*) >= ", used(gen, Scope([expr("int", "count(*)")]), "int", found), ")")
        if least.parts[1].kind == "bool":
            least = least.parts[1]
        return selected(gen, [key, expr("int", "count(*)")], outer.node, where(gen, scope, 0.3), group=(key,), having=(least,))
    if what == 2:
        other = table(gen)
        on = expr("bool", "(", outer.atoms[0], " = ", other.atoms[0], ")")
        alone_made = expr("bool", "(", other.atoms[1], f" {rng.choice(['=', '>=', '<'])} (", alone(gen, table(gen, of_kinds("int")), "int"), "))")
        joined = Join(rng.choice(["inner", "left"]), outer.node, other.node, (on, alone_made))
        return selected(gen, [outer.atoms[0], other.atoms[1]], joined, where(gen, scope, 0.3))
    if what == 3:
        sides = [made, used(gen, scope, kind, value(gen, outer, kind))]
        sides = [side if side.kind == "bool" else expr("bool", "(", side, f" is {rng.choice(['', 'not '])}null)") for side in sides]
        both = expr("bool", "(", sides[0], f" {rng.choice(['and', 'or'])} ", sides[1], ")")
        return selected(gen, [outer.atoms[0]], outer.node, (both,) if gen.chance(0.6) else (expr("bool", "(not ", both, ")"),))
    # A query about the row around whose own condition asks another one, about its row.
    middle = table(gen, of_kinds(kind))
    equal = pair(gen, outer, middle)
    if equal is None:
        return selected(gen, [outer.atoms[0], made], outer.node)
    within = used(gen, Scope(middle.atoms, middle.keys), kind, value(gen, middle, kind))
    condition = within if within.kind == "bool" else expr("bool", "(", within, " is not null)")
    found = about(gen, middle, kind, equal)
    found = replace(found, where=(*found.where, condition))
    return selected(gen, [outer.atoms[0], used(gen, scope, kind, expr(kind, "(", found, ")"))], outer.node)
