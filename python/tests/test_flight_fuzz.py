"""Calls of Flight SQL that mean harm, by somebody with a token that is good: none may end the server, hold it up or fill its
memory. ``FOREBAY_TEST_FUZZ_SECS`` makes it go on for longer."""

from __future__ import annotations

import json
import os
import random
import time
from pathlib import Path

import pyarrow
import pytest
from pyarrow import flight
from test_flight_sql import Up

import forebay

SECONDS = float(os.environ.get("FOREBAY_TEST_FUZZ_SECS", "6"))
#: What one call may take, and the process may grow by.
PATIENCE = 10.0
GROWTH_MAX = 1 << 30
SQL = "type.googleapis.com/arrow.flight.protocol.sql."
#: Numbers at their limits.
LIMITS = [0, 1, 127, 128, 0x3FFF, 1 << 20, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, (1 << 63) - 1, (1 << 64) - 1]


def varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def field(number: int, value: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(value)) + value


def command(name: str, *fields: bytes) -> bytes:
    """A message of Flight SQL as it travels: in a `google.protobuf.Any`."""
    return field(1, (SQL + name).encode()) + field(2, b"".join(fields))


def seeds() -> list[bytes]:
    queries = [b"select 1", b"select * from '/lake/sales/' where n = $1", b"explain select 1", b"values (1), (2)"]
    return [
        *(command(f"Command{what}", field(1, query)) for query in queries for what in ("StatementQuery", "StatementUpdate")),
        command("CommandGetCatalogs"),
        command("CommandGetDbSchemas", field(1, b"datafusion"), field(2, b"%")),
        command("CommandGetTables", field(1, b"datafusion"), field(2, b"p%"), field(3, b"%"), field(4, b"BASE TABLE"), varint(40) + b"\1"),
        command("CommandGetTableTypes"),
        command("CommandGetSqlInfo", field(1, varint(0) + varint(500))),
        command("CommandGetXdbcTypeInfo", varint(8) + b"\1"),
        command("CommandGetPrimaryKeys", field(3, b"t")),
        command("CommandGetCrossReference", field(3, b"t"), field(6, b"u")),
        command("CommandPreparedStatementQuery", field(1, b"handle")),
        command("CommandStatementIngest", field(2, b"t")),
        command("TicketStatementQuery", field(1, b"handle")),
        command("ActionCreatePreparedStatementRequest", field(1, queries[1])),
        command("ActionClosePreparedStatementRequest", field(1, b"handle")),
        command("ActionBeginTransactionRequest"),
        b"",
    ]


class Mutator:
    def __init__(self, inputs: list[bytes]) -> None:
        seed = int(os.environ.get("FOREBAY_TEST_FUZZ_SEED", "7"))
        print(f"FOREBAY_TEST_FUZZ_SEED={seed}")
        self.random, self.inputs, self.reached = random.Random(seed), inputs, dict[str, int]()

    def next(self) -> bytes:
        made = bytearray(self.random.choice(self.inputs))
        for _ in range(self.random.randrange(4)):
            at = self.random.randrange(len(made) + 1)
            match self.random.randrange(6):
                case 0:
                    made[at : at + 1] = bytes([self.random.randrange(256)])
                case 1:
                    made[at : at + 1] = varint(self.random.choice(LIMITS))
                case 2:
                    del made[at : at + self.random.randrange(1, 9)]
                case 3:
                    made[at:at] = made[at : at + self.random.randrange(1, 20)]
                case 4:
                    made[at:at] = self.random.randbytes(self.random.randrange(1, 200))
                case _:
                    other = self.random.choice(self.inputs)
                    made[at:] = other[self.random.randrange(len(other) + 1) :]
        return bytes(made)

    def led_to(self, made: bytes, edge: str) -> None:
        self.reached[edge] = self.reached.get(edge, 0) + 1
        if self.reached[edge] == 1 and len(made) < 64 << 10:
            self.inputs.append(made)


def resident_bytes(process: int) -> int:
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * 4096


def write(client: flight.FlightClient, made: bytes, options: flight.FlightCallOptions, batch: pyarrow.RecordBatch) -> None:
    writer, reader = client.do_put(flight.FlightDescriptor.for_command(made), batch.schema, options)
    with writer:
        writer.write_batch(batch)
        writer.done_writing()
        reader.read()


def test_calls_that_mean_harm(tmp_path, sales, lake):
    up = Up(tmp_path)
    try:
        with forebay.connect(up.told["coordinator"]) as fb:
            fb.mounts.add("lake", lake)
        options = flight.FlightCallOptions(timeout=PATIENCE, headers=[(b"authorization", f"Bearer {up.secret}".encode())])
        batch = pyarrow.record_batch({"1": [1, None, 3], "2": ["a", "b", None]})
        mutator, count, slowest = Mutator(seeds()), 0, 0.0
        before, began = resident_bytes(up.process.pid), time.monotonic()
        with flight.connect(f"grpc://{up.told['flight-sql']}") as client:
            actions = ["CreatePreparedStatement", "ClosePreparedStatement", "BeginTransaction", "no such action"]
            calls = {
                "info": lambda made: client.get_flight_info(flight.FlightDescriptor.for_command(made), options),
                "schema": lambda made: client.get_schema(flight.FlightDescriptor.for_command(made), options),
                "path": lambda made: client.get_flight_info(flight.FlightDescriptor.for_path(made.decode("latin-1")), options),
                "get": lambda made: client.do_get(flight.Ticket(made), options).read_chunk(),
                "action": lambda made: list(client.do_action((mutator.random.choice(actions), made), options)),
                "put": lambda made: write(client, made, options, batch),
            }
            while time.monotonic() - began < SECONDS:
                name, made = mutator.random.choice(list(calls)), mutator.next()
                asked = time.monotonic()
                try:
                    calls[name](made)
                    edge = f"{name} answered"
                except StopIteration:
                    edge = f"{name} ended"
                except flight.FlightTimedOutError:
                    pytest.fail(f"no answer to {name} within {PATIENCE} s: {made!r}")
                except (flight.FlightError, pyarrow.ArrowException) as error:
                    words = [word for word in str(error).split() if word.isalpha()]
                    edge = f"{name} {type(error).__name__} {' '.join(words[:6])}"
                slowest = max(slowest, time.monotonic() - asked)
                mutator.led_to(made, edge)
                count += 1
                assert up.process.poll() is None, f"the server ended: {up.log.read_text()[-2000:]}"
                grown = resident_bytes(up.process.pid) - before
                assert grown < GROWTH_MAX, f"{grown} bytes more after {name} {made!r}"
        told = {"seconds": int(SECONDS), "inputs": count, "edges": len(mutator.reached), "crashes": 0, "hangs": 0}
        print(json.dumps({"fuzz": "calls of Flight SQL", **told, "grown_bytes": grown, "slowest_ms": int(slowest * 1000)}))
        assert "panicked" not in up.log.read_text(), up.log.read_text()[-3000:]
        with up.connect() as connection, connection.cursor() as cursor:
            cursor.execute("select count(*) from '/lake/sales/'")
            assert cursor.fetchone() == (3000,)
    finally:
        up.stop()
