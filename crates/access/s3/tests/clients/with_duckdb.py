"""DuckDB's httpfs: Parquet and CSV read by URL, by pattern and in parts, and written."""

import os
import sys

import duckdb
import duckdb_extensions

duckdb_extensions.import_extension("httpfs")
duck = duckdb.connect()
duck.execute("load httpfs")
duck.execute(
    f"""create secret forebay (type s3, endpoint '{sys.argv[1].removeprefix("http://")}', url_style 'path', use_ssl false,
        region 'us-east-1', key_id '{os.environ["AWS_ACCESS_KEY_ID"]}', secret '{os.environ["AWS_SECRET_ACCESS_KEY"]}')"""
)
duck.execute("copy (select n, 'row ' || n % 97 as text, n % 3 as part from range(300000) t(n)) to 's3://lake/duck/one file.parquet'")
duck.execute("copy (from 's3://lake/duck/one file.parquet') to 's3://lake/duck/set' (format parquet, partition_by (part))")
total = sum(range(300_000))
assert duck.sql("select count(*), sum(n) from 's3://lake/duck/one file.parquet'").fetchall() == [(300_000, total)]
assert duck.sql("select sum(n) from 's3://lake/duck/set/*/*.parquet'").fetchall() == [(total,)]
part = duck.sql("select sum(n) from read_parquet('s3://lake/duck/set/*/*.parquet', hive_partitioning = true) where part = 1").fetchall()
assert part == [(sum(range(1, 300_000, 3)),)]
assert duck.sql("select max(text) from 's3://lake/duck/one file.parquet' where n >= 299990").fetchall() == [("row 75",)]
duck.execute("copy (select * from 's3://lake/duck/one file.parquet' where n < 10) to 's3://lake/duck/few.csv'")
assert duck.sql("select sum(n) from 's3://lake/duck/few.csv'").fetchall() == [(45,)]
try:
    duck.sql("select * from 's3://lake/duck/none.parquet'").fetchall()
except duckdb.Error as error:
    assert "404" in str(error), error
else:
    raise AssertionError("there is no such object")
