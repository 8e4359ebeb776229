"""Asks both engines the same queries, and tells what differs."""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import adbc_driver_manager
import duckdb
import pyarrow as pa

try:
    # Tells whose fault a failure is, where it is installed.
    import datafusion
except ImportError:
    datafusion = None

import compare
import files
import generate
import kinds
import known
from query import DUCKDB, ENGINE, FOREBAY, Select, SetOp, smaller, text
from servers import Servers
from tables import Table, tables

# Queries over one set of tables.
QUERIES_A_WORLD = 125
# How often a query is asked again that a process was killed under, and how long a failure is made smaller.
TRIES, SHRINK_SECS = 6, 60.0


@dataclass
class Failure:
    """A query that the two engines do not answer alike."""

    seed: int
    mode: str
    what: str
    query: Any
    reduced: Any
    expected: str
    actual: str
    engine: str

    def __str__(self) -> str:
        return "\n".join([
            f"seed {self.seed}, mode {self.mode}: {self.what}",
            f"  again: --seed {self.seed} --queries 1 --mode {self.mode}",
            f"query:\n  {text(self.query, FOREBAY)}",
            f"reduced:\n  {text(self.reduced, FOREBAY)}",
            f"reduced, for DuckDB:\n  {text(self.reduced, DUCKDB)}",
            f"DuckDB:\n{self.expected}",
            f"Forebay:\n{self.actual}",
            f"DataFusion alone: {self.engine}",
        ])


@dataclass
class Answer:
    """Rows, or what an engine said instead."""

    rows: list[tuple[Any, ...]] | None = None
    error: str = ""
    ended: bool = False


class World:
    """The tables of a seed, known to both engines."""

    def __init__(self, seed: int, servers: Servers) -> None:
        self.seed, self.servers = seed, servers
        self.tables: list[Table] = tables(seed)
        self.duckdb = duckdb.connect(":memory:", config={"threads": 1})
        self.duckdb.execute("set TimeZone = 'UTC'")
        with servers.connect() as connection, connection.cursor() as cursor:
            for table in self.tables:
                for statement in files.write(table, servers.roots):
                    _patiently(servers, lambda statement=statement: _ask(cursor, statement))
                truth = table.truth()
                self.duckdb.register("truth", truth)
                self.duckdb.execute(f"create table {table.name} as select * from truth")
                self.duckdb.unregister("truth")
            if servers.mode == "hot":
                self.decoded = _heat(cursor, self.tables)

    def engine_alone(self) -> Any:
        config = datafusion.SessionConfig().set("datafusion.execution.time_zone", "UTC")
        context = datafusion.SessionContext(config)
        for table in self.tables:
            pieces = [table.rows[at : at + 100] for at in range(0, len(table.rows), 100)]
            batches = [batch for piece in pieces for batch in table.arrow(piece).to_batches()]
            context.register_record_batches(table.name, [batches or [_no_rows(table)]])
        return context

    def close(self) -> None:
        self.duckdb.close()


def _ask(cursor: Any, sql: str) -> pa.Table:
    cursor.execute(sql)
    return cursor.fetch_arrow_table()


def _no_rows(table: Table) -> pa.RecordBatch:
    schema = table.arrow([]).schema
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


def _patiently(servers: Servers, work: Any) -> Any:
    """Does something again that a killed process broke off."""
    for tries in range(TRIES):
        try:
            return work()
        except adbc_driver_manager.Error:
            if servers.mode != "killed" or tries + 1 == TRIES:
                raise
            time.sleep(0.5)


def _heat(cursor: Any, of: list[Table]) -> int:
    """Reads the tables until no more columns of them become decoded. Answers how many parts are read decoded."""
    best, since, began = 0, time.monotonic(), time.monotonic()
    while time.monotonic() - since < 2.5 and time.monotonic() - began < 30:
        found = 0
        for table in of:
            if table.form.split(".")[0] in ("parquet", "csv", "ndjson"):
                plan = str(_ask(cursor, f"explain analyze select * from {table.extra['from']}").to_pylist())
                found += sum(int(part.split(",")[0].split("]")[0].split(" ")[0]) for name in ("row_groups_decoded=", "chunks_decoded=") for part in plan.split(name)[1:])
        if found > best:
            best, since = found, time.monotonic()
        time.sleep(0.3)
    return best


