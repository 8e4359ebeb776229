"""Rows in every form."""

from __future__ import annotations

import datetime
import decimal
import os
import signal
import subprocess
import sys
import threading
import time

import numpy
import pandas
import polars
import pyarrow
import pytest

import forebay

QUERY = "select n, square, word from '/lake/sales/' where n % 2 = 0 order by n"


def test_every_form_has_the_same_rows(fb, sales):
    expected = sales.filter(pyarrow.compute.equal(pyarrow.compute.bit_wise_and(sales["n"], 1), 0)).to_pylist()
    result = fb.sql(QUERY)
    assert result.columns == ["n", "square", "word"]
    assert result.to_arrow().to_pylist() == expected
    # Rows that were kept can be had in other forms too.
    pandas.testing.assert_frame_equal(result.to_pandas(), pandas.DataFrame(expected), check_dtype=False)
    assert result.to_polars().to_dicts() == expected
    assert [row for batch in result for row in batch.to_pylist()] == expected
    assert result.schema.names == ["n", "square", "word"]


def test_rows_stream_once(fb, sales):
    result = fb.sql("select n from '/lake/sales/'")
    assert result.plan
    reader = result.reader()
    assert isinstance(reader, pyarrow.RecordBatchReader)
    assert sum(batch.num_rows for batch in reader) == 3000
    with pytest.raises(forebay.Closed, match="ask again"):
        result.to_arrow()
    assert pyarrow.table(fb.sql("select count(*) as c from '/lake/sales/'")).to_pylist() == [{"c": 3000}]
    assert polars.DataFrame(fb.sql("select max(n) as m from '/lake/sales/'"))["m"].to_list() == [2999]
    assert sum(len(batch) for batch in fb.sql("select n from '/lake/sales/'")) == 3000


def test_text_is_what_pyarrow_computes_with(fb, sales):
    result = fb.sql("select n, word from '/lake/sales/' order by n")
    columns = pyarrow.schema({"n": pyarrow.int64(), "word": pyarrow.string()})
    rows = result.to_arrow()
    assert rows.schema == result.schema == columns and [batch.schema for batch in result] == [columns] * rows["n"].num_chunks
    assert fb.sql("select n, word from '/lake/sales/'").reader().read_all().schema == columns
    few = rows.filter(pyarrow.compute.field("word") == "word-3").sort_by([("word", "ascending"), ("n", "descending")])
    assert few.num_rows == few.join(rows, "word", right_suffix=" too").num_rows // 429 == 429
    within = "select array_agg(word) as words, named_struct('first', min(word)) as named from '/lake/sales/'"
    words, named = fb.sql(within).to_arrow().schema.types
    assert (words.value_type, named.field("first").type) == (pyarrow.string(), pyarrow.string())
    # Who takes what Arrow libraries hand each other has it as the engine does.
    assert pyarrow.table(fb.sql("select word from '/lake/sales/'")).schema.types == [pyarrow.string_view()]


def test_show(fb, sales, capsys):
    fb.sql("select n, word from '/lake/sales/' order by n").show(2)
    printed = capsys.readouterr().out
    assert "| 1 | word-1 |" in printed and "word-2" not in printed and "(2 of 3,000 rows)" in printed


