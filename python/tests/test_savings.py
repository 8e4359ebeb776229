"""What `forebay savings` says of a mixed load is what the storage's server counts: by SQL here and there, by S3, by Python."""

from __future__ import annotations

import io
import json
import os
import subprocess
import time
from pathlib import Path

import numpy
import pyarrow
import pyarrow.fs
import pyarrow.parquet
import pytest
from fake_aws import BUCKET, FakeAws
from test_credentials import clean
from test_flight_sql import BINARY, Up

import forebay

__all__ = ["clean"]

KEY, SECRET = "me", "a secret of the tests"
FILES = 6


def settled(up: Up) -> dict[str, int]:
    """What is told once nothing changes any more: workers tell of themselves once a second."""
    command = [str(BINARY), "savings", "--json", "--coordinator", up.told["coordinator"]]
    environment = dict(os.environ, HOME=str(up.folder))

    def look() -> dict[str, int]:
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout)

    last, since, end = look(), time.monotonic(), time.monotonic() + 60
    while time.monotonic() - since < 2.5:
        assert time.monotonic() < end, f"{last} goes on"
        time.sleep(0.5)
        now = look()
        if now != last:
            last, since = now, time.monotonic()
    return last


def parquet(seed: int) -> bytes:
    made = io.BytesIO()
    random = numpy.random.default_rng(seed)
    table = pyarrow.table({"n": numpy.arange(50_000) + seed * 50_000, "value": random.random(50_000), "word": random.integers(0, 9, 50_000)})
    pyarrow.parquet.write_table(table, made, row_group_size=10_000)
    return made.getvalue()


def load(up: Up, fb: forebay.Client, aws: FakeAws) -> None:
    """One round: statements here and by Flight SQL, whole objects and ranges by S3, and the same by Python."""
    paths = [f"part-{number}.parquet" for number in range(FILES)]
    assert fb.sql("select count(*) as rows, sum(n) as n from '/lake/*.parquet' where value >= 0").to_arrow().num_rows == 1
    with up.connect() as connection, connection.cursor() as cursor:
        cursor.execute("select word, avg(value) from '/lake/part-1.parquet' group by word order by word")
        assert len(cursor.fetchall()) == 9
    s3 = pyarrow.fs.S3FileSystem(
        access_key=KEY, secret_key=SECRET, region="us-east-1", scheme="http", endpoint_override=up.told["s3"].removeprefix("http://").rstrip("/")
    )
    assert len(s3.get_file_info(pyarrow.fs.FileSelector("lake"))) == FILES + 1
    for path in paths[:3]:
        with s3.open_input_file(f"lake/{path}") as file:
            assert file.read_at(1000, 5000) == aws.objects[path][5000:6000]
            file.seek(0)
            assert file.read() == aws.objects[path]
    for path in paths[2:]:
        with fb.open(f"/lake/{path}") as file:
            file.seek(100_000)
            assert file.read(4096) == aws.objects[path][100_000:104_096]
    assert fb.read("/lake/notes.bin") == aws.objects["notes.bin"]


def test_savings_are_within_two_percent_of_what_the_server_counts(clean: pytest.MonkeyPatch, tmp_path: Path):
    aws = FakeAws(3600)
    key = aws.key("env")
    variables = {"AWS_ACCESS_KEY_ID": key["AccessKeyId"], "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"], "AWS_SESSION_TOKEN": key["Token"]}
    variables |= {"FOREBAY_S3_ACCESS_KEY": KEY, "FOREBAY_S3_SECRET_KEY": SECRET}
    with clean.context() as server:
        for name, value in variables.items():
            server.setenv(name, value)
        up = Up(tmp_path, "--s3=127.0.0.1:0")
    try:
        aws.objects.update({f"part-{number}.parquet": parquet(number) for number in range(FILES)})
        aws.objects["notes.bin"] = bytes(range(256)) * 1000
        with forebay.connect(up.told["coordinator"]) as fb:
            fb.mounts.add("lake", f"s3://{BUCKET}", endpoint=aws.url, validate="always")
            before, counted_before = settled(up), aws.counted.copy()
            for _ in range(3):
                load(up, fb, aws)
            # One object has another version: its bytes are fetched anew.
            aws.objects["notes.bin"] = bytes(range(255, -1, -1)) * 1000
            load(up, fb, aws)
            after = settled(up)
        for told, counted in [("storage_requests", "requests"), ("storage_bytes", "bytes")]:
            by_us, by_server = after[told] - before[told], aws.counted[counted] - counted_before[counted]
            print(f"{told}: {by_us} told, {by_server} counted")
            assert by_server > 0 and abs(by_us - by_server) * 50 <= by_server, f"{told}: {by_us} told, {by_server} counted: {aws.counted}, {after}"
        assert after["saved_bytes"] == after["served_bytes"] - after["storage_bytes"] > 0, after
    finally:
        up.stop()
        aws.close()
