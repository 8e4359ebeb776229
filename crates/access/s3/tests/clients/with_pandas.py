"""pandas through s3fs: CSV, JSON and Parquet by URL."""

import sys

import pandas as pd

options = {"client_kwargs": {"endpoint_url": sys.argv[1]}}
frame = pd.DataFrame({"n": range(100_000), "text": [f"row {n % 89}" for n in range(100_000)]})
frame.to_parquet("s3://lake/pandas/a.parquet", storage_options=options)
assert pd.read_parquet("s3://lake/pandas/a.parquet", storage_options=options).equals(frame)
assert list(pd.read_parquet("s3://lake/pandas/a.parquet", columns=["n"], storage_options=options).columns) == ["n"]
frame.to_csv("s3://lake/pandas/a.csv", index=False, storage_options=options)
assert pd.read_csv("s3://lake/pandas/a.csv", storage_options=options).equals(frame)
frame.head(5).to_json("s3://lake/pandas/a.json", orient="records", storage_options=options)
assert pd.read_json("s3://lake/pandas/a.json", orient="records", storage_options=options)["n"].sum() == 10

import s3fs

files = s3fs.S3FileSystem(client_kwargs={"endpoint_url": sys.argv[1]})
assert sorted(files.ls("lake/pandas")) == ["lake/pandas/a.csv", "lake/pandas/a.json", "lake/pandas/a.parquet"]
with files.open("lake/pandas/large.bin", "wb", block_size=5 << 20) as out:
    for n in range(12):
        out.write(bytes([n]) * (1 << 20))
assert files.cat_file("lake/pandas/large.bin", start=(3 << 20) - 1, end=(3 << 20) + 1) == bytes([2, 3])
files.rm("lake/pandas", recursive=True)
files.invalidate_cache()
assert files.ls("lake") == []