def test_parameters(fb, sales):
    count = "select count(*) as c from '/lake/sales/' where n < $1 and word = $2"
    assert fb.sql(count, [70, "word-3"]).to_arrow().to_pylist() == [{"c": 10}]
    named = "select $a as a, $b as b, $c as c, $d as d"
    when = datetime.datetime(2024, 2, 29, 12, 30, 1, 5, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))
    row = fb.sql(named, {"a": True, "b": 1.5, "c": datetime.date(1969, 12, 31), "d": when}).to_arrow().to_pylist()[0]
    assert (row["a"], row["b"], row["c"]) == (True, 1.5, datetime.date(1969, 12, 31))
    assert row["d"] == when
    with pytest.raises(forebay.Invalid, match=r"a value for \$2"):
        fb.sql("select $1 as a", [1, 2])
    with pytest.raises(TypeError, match="a parameter is"):
        fb.sql("select $1", [object()])
    values = [decimal.Decimal("-1.10"), decimal.Decimal("1E+3"), decimal.Decimal("0.00"), 2**64 - 1, numpy.int32(7), pandas.NaT]
    names = ", ".join(f"${at + 1} as v{at}" for at in range(len(values)))
    row = fb.sql(f"select {names}", values).to_arrow().to_pylist()[0]
    assert list(row.values()) == [*values[:5], None]
    exact = pandas.Timestamp("2024-02-29 12:30:01.000005007")
    values = [exact, exact.tz_localize("Europe/Berlin"), numpy.float32(1.5), numpy.bool_(True), numpy.bool_(False)]
    row = fb.sql("select $1 as a, $2 as b, $3 as c, $4 as d, $5 as e", values).to_arrow()
    assert [row[name][0].as_py() for name in "abcde"] == values and row["a"].type == pyarrow.timestamp("ns")
    for refused in (decimal.Decimal("NaN"), decimal.Decimal(10) ** 38, decimal.Decimal("1E-39")):
        with pytest.raises(ValueError, match="38 digits"):
            fb.sql("select $1", [refused])
    with pytest.raises(OverflowError, match="64 bits"):
        fb.sql("select $1", [2**64])
    with pytest.raises(forebay.Invalid, match="not \\?"):
        fb.sql("select ? as a", [1])
    with pytest.raises(TypeError, match="a list of values"):
        fb.sql("select $1", "text")


def test_an_error_names_the_whole_path(fb):
    with pytest.raises(forebay.NotFound) as caught:
        fb.sql("select * from '/lake/not here/x y.parquet'")
    assert caught.value.path == "/lake/not here/x y.parquet"
    with pytest.raises(forebay.Invalid) as caught:
        fb.table("/lake/sales/part-0.parquet").to_pyarrow(["nonsense"])
    assert caught.value.path == "/lake/sales/part-0.parquet"


def test_statements_without_rows_and_writing(fb, sales, lake):
    assert fb.sql("create external table named stored as parquet location '/lake/sales/'").columns == []
    assert fb.sql("select count(*) as c from named").to_arrow().to_pylist() == [{"c": 3000}]
    fb.sql("drop table named")
    written = fb.sql("copy (select n from '/lake/sales/') to '/lake/written/n.parquet'").to_arrow().to_pylist()
    assert written == [{"count": 3000}] and (lake / "written" / "n.parquet").exists()
    # It is done when the call returns, whether or not anybody asks what it says of that.
    copy = fb.sql("copy (select n from '/lake/sales/') to '/lake/written/more.parquet'")
    assert (lake / "written" / "more.parquet").exists() and [batch.num_rows for batch in copy] == [1]
    assert pyarrow.table(copy).to_pylist() == copy.to_arrow().to_pylist() == [{"count": 3000}]
    fb.sql("create external table added (n int) stored as csv location '/lake/added/'")
    fb.sql("insert into added values ($1), (2)", [1])
    assert fb.sql("select sum(n) as s from added").to_arrow().to_pylist() == [{"s": 3}]
    fb.sql("drop table added")
    results = fb.script("create view v as select 1 as one; select one from v; drop view v;")
    assert [len(result.columns) for result in results] == [0, 1, 0] and results[1].to_arrow().to_pylist() == [{"one": 1}]


def test_a_mount_of_another_client_is_there_for_the_next_query(fb, server, tmp_path):
    fb.sql("select 1").to_arrow()
    (tmp_path / "x.csv").write_text("n\n7\n")
    with forebay.connect(server) as other:
        other.mounts.add("late", tmp_path)
        try:
            assert fb.sql("select n from '/late/x.csv'").to_arrow().to_pylist() == [{"n": 7}]
        finally:
            other.mounts.remove("late")


