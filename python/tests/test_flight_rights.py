"""The table of rights at the port of Flight SQL: every credential at every call and at what SQL reaches."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow
import pyarrow.parquet
import pytest
from pyarrow import flight
from test_flight_fuzz import command, field, write
from test_flight_sql import BINARY, TOKEN, Up

import forebay

CLUSTER_SECRET = "what processes of the cluster show each other"
#: Who is let in, and what each may besides: read and write these mounts, temporary data (`tmp`), `all` of it with the cluster's tables.
MAY: dict[str, tuple[set[str], set[str]]] = {
    "owner": ({"all"}, {"all"}),
    "administrator": ({"all"}, {"all"}),
    "admin": ({"all"}, {"all"}),
    "write": ({"all"}, {"all"}),
    "read": ({"all"}, set()),
    "admin lake": ({"lake"}, {"lake"}),
    "write lake": ({"lake"}, {"lake"}),
    "read lake": ({"lake"}, set()),
    "write other": ({"other"}, {"other"}),
    "write tmp": ({"tmp"}, {"tmp"}),
    "read tmp": ({"tmp"}, set()),
}
#: Who is not let in, whatever it asks.
NOBODY = ["none", "guess", "member", "removed", "expired"]


@dataclass
class Row:
    """A call: what it needs of whom, and what it comes to for who may. ``{n}`` is another number for each credential."""

    what: str
    ask: Callable[[flight.FlightClient, flight.FlightCallOptions, int], object]
    reads: str | None = None
    writes: str | None = None
    #: Words of the error for everybody that is let in.
    never: str | None = None


def query(sql: str) -> Callable[[flight.FlightClient, flight.FlightCallOptions, int], object]:
    def ask(client: flight.FlightClient, options: flight.FlightCallOptions, n: int) -> object:
        descriptor = flight.FlightDescriptor.for_command(command("CommandStatementQuery", field(1, sql.format(n=n).encode())))
        info = client.get_flight_info(descriptor, options)
        return client.do_get(info.endpoints[0].ticket, options).read_all()

    return ask


def update(sql: str) -> Callable[[flight.FlightClient, flight.FlightCallOptions, int], object]:
    def ask(client: flight.FlightClient, options: flight.FlightCallOptions, n: int) -> object:
        write(client, command("CommandStatementUpdate", field(1, sql.format(n=n).encode())), options, pyarrow.record_batch({}))
        return None

    return ask


def prepared(sql: str) -> Callable[[flight.FlightClient, flight.FlightCallOptions, int], object]:
    """Makes, runs and closes a prepared statement; one that can't be made is not run."""

    def ask(client: flight.FlightClient, options: flight.FlightCallOptions, n: int) -> object:
        made = command("ActionCreatePreparedStatementRequest", field(1, sql.encode()))
        [answer] = client.do_action(("CreatePreparedStatement", made), options)
        # Any { type_url, value }, and of the value the handle, which is its first field.
        body = answer.body.to_pybytes()
        handle = body[body.index(b"\x0a\x10") + 2 :][:16]
        descriptor = flight.FlightDescriptor.for_command(command("CommandPreparedStatementQuery", field(1, handle)))
        info = client.get_flight_info(descriptor, options)
        rows = client.do_get(info.endpoints[0].ticket, options).read_all()
        list(client.do_action(("ClosePreparedStatement", command("ActionClosePreparedStatementRequest", field(1, handle))), options))
        return rows

    return ask


def told(name: str, *fields: bytes) -> Callable[[flight.FlightClient, flight.FlightCallOptions, int], object]:
    def ask(client: flight.FlightClient, options: flight.FlightCallOptions, n: int) -> object:
        info = client.get_flight_info(flight.FlightDescriptor.for_command(command(name, *fields)), options)
        return client.do_get(info.endpoints[0].ticket, options).read_all()

    return ask


def exchange(client: flight.FlightClient, options: flight.FlightCallOptions, n: int) -> object:
    writer, reader = client.do_exchange(flight.FlightDescriptor.for_command(b"x"), options)
    with writer:
        writer.done_writing()
        return reader.read_all()


