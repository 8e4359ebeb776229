"""boto3 as people use it: resources, transfers, both ways of addressing."""

import io
import sys

import boto3
from boto3.s3.transfer import TransferConfig
from botocore.config import Config

endpoint = sys.argv[1]
s3 = boto3.client("s3", endpoint_url=endpoint)
assert [entry["Name"] for entry in s3.list_buckets()["Buckets"]] == ["lake", "tmp"]

body = bytes(range(253)) * 100_000
small = TransferConfig(multipart_threshold=5 << 20, multipart_chunksize=5 << 20)
s3.upload_fileobj(io.BytesIO(body), "lake", "transfers/a b", ExtraArgs={"ContentType": "x/y", "Metadata": {"who": "me"}}, Config=small)
out = io.BytesIO()
s3.download_fileobj("lake", "transfers/a b", out, Config=small)
assert out.getvalue() == body
head = s3.head_object(Bucket="lake", Key="transfers/a b")
assert head["ContentLength"] == len(body) and head["ETag"].strip('"').endswith(f"-{-(-len(body) // (5 << 20))}")

# A range read checks checksums when it gets one: one of the whole object would break it.
s3.put_object(Bucket="lake", Key="checked", Body=b"0123456789" * 1000, ChecksumAlgorithm="CRC32")
assert s3.get_object(Bucket="lake", Key="checked", Range="bytes=10-19")["Body"].read() == b"0123456789"
assert s3.get_object(Bucket="lake", Key="checked")["Body"].read() == b"0123456789" * 1000

bucket = boto3.resource("s3", endpoint_url=endpoint).Bucket("lake")
for n in range(25):
    bucket.put_object(Key=f"many/{n:02}", Body=str(n).encode())
assert [entry.key for entry in bucket.objects.filter(Prefix="many/").page_size(10)] == [f"many/{n:02}" for n in range(25)]
bucket.objects.filter(Prefix="many/").delete()
assert list(bucket.objects.filter(Prefix="many/")) == []

virtual = endpoint.replace("127.0.0.1", "localhost")
import socket
resolve = socket.getaddrinfo
socket.getaddrinfo = lambda host, *rest, **more: resolve("127.0.0.1" if str(host).endswith("localhost") else host, *rest, **more)
config = Config(s3={"addressing_style": "virtual"}, signature_version="s3v4")
hosted = boto3.client("s3", endpoint_url=virtual, config=config)
hosted.put_object(Bucket="lake", Key="by/host", Body=b"in the host")
assert s3.get_object(Bucket="lake", Key="by/host")["Body"].read() == b"in the host"
assert hosted.meta.endpoint_url == virtual