def test_temporary_data_is_read_and_written_as_files_of_a_mount_are(fb, sales):
    ask = "select count(*) as c, sum(n) as n, max(word) as w from"
    expected = fb.sql(f"{ask} '/lake/sales/'").to_arrow().to_pylist()
    for name in ["x.parquet", "x.csv.gz", "x.albis", "folder/"]:
        copied = fb.sql(f"copy (select * from '/lake/sales/') to '/tmp/sql/{name}'")
        assert copied.to_arrow().to_pylist() == [{"count": sales.num_rows}]
        assert fb.sql(f"{ask} '/tmp/sql/{name}'").to_arrow().to_pylist() == expected, name
    # Of one length: what was known of the first one does not answer for the second.
    for value in [1, 2, 3]:
        fb.nodes.put("/tmp/sql/y.csv", f"n\n{value}\n".encode())
        assert fb.sql("select min(n) as n, count(*) as c from '/tmp/sql/y.csv'").to_arrow().to_pylist() == [{"n": value, "c": 1}]
    with pytest.raises(forebay.NotFound, match="forebay node ls"):
        fb.sql("select * from '/tmp/sql/none.csv'").to_arrow()
    assert bytes(fb.nodes.get("/tmp/sql/y.csv")) == b"n\n3\n"
    fb.nodes.rm("/tmp/sql", recursive=True)


LONG = "select count(*) from generate_series(1, 100000000) a, generate_series(1, 100000) b where a.value % 7 = b.value % 11"


def test_the_interpreter_is_free_while_a_query_runs(fb):
    ticks = []
    stop = threading.Event()

    def tick():
        while not stop.wait(0.005):
            ticks.append(time.monotonic())

    ticker = threading.Thread(target=tick)
    ticker.start()
    started = time.monotonic()
    fb.sql("select count(*) from generate_series(1, 3000000) a where a.value % 7 = 3").to_arrow()
    took = time.monotonic() - started
    stop.set()
    ticker.join()
    during = sum(started <= at <= started + took for at in ticks)
    assert during >= took / 0.005 / 20, (during, took)


# One partition, whose plan is computed by the thread that asks for its rows.
LONG_ON_ONE_THREAD = "select value from generate_series(1, 1000000000000) order by value desc limit 5"


# Each batch of it is made of as many pairs as the other side has rows, and it gives way between them alone.
LONG_WITHOUT_A_PAUSE = (
    "select count(*) as n from generate_series(1, 300000) a(x) join generate_series(1, 300000) b(y) on x * y % 1000003 = 7"
)


@pytest.mark.parametrize("query", [LONG, LONG_ON_ONE_THREAD, LONG_WITHOUT_A_PAUSE])
@pytest.mark.parametrize("form", ["to_arrow()", "reader().read_all()"])
def test_ctrl_c_ends_a_long_query(server, lake, form, query):
    program = f"""
import forebay, pyarrow, time
fb = forebay.connect({server!r})
result = fb.sql({query!r})
print("ready", flush=True)
try:
    result.{form}
    for _ in range(100): time.sleep(0.01)
except KeyboardInterrupt:
    print("interrupted", flush=True)
print(fb.sql("select 1 as one").to_arrow().to_pylist(), flush=True)
"""
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert process.stdout and process.stdout.readline() == "ready\n"
    # Longer than it takes until all threads compute: then the runtime's own clock stands still.
    time.sleep(3)
    started = time.monotonic()
    os.kill(process.pid, signal.SIGINT)
    try:
        told, took = process.stdout.readline(), time.monotonic() - started
        assert told == "interrupted\n" and took < 10
        # What gives way to nobody keeps its threads until its batch is made, and whoever asks next waits for that.
        if query != LONG_WITHOUT_A_PAUSE:
            output, _ = process.communicate(timeout=30)
            assert output == "[{'one': 1}]\n"
    finally:
        process.kill()
