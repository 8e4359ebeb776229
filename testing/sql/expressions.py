"""Random expressions over what is in scope, of types and functions that both engines mean the same by."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from query import Either, Expr

# A column, a key of a group or an aggregate: what expressions are built of.
Atom = Expr


@dataclass
class Scope:
    """What an expression may use. `outer` are columns of the queries around, for correlation; `subquery` makes a subquery as an
    expression of a type, or none."""

    atoms: list[Atom]
    keys: list[Atom] | None = None
    outer: list[Atom] = field(default_factory=list)
    subquery: Callable[[str, "Scope"], Expr | None] | None = None

    def of(self, kind: str) -> list[Atom]:
        return [atom for atom in self.atoms if atom.kind == kind]


FLAT = ["int", "dec", "float", "wild", "odd", "text", "bool", "date", "ts", "tz"]
NUMBERS = ["int", "dec", "float"]
SQL_TYPE = {
    "int": "bigint",
    "dec": "decimal(18, 4)",
    "float": "double",
    "wild": "double",
    "odd": "double",
    "text": "varchar",
    "bool": "boolean",
    "date": "date",
    "ts": "timestamp",
    "tz": "timestamp with time zone",
}


def expr(kind: str, *parts: Any) -> Expr:
    return Expr(kind, parts)


def one_zero(of: Expr) -> Expr:
    """A value that may be -0.0 as 0.0, where the two engines see these differently: see `-0.0` in `known`."""
    return expr("odd", "(", of, " + 0.0)") if of.kind == "odd" and of == as_it_is(of) else of


def as_it_is(of: Expr) -> Expr:
    """The same with its own zero, for comparisons, groups, joins and aggregates."""
    return of.parts[1] if of.kind == "odd" and of.parts[-1] == " + 0.0)" else of


class Expressions:
    """Makes expressions by a source of randomness."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def literal(self, kind: str) -> Expr:
        rng = self.rng
        if kind in SQL_TYPE and rng.random() < 0.04:
            return expr(kind, f"cast(null as {SQL_TYPE[kind]})")
        if kind == "int":
            return expr(kind, str(rng.choice([0, 1, 2, 3, 5, 10, 24, 100, 301])) if rng.random() < 0.9 else "(-3)")
        if kind == "dec":
            return expr(kind, f"cast({rng.choice(['0', '1.25', '-2.5', '10', '77.77'])} as decimal(18, 4))")
        if kind in ("float", "wild"):
            return expr(kind, f"cast({rng.choice(['0', '1.25', '-2.5', '10.0', '20'])} as double)")
        if kind == "odd":
            return expr(kind, f"cast('{rng.choice(['0', '-0.0', '1.25', '5', 'NaN'])}' as double)")
        if kind == "text":
            return expr(kind, "'" + rng.choice(["", "a", "ab", "b", "é", "Ærø", "日本", "a rather long string", "zzz", "%"]) + "'")
        if kind == "bool":
            return expr(kind, rng.choice(["true", "false"]))
        if kind == "date":
            return expr(kind, f"date '{rng.choice(['2024-01-01', '2024-02-29', '1969-12-31', '1990-07-14'])}'")
        if kind == "ts":
            return expr(kind, f"timestamp '{rng.choice(['2024-01-10 12:00:00', '1970-01-01 00:00:00', '2001-02-03 04:05:06.789'])}'")
        assert kind == "tz", kind
        return expr(kind, f"cast('{rng.choice(['2024-01-10 12:00:00', '1970-01-01 00:00:00'])}+00:00' as timestamp with time zone)")

    def of(self, kind: str, scope: Scope, depth: int = 2) -> Expr:
        """An expression of a type."""
        rng, atoms = self.rng, scope.of(kind)
        if depth <= 0 or rng.random() < 0.35:
            if atoms and rng.random() < 0.85:
                return rng.choice(atoms)
            if kind in SQL_TYPE and (depth <= 0 or rng.random() < 0.5):
                return self.literal(kind)
            if atoms:
                return rng.choice(atoms)
        if scope.subquery and rng.random() < 0.03:
            found = scope.subquery(kind, scope)
            if found is not None:
                return found
        make = getattr(self, f"_{kind}", None)
        if make is None:
            return rng.choice(atoms)
        if rng.random() < 0.2:
            return self._any(kind, scope, depth)
        return make(scope, depth)

    def atom(self, scope: Scope, kinds: list[str] | None = None) -> Expr | None:
        """Something of the scope as it is."""
        atoms = [atom for atom in scope.atoms if kinds is None or atom.kind in kinds]
        return self.rng.choice(atoms) if atoms else None

    def _any(self, kind: str, scope: Scope, depth: int) -> Expr:
        """What is there for every type."""
        a, b = one_zero(self.of(kind, scope, depth - 1)), one_zero(self.of(kind, scope, depth - 1))
        what = self.rng.randint(0, 4)
        if what == 0:
            return expr(kind, "case when ", self.of("bool", scope, depth - 1), " then ", a, " else ", b, " end")
        if what == 1:
            return expr(kind, "coalesce(", a, ", ", b, ")")
        if what == 2:
            return expr(kind, "nullif(", a, ", ", b, ")")
        if what == 3 and kind != "bool":
            return expr(kind, f"{self.rng.choice(['greatest', 'least'])}(", a, ", ", b, ")")
        return expr(kind, "case when ", self.of("bool", scope, depth - 1), " then ", a, " end")

    def _wide(self, scope: Scope, depth: int) -> Expr:
        """A whole number for arithmetic: in the engine narrow types stay narrow and run over."""
        return expr("int", "cast(", self.of("int", scope, depth - 1), " as bigint)")

    def _int(self, scope: Scope, depth: int) -> Expr:
        rng = self.rng
        what = rng.randint(0, 10)
        if what <= 3:
            return expr("int", "(", self._wide(scope, depth), f" {rng.choice('+-')} ", self._wide(scope, depth), ")")
        if what == 4:
            return expr("int", "(", self._wide(scope, depth), " % 7 * ", str(rng.randint(1, 5)), ")")
        if what == 5:
            return expr("int", "(", self._wide(scope, depth), Either(" / ", " // "), f"{rng.choice([2, 3, 7])})")
        if what == 6:
            return expr("int", "abs(", self._wide(scope, depth), ")")
        if what == 7:
            name = rng.choice(["character_length", "octet_length"])
            of = self.of("text", scope, depth - 1)
            return expr("int", Either(name, "length" if name == "character_length" else "strlen"), "(", of, ")")
        if what == 8:
            part = rng.choice(["year", "month", "day", "quarter", "week", "dow", "doy"])
            kind = rng.choice(["date", "ts"])
            return expr("int", f"cast(extract({part} from ", self.of(kind, scope, depth - 1), ") as bigint)")
        if what == 9:
            found = self._of_nested("int", scope)
            if found is not None:
                return found
        if what == 10:
            return expr("int", "strpos(", self.of("text", scope, depth - 1), ", ", self.of("text", scope, 0), ")")
        return expr("int", "(case when ", self.of("bool", scope, depth - 1), " then 1 else 0 end)")

    def _of_nested(self, kind: str, scope: Scope) -> Expr | None:
        lists, structs = scope.of("list"), self._structs(scope)
        if kind == "int" and lists and self.rng.random() < 0.6:
            of = self.rng.choice(lists)
            if self.rng.random() < 0.5:
                return expr("int", of, f"[{self.rng.randint(1, 4)}]")
            # What the length of no elements is, the two see differently.
            return expr("int", "coalesce(", Either("array_length(", "len("), of, "), 0)")
        if structs:
            name = {"int": "a", "text": "b"}[kind]
            return expr(kind, self.rng.choice(structs), f"['{name}']")
        return None

    def _structs(self, scope: Scope) -> list[Expr]:
        """What is a struct, and may be null: in a column, in a struct, in a list."""
        within = [expr("struct", of, "['s']") for of in scope.of("deep")]
        among = [expr("struct", of, f"[{self.rng.randint(1, 3)}]") for of in scope.of("structs")]
        return scope.of("struct") + scope.of("firm") + within + among

    def _dec(self, scope: Scope, depth: int) -> Expr:
        rng = self.rng
        a = self.of("dec", scope, depth - 1)
        what = rng.randint(0, 4)
        if what <= 1:
            return expr("dec", "cast(", a, f" {rng.choice('+-')} ", self.of("dec", scope, depth - 1), " as decimal(18, 4))")
        if what == 2:
            return expr("dec", "cast(cast(", a, f" as decimal(12, 4)) * {rng.choice([2, 3, 10])} as decimal(18, 4))")
        if what == 3:
            return expr("dec", "cast(", self.of("int", scope, depth - 1), " as decimal(18, 4))")
        return expr("dec", "abs(", a, ")")

    def _float(self, scope: Scope, depth: int) -> Expr:
        # Sums of quarters are exact in any order.
        what = self.rng.randint(0, 3)
        a = self.of("float", scope, depth - 1)
        if what <= 1:
            return expr("float", "(", a, f" {self.rng.choice('+-')} ", self.of("float", scope, depth - 1), ")")
        if what == 2:
            return expr("float", "cast(", self.of("int", scope, depth - 1), " as double)")
        return expr("float", "abs(", a, ")")

    def _wild(self, scope: Scope, depth: int) -> Expr:
        what = self.rng.randint(0, 2)
        if what == 0:
            sides = [expr("float", "cast(", self.of("float", scope, depth - 1), " as double)") for _ in range(2)]
            return expr("wild", "(", sides[0], " / nullif(abs(", sides[1], "), 0) + 0)")
        return self._any("wild", scope, depth)

    def _odd(self, scope: Scope, depth: int) -> Expr:
        return self._any("odd", scope, depth)

    def _text(self, scope: Scope, depth: int) -> Expr:
        rng = self.rng
        a = self.of("text", scope, depth - 1)
        what = rng.randint(0, 9)
        if what == 0:
            return expr("text", "(", a, " || ", self.of("text", scope, depth - 1), ")")
        if what == 1:
            return expr("text", "concat(", a, ", '-', ", self.of("text", scope, depth - 1), ")")
        if what == 2:
            return expr("text", f"{rng.choice(['upper', 'lower', 'trim', 'ltrim', 'rtrim'])}(", a, ")")
        if what == 3:
            return expr("text", "substr(", a, f", {rng.randint(1, 4)}, {rng.randint(0, 5)})")
        if what == 4:
            return expr("text", f"{rng.choice(['left', 'right'])}(", a, f", {rng.randint(0, 4)})")
        if what == 5:
            return expr("text", "replace(", a, f", '{rng.choice(['a', 'b', 'long', '本'])}', '{rng.choice(['', 'xx', 'é'])}')")
        if what == 6:
            kind = rng.choice(["int", "bool", "date"])
            return expr("text", "cast(", self.of(kind, scope, depth - 1), " as varchar)")
        if what == 7:
            return expr("text", "split_part(", a, f", '{rng.choice(['a', ' ', ','])}', {rng.randint(1, 3)})")
        if what == 8:
            found = self._of_nested("text", scope)
            if found is not None:
                return found
        return expr("text", "md5(", a, ")")

    def _date(self, scope: Scope, depth: int) -> Expr:
        what = self.rng.randint(0, 2)
        if what == 0:
            unit = self.rng.choice(["day", "month", "week"])
            sign = self.rng.choice("+-")
            return expr("date", "cast(", self.of("date", scope, depth - 1), f" {sign} interval '{self.rng.randint(0, 40)} {unit}' as date)")
        if what == 1:
            unit = self.rng.choice(["month", "year", "week", "quarter"])
            return expr("date", f"cast(date_trunc('{unit}', ", self.of("date", scope, depth - 1), ") as date)")
        return expr("date", "cast(", self.of("ts", scope, depth - 1), " as date)")

    def _ts(self, scope: Scope, depth: int) -> Expr:
        what = self.rng.randint(0, 2)
        if what == 0:
            unit = self.rng.choice(["hour", "day", "month", "second"])
            return expr("ts", "(", self.of("ts", scope, depth - 1), f" + interval '{self.rng.randint(0, 40)} {unit}')")
        if what == 1:
            unit = self.rng.choice(["month", "year", "day", "hour", "minute", "second"])
            return expr("ts", f"date_trunc('{unit}', ", self.of("ts", scope, depth - 1), ")")
        return expr("ts", "cast(", self.of("date", scope, depth - 1), " as timestamp)")

    def _tz(self, scope: Scope, depth: int) -> Expr:
        return self._any("tz", scope, depth)

    def _bool(self, scope: Scope, depth: int) -> Expr:
        return self.predicate(scope, depth)

    def predicate(self, scope: Scope, depth: int = 2) -> Expr:
        """A condition."""
        rng = self.rng
        what = rng.randint(0, 15)
        if what <= 4 or depth <= 0:
            return self.comparison(scope, depth)
        if what == 5:
            return expr("bool", "(", self.predicate(scope, depth - 1), f" {rng.choice(['and', 'or'])} ", self.predicate(scope, depth - 1), ")")
        if what == 6:
            return expr("bool", "(not ", self.predicate(scope, depth - 1), ")")
        if what == 7:
            atom = self.atom(scope)
            if (structs := self._structs(scope)) and rng.random() < 0.4:
                atom = rng.choice(structs)
            if atom is not None:
                return expr("bool", "(", atom, f" is {rng.choice(['', 'not '])}null)")
        if what == 8:
            kind = self.kind(scope, ["int", "text", "date", "dec"])
            word = rng.choice(["in", "not in"])
            some = [part for _ in range(rng.randint(1, 4)) for part in (", ", self.literal(kind))][1:]
            return expr("bool", "(", self.of(kind, scope, depth - 1), f" {word} (", *some, "))")
        if what == 9:
            kind = self.kind(scope, ["int", "text", "date", "dec", "float", "odd", "ts"])
            sides = [as_it_is(self.of(kind, scope, 0)) for _ in range(2)]
            return expr("bool", "(", as_it_is(self.of(kind, scope, depth - 1)), f" {rng.choice(['', 'not '])}between ", sides[0], " and ", sides[1], ")")
        if what == 10:
            word = rng.choice(["like", "not like", "ilike"])
            pattern = rng.choice(["a%", "%a%", "%e", "_b%", "a_c", "%long%", "%é%", "日%", "%", "", "%rather%7"])
            return expr("bool", "(", self.of("text", scope, depth - 1), f" {word} '{pattern}')")
        if what == 11:
            kind = self.kind(scope, FLAT)
            word = rng.choice(["is distinct from", "is not distinct from"])
            sides = (self.of(kind, scope, depth - 1), f" {word} ", self.of(kind, scope, depth - 1))
            # Beside others without parentheses: it binds tighter than these.
            before = (rng.choice(["not ", ""]), self.predicate(scope, 0), f" {rng.choice(['and', 'or'])} ") if rng.random() < 0.3 else ()
            behind = (f" {rng.choice(['and', 'or'])} ", self.predicate(scope, 0)) if rng.random() < 0.4 else ()
            return expr("bool", "(", *before, rng.choice(["not ", "", ""]), *sides, *behind, ")")
        if what == 12:
            return expr("bool", "(", self.predicate(scope, depth - 1), f" is {rng.choice(['true', 'not true', 'false', 'not false'])})")
        if what == 13 and scope.subquery is not None:
            found = scope.subquery("bool", scope)
            if found is not None:
                return found
        if what == 14 and scope.of("list"):
            of = rng.choice(scope.of("list"))
            return expr("bool", "array_has(", of, f", {rng.randint(-1, 8)})")
        if what == 15:
            # To DuckDB what starts with nothing is all that is made of something.
            return expr("bool", "starts_with(", self.of("text", scope, depth - 1), f", '{rng.choice(['a', 'ab', 'é', '日本', 'zzz'])}')")
        atoms = scope.of("bool")
        return rng.choice(atoms) if atoms else self.comparison(scope, depth)

    def comparison(self, scope: Scope, depth: int) -> Expr:
        kind = self.kind(scope, FLAT)
        word = self.rng.choice(["=", "=", "<>", "<", "<=", ">", ">="])
        left = self.atom(scope, [kind]) if self.rng.random() < 0.6 else None
        right = self.literal(kind) if self.rng.random() < 0.5 else self.of(kind, scope, depth - 1)
        return expr("bool", "(", as_it_is(left or self.of(kind, scope, depth - 1)), f" {word} ", as_it_is(right), ")")

    def kind(self, scope: Scope, among: list[str]) -> str:
        """A type, sooner one that is in scope."""
        there = [atom.kind for atom in scope.atoms if atom.kind in among]
        return self.rng.choice(there) if there and self.rng.random() < 0.85 else self.rng.choice(among)