ROWS = [
    Row("list of actions", lambda client, options, n: client.list_actions(options)),
    Row("an action that is none", lambda client, options, n: list(client.do_action(("none", b""), options)), never="none"),
    Row("list of flights", lambda client, options, n: list(client.list_flights(b"", options)), never="implemented"),
    Row("schema", lambda client, options, n: client.get_schema(flight.FlightDescriptor.for_path("x"), options), never="implemented"),
    Row("exchange", exchange, never="implemented"),
    Row("rows of nobody", lambda client, options, n: client.do_get(flight.Ticket(command("TicketStatementQuery", field(1, b"h" * 16))), options), never="no such rows"),
    Row("catalogs", told("CommandGetCatalogs")),
    Row("schemas", told("CommandGetDbSchemas")),
    Row("tables", told("CommandGetTables")),
    Row("types of tables", told("CommandGetTableTypes")),
    Row("about the server", told("CommandGetSqlInfo")),
    Row("values", query("select 1")),
    Row("a setting of the session", update("set datafusion.execution.batch_size = 4096")),
    Row("a view of the session", update("create or replace view mine as select 1 as one")),
    Row("a mount", query("select count(*) from '/lake/sales/'"), reads="lake"),
    Row("a mount's columns", query("describe '/lake/sales/'"), reads="lake"),
    Row("a mount's plan", query("explain select * from '/lake/sales/'"), reads="lake"),
    Row("a mount, prepared", prepared("select count(*) from '/lake/sales/'"), reads="lake"),
    Row("a mount in a subquery", query("select 1 where exists (select 1 from '/lake/sales/')"), reads="lake"),
    Row("another mount", query("select count(*) from '/other/one.csv'"), reads="other"),
    Row("two mounts", query("select count(*) from '/other/one.csv', '/lake/sales/'"), reads="all"),
    Row("temporary data", query("select n from '/tmp/rights/one.csv'"), reads="tmp"),
    Row("temporary data by a pattern", query("select n from '/tmp/rights/*.csv'"), reads="tmp"),
    Row("write into temporary data", update("copy (select 1 as one) to '/tmp/rights/made/{n}.parquet'"), writes="tmp"),
    Row("a table of the cluster", query("select count(*) from listed"), reads="all"),
    Row("write into a mount", update("copy (select 1 as one) to '/lake/rights/{n}.parquet'"), writes="lake"),
    Row("write into another mount", update("copy (select 1 as one) to '/other/rights/{n}.parquet'"), writes="other"),
    Row("insert into a table of the cluster", update("insert into grown values ({n})"), writes="all"),
    Row("define a table of the cluster", update("create external table t{n} stored as parquet location '/lake/sales/'"), writes="all"),
    Row("drop a table of the cluster", update("drop table dropped{n}"), writes="all"),
    Row("a file of the machine", query("select * from 'file:///etc/passwd'"), never="file-roots"),
    Row("a table over a file of the machine", update("create external table f{n} stored as csv location 'file:///etc/passwd'"), never="file-roots"),
    Row("storage past the mounts", query("select * from 's3://bucket/x.parquet'"), never="direct-stores"),
    Row("the machine's own metadata", query("select * from 'http://169.254.169.254/x.csv'"), never="169.254|http"),
]


def is_within(what: str, may: set[str]) -> bool:
    return "all" in may or what in may


def verdict(ask: Callable[[], object]) -> str:
    """What came of a call: `done`, `nobody`, or the words of the error."""
    try:
        ask()
    except (flight.FlightError, pyarrow.ArrowException, OSError) as error:
        nobody = isinstance(error, flight.FlightUnauthenticatedError) or "Flight returned unauthenticated" in str(error)
        return "nobody" if nobody else f"refused: {error}"
    return "done"


@pytest.fixture(scope="module")
def up(tmp_path_factory, sales):
    folder = tmp_path_factory.mktemp("rights")
    lake, other = folder / "lake", folder / "other"
    (lake / "sales").mkdir(parents=True)
    pyarrow.parquet.write_table(sales, lake / "sales" / "part.parquet")
    other.mkdir()
    (other / "one.csv").write_text("a,b\n1,2\n")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("FOREBAY_CLUSTER_SECRET", CLUSTER_SECRET)
        environment.setenv("FOREBAY_AUDIT_LOG", str(folder / "audit.jsonl"))
        up = Up(folder, token=TOKEN)
    try:
        with forebay.connect(up.told["coordinator"], token=TOKEN) as fb:
            fb.mounts.add("lake", lake)
            fb.mounts.add("other", other)
            fb.sql("create external table listed stored as parquet location '/lake/sales/'")
            fb.sql("copy (select 0::bigint as n) to '/lake/grown/first.parquet'").to_arrow()
            fb.sql("create external table grown (n bigint) stored as parquet location '/lake/grown/'")
            fb.nodes.mkdir("/tmp/rights/made", parents=True)
            fb.nodes.put("/tmp/rights/one.csv", b"n\n1\n")
            for n in range(len(MAY)):
                fb.sql(f"create external table dropped{n} stored as parquet location '/lake/sales/'")
        yield up
    finally:
        up.stop()


