"""The libraries that people use, by URL."""

from __future__ import annotations

import duckdb
import pandas
import polars
import pyarrow.dataset
import pyarrow.parquet


def test_pandas(address, fb, sales):
    frame = pandas.read_parquet("forebay://lake/sales/")
    assert len(frame) == 3000 and int(frame["n"].sum()) == sum(range(3000))
    frame.head(10).to_parquet("forebay://lake/pandas/head.parquet")
    frame.head(10).to_csv("forebay://lake/pandas/head.csv", index=False)
    assert pandas.read_csv("forebay://lake/pandas/head.csv")["word"].tolist() == frame["word"].head(10).tolist()
    assert fb.sql("select max(n) as m from '/lake/pandas/head.parquet'").to_arrow().to_pylist() == [{"m": 9}]


def test_pyarrow(address, fb, sales):
    dataset = pyarrow.dataset.dataset("/lake/sales/", filesystem=fb.fs, format="parquet")
    assert dataset.count_rows() == 3000
    assert dataset.to_table(filter=pyarrow.dataset.field("n") < 5, columns=["n"])["n"].to_pylist() == [0, 1, 2, 3, 4]
    assert pyarrow.parquet.read_table("/lake/sales/part-1.parquet", filesystem=fb.fs).num_rows == 1000
    pyarrow.dataset.write_dataset(sales, "/lake/arrow-out", filesystem=fb.fs, format="parquet", partitioning=["word"], partitioning_flavor="hive")
    assert fb.sql("select count(*) as c from '/lake/arrow-out/' where word = 'word-3'").to_arrow()["c"][0].as_py() == 429


def test_polars(address, fb, sales):
    lazy = polars.scan_pyarrow_dataset(pyarrow.dataset.dataset("/lake/sales/", filesystem=fb.fs, format="parquet"))
    assert lazy.filter(polars.col("n") < 5).select("n").collect()["n"].to_list() == [0, 1, 2, 3, 4]
    files = [fb.open(f"/lake/sales/part-{at}.parquet") for at in range(3)]
    assert polars.scan_parquet(files).select(polars.col("n").sum()).collect().item() == sum(range(3000))
    assert polars.read_parquet(fb.open("/lake/sales/part-0.parquet")).height == 1000


def test_duckdb(fb, sales):
    duck = duckdb.connect()
    duck.register_filesystem(fb.fs)
    assert duck.sql("select sum(n) from read_parquet('forebay://lake/sales/*.parquet')").fetchall() == [(sum(range(3000)),)]
    rows = fb.sql("select n from '/lake/sales/' where n < 10").to_arrow()
    assert duck.sql("select sum(n) from rows").fetchall() == [(45,)]
    for n in [7, 8]:
        duck.sql(f"copy (select {n} as n from range(1000)) to 'forebay://tmp/duck/n.parquet'")
        assert duck.sql("select sum(n) from 'forebay://tmp/duck/n.parquet'").fetchall() == [(n * 1000,)]
    fb.nodes.rm("/tmp/duck", recursive=True)
    by_word = "copy (select n, n % 3 as part from rows) to 'forebay://lake/duck-out' (format parquet, partition_by (part), overwrite_or_ignore)"
    duck.sql(by_word)
    assert fb.sql("select count(*) as c from '/lake/duck-out/' where part = '1'").to_arrow().to_pylist() == [{"c": 3}]
