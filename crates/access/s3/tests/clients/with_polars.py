"""Polars: scans and sinks of Parquet and CSV by URL."""

import os
import sys

import polars as pl

options = {
    "aws_endpoint_url": sys.argv[1],
    "aws_access_key_id": os.environ["AWS_ACCESS_KEY_ID"],
    "aws_secret_access_key": os.environ["AWS_SECRET_ACCESS_KEY"],
    "aws_region": "us-east-1",
    "aws_allow_http": "true",
}
frame = pl.DataFrame({"n": range(200_000), "text": [f"row {n % 97}" for n in range(200_000)]})
for n, part in enumerate(frame.iter_slices(50_000)):
    part.write_parquet(f"s3://lake/frames/part {n}.parquet", storage_options=options)
scan = pl.scan_parquet("s3://lake/frames/*.parquet", storage_options=options)
assert scan.select(pl.len()).collect().item() == 200_000
found = scan.filter(pl.col("n") >= 150_000).select(pl.col("n").sum()).collect().item()
assert found == sum(range(150_000, 200_000))
assert scan.collect().sort("n").equals(frame)
frame.lazy().sink_parquet("s3://lake/sunk.parquet", storage_options=options)
assert pl.read_parquet("s3://lake/sunk.parquet", storage_options=options).equals(frame)
frame.head(10).write_csv("s3://lake/few.csv", storage_options=options)
assert pl.scan_csv("s3://lake/few.csv", storage_options=options).collect()["n"].sum() == 45