def tokens(up: Up) -> dict[str, str]:
    def command_of(*arguments: str) -> str:
        words = [str(BINARY), "token", *arguments, "--coordinator", up.told["coordinator"]]
        environment = dict(os.environ, FOREBAY_TOKEN=TOKEN, HOME=str(up.folder))
        return subprocess.run(words, check=True, capture_output=True, text=True, env=environment).stdout.strip()

    made = {"owner": up.secret, "administrator": TOKEN, "member": CLUSTER_SECRET, "guess": "a guess of somebody"}
    kinds = {name: name for name in MAY if name not in made} | {"removed": "admin", "expired": "admin"}
    for name, kind in kinds.items():
        role, *mount = kind.split()
        mounts = ["--mount", *mount] if mount else []
        expires = ["--expires", "1s"] if name == "expired" else []
        made[name] = command_of("add", name.replace(" ", "-"), f"--{role}", *mounts, *expires)
    command_of("rm", "removed")
    time.sleep(2)
    return made


def test_every_credential_at_every_call(up):
    shown = tokens(up)
    wrong, calls = [], 0
    for n, name in enumerate([*MAY, *NOBODY]):
        headers = [(b"authorization", f"Bearer {shown[name]}".encode())] if name != "none" else []
        options = flight.FlightCallOptions(timeout=30, headers=headers)
        with flight.connect(f"grpc://{up.told['flight-sql']}") as client:
            for row in ROWS:
                got = verdict(lambda row=row: row.ask(client, options, n))
                calls += 1
                if name in NOBODY:
                    right = got == "nobody"
                elif row.never is not None:
                    right = got.startswith("refused") and any(word in got for word in row.never.split("|"))
                else:
                    may_read, may_write = MAY[name]
                    may = (row.reads is None or is_within(row.reads, may_read)) and (row.writes is None or is_within(row.writes, may_write))
                    right = got == "done" if may else got.startswith("refused")
                if not right:
                    wrong.append(f"{name}: {row.what}: {got[:300]}")
    assert not wrong, f"{len(wrong)} of {calls}:\n" + "\n".join(wrong)
    # What was refused to be written is not there.
    with forebay.connect(up.told["coordinator"], token=TOKEN) as fb:
        written = {row["n"] for row in fb.sql("select n from '/lake/grown/'").to_arrow().to_pylist()}
        assert written == {0} | {n for n, name in enumerate(MAY) if "all" in MAY[name][1]}
        for mount in ("lake", "other"):
            files = {file.path.rsplit("/", 1)[1] for file in fb.ls(f"/{mount}/rights/")}
            assert files == {f"{n}.parquet" for n, name in enumerate(MAY) if is_within(mount, MAY[name][1])}, mount
        made = {node.path.rsplit("/", 1)[1] for node in fb.nodes.ls("/tmp/rights/made")}
        assert made == {f"{n}.parquet" for n, name in enumerate(MAY) if is_within("tmp", MAY[name][1])}
    # Who was nobody stands in the audit log, and who wanted to write what is not his.
    lines = [json.loads(line) for line in (up.folder / "audit.jsonl").read_text().splitlines()]
    of_sql = [line for line in lines if line["port"] == "sql"]
    assert sum(line["who"] == "unknown" and line["verdict"] == "refused" for line in of_sql) >= len(ROWS)


def test_rows_and_statements_are_those_of_who_asked(up):
    """A handle is of use to who has it from the server, and with the same credential only."""
    mine, other = (
        flight.FlightCallOptions(timeout=30, headers=[(b"authorization", f"Bearer {text}".encode())]) for text in (TOKEN, up.secret)
    )
    with flight.connect(f"grpc://{up.told['flight-sql']}") as client:
        descriptor = flight.FlightDescriptor.for_command(command("CommandStatementQuery", field(1, b"select 41 + 1 as n")))
        ticket = client.get_flight_info(descriptor, mine).endpoints[0].ticket
        with pytest.raises((flight.FlightError, pyarrow.ArrowException), match="no such rows"):
            client.do_get(ticket, other).read_all()
        assert client.do_get(ticket, mine).read_all().to_pylist() == [{"n": 42}]


def test_who_may_only_read_temporary_data_is_denied_the_rest(up):
    words = [str(BINARY), "token", "add", "tmp-reader", "--read", "--mount", "tmp", "--coordinator", up.told["coordinator"]]
    environment = dict(os.environ, FOREBAY_TOKEN=TOKEN, HOME=str(up.folder))
    token = subprocess.run(words, check=True, capture_output=True, text=True, env=environment).stdout.strip()
    with forebay.connect(up.told["coordinator"], token=token) as fb:
        with pytest.raises(forebay.Denied, match="may not write temporary data") as caught:
            fb.nodes.put("/tmp/denied", b"")
        assert isinstance(caught.value, PermissionError) and caught.value.errno == errno.EACCES