class Runner:
    """Runs queries of one mode, several at once."""

    def __init__(self, servers: Servers, clients: int, say: Any) -> None:
        self.servers, self.clients, self.say = servers, clients, say
        self.counts: Counter[str] = Counter()
        self.failures: list[Failure] = []
        self.lock = threading.Lock()
        self.local = threading.local()

    def run(self, seed: int, queries: int, most: int = 10) -> None:
        """Queries `seed` to `seed + queries - 1`; ends early after so many failures."""
        end = seed + queries
        with ThreadPoolExecutor(self.clients) as pool:
            while seed < end and len(self.failures) < most:
                world_seed = seed // QUERIES_A_WORLD
                last = min(end, (world_seed + 1) * QUERIES_A_WORLD)
                world = World(world_seed, self.servers)
                if self.servers.mode == "hot":
                    self.counts["parts read decoded"] += world.decoded
                for done in pool.map(lambda at: self.one(world, at), range(seed, last)):
                    if done is not None:
                        self.failures.append(done)
                        self.say(str(done))
                world.close()
                seed = last
                self.say(f"{self.servers.mode}: seed {seed}, {dict(self.counts)}, failures {len(self.failures)}")

    def cursor(self) -> Any:
        if not hasattr(self.local, "cursor"):
            self.local.cursor = self.servers.connect().cursor()
        return self.local.cursor

    def one(self, world: World, seed: int) -> Failure | None:
        """Asks one query; a failure is made smaller."""
        if len(self.failures) >= 20:
            return None
        query = kinds.query(world.tables, seed)
        what, expected, actual = self.differ(world, query, count=True)
        if not what:
            return None
        if what != "rows" and any(failure.what == what for failure in self.failures):
            with self.lock:
                self.counts[f"again {what}"] += 1
            return None
        hangs = any(word in what for word in ("DeadlineExceeded", "TIMEOUT"))
        reduced = query if hangs or what == "crash" else self.reduce(world, query, what)
        if reduced is not query:
            _, expected, actual = self.differ(world, reduced)
        told = [compare.shown(a.rows, b.rows or []) if a.rows is not None else f"  {a.error}" for a, b in ((expected, actual), (actual, expected))]
        return Failure(seed, self.servers.mode, what, query, reduced, *told, self.blame(world, reduced, expected))

    def blame(self, world: World, query: Any, expected: Answer) -> str:
        """What the engine below says without Forebay, of tables in memory."""
        if datafusion is None:
            return "not asked (`pip install datafusion` where this runs)"
        with self.lock:
            context = world.engine_alone()
            try:
                # Its own words for the tables, which are the other engine's too.
                rows = compare.plain(context.sql(text(query, ENGINE)).to_arrow_table())
            except Exception as error:  # noqa: BLE001: it raises plain ones
                return f"refuses: {str(error)[:200]}"
        nearly = self.nearly(query)
        return "as DuckDB" if compare.same(expected.rows or [], rows, bool(query.order), nearly) else "other rows than DuckDB"

    def nearly(self, query: Any) -> list[int]:
        return [at for at, (expr, _) in enumerate(_first(query).items) if expr.kind == generate.NEARLY]

    def differ(self, world: World, query: Select | SetOp, count: bool = False) -> tuple[str, Answer, Answer]:
        """How the two answers differ, if they do: in `rows`, or by an error's first words."""
        expected = self.of_duckdb(world, query)
        if expected.rows is None:
            # The generator's own fault, and nothing to compare with.
            if count:
                with self.lock:
                    self.counts["refused by DuckDB"] += 1
                    self.counts["refused by DuckDB: " + expected.error.splitlines()[0][:90]] += 1
            return "", expected, Answer()
        actual = self.of_forebay(query)
        what = ""
        if actual.rows is None:
            name = known.refused(actual.error)
            what = "" if name else ("crash" if actual.ended else "refused: " + _words(actual.error))
            if count and name:
                with self.lock:
                    self.counts[f"known: {name}"] += 1
        else:
            if not compare.same(expected.rows, actual.rows, bool(query.order), self.nearly(query)):
                what = "rows"
        if count:
            with self.lock:
                self.counts["asked"] += 1
                self.counts["with rows"] += bool(expected.rows)
        return what, expected, actual

    def of_duckdb(self, world: World, query: Select | SetOp) -> Answer:
        try:
            with world.duckdb.cursor() as cursor:
                cursor.execute("set TimeZone = 'UTC'")
                return Answer(compare.plain(cursor.sql(text(query, DUCKDB)).to_arrow_table()))
        except duckdb.Error as error:
            return Answer(error=str(error))

    def of_forebay(self, query: Select | SetOp) -> Answer:
        sql = text(query, FOREBAY)
        for tries in range(TRIES):
            try:
                return Answer(compare.plain(self.ask(sql)))
            except (adbc_driver_manager.Error, pa.ArrowException) as error:
                again = self.servers.mode == "killed" and _passes(error)
                if not again or tries + 1 == TRIES:
                    del self.local.cursor
                    time.sleep(0.2)
                    return Answer(error=str(error), ended=not self.servers.is_up())
                with self.lock:
                    self.counts["asked again"] += 1
                time.sleep(0.5)
        raise AssertionError("unreachable")

    def ask(self, sql: str) -> pa.Table:
        cursor = self.cursor()
        with self.lock:
            self.servers.asking += 1
        try:
            return _ask(cursor, sql)
        finally:
            with self.lock:
                self.servers.asking -= 1

    def reduce(self, world: World, query: Any, what: str) -> Any:
        """A query as small as can be found in a while that fails in the same way."""
        began, best = time.monotonic(), query
        while time.monotonic() - began < SHRINK_SECS:
            size = len(text(best, FOREBAY))
            for less in smaller(best):
                if time.monotonic() - began > SHRINK_SECS:
                    break
                if not isinstance(less, (Select, SetOp)) or len(text(less, FOREBAY)) >= size:
                    continue
                if self.differ(world, less)[0] == what:
                    best = less
                    break
            else:
                break
        return best


def _first(query: Any) -> Select:
    return query if isinstance(query, Select) else _first(query.left)


def _passes(error: Exception) -> bool:
    """Whether a failure is one of those that pass: a process that is gone, or data that has to be asked for again."""
    code = getattr(error, "status_code", None)
    codes = adbc_driver_manager.AdbcStatusCode
    return code in (codes.IO, codes.CANCELLED, codes.TIMEOUT)


def _words(error: str) -> str:
    """An error without what changes from query to query."""
    first = re.sub(r"Job \w+ failed: (Job failed due to stage \d+ failed: )?", "", error.splitlines()[0])
    return re.sub(r"\d", " ", first)[:60]
