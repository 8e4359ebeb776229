"""pyarrow's S3FileSystem: datasets written and read back, with filters that read parts of files."""

import sys

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow import fs

endpoint = sys.argv[1].removeprefix("http://")
s3 = fs.S3FileSystem(endpoint_override=endpoint, scheme="http")
table = pa.table({"n": list(range(300_000)), "text": [f"row {n % 1000}" for n in range(300_000)], "part": [n % 3 for n in range(300_000)]})
pq.write_table(table, "lake/one file.parquet", filesystem=s3, row_group_size=50_000)
assert pq.read_table("lake/one file.parquet", filesystem=s3).equals(table)
column = pq.read_table("lake/one file.parquet", filesystem=s3, columns=["n"], filters=[("n", ">=", 250_000)])
assert column.num_rows == 50_000 and pc.min(column["n"]).as_py() == 250_000

ds.write_dataset(table, "lake/set", filesystem=s3, format="parquet", partitioning=["part"], partitioning_flavor="hive")
back = ds.dataset("lake/set", filesystem=s3, format="parquet", partitioning="hive")
assert back.count_rows() == 300_000
assert pc.sum(back.to_table(filter=ds.field("part") == 1)["n"]).as_py() == sum(range(1, 300_000, 3))

infos = s3.get_file_info(fs.FileSelector("lake/set", recursive=True))
assert sum(info.type == fs.FileType.File for info in infos) == 3
with s3.open_output_stream("lake/stream.bin", metadata={"Content-Type": "a/b"}) as out:
    for n in range(12):
        out.write(bytes([n]) * (1 << 20))
with s3.open_input_file("lake/stream.bin") as source:
    assert source.size() == 12 << 20
    source.seek((5 << 20) - 1)
    assert source.read(2) == bytes([4, 5])
s3.copy_file("lake/stream.bin", "lake/copied.bin")
s3.move("lake/copied.bin", "lake/moved.bin")
assert s3.get_file_info("lake/moved.bin").size == 12 << 20
assert s3.get_file_info("lake/copied.bin").type == fs.FileType.NotFound
s3.delete_dir("lake/set")
assert s3.get_file_info("lake/set").type == fs.FileType.NotFound
