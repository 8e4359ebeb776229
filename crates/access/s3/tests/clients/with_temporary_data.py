"""The bucket of temporary data with boto3: objects of all sizes, folders, listings in the order of keys."""

import io
import sys

import boto3
from boto3.s3.transfer import TransferConfig
from botocore.exceptions import ClientError

s3 = boto3.client("s3", endpoint_url=sys.argv[1])


def get(key, **options):
    return s3.get_object(Bucket="tmp", Key=key, **options)["Body"].read()


def refused(call, **options):
    try:
        call(Bucket="tmp", **options)
    except ClientError as error:
        return error.response["Error"]["Code"]
    raise AssertionError(f"{options} was not refused")


def keys(prefix="", **options):
    found = []
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket="tmp", Prefix=prefix, **options):
        found += [entry["Key"] for entry in page.get("Contents", [])]
    return found


s3.head_bucket(Bucket="tmp")

# What is put comes back, on the borders of a value with its name, a block, a value and a file.
sizes = [0, 1, 4096, 16 << 10, (16 << 10) + 1, 1 << 20, (3 << 20) + 7, (33 << 20) + 5]
for size in sizes:
    body = bytes(range(251)) * (size // 251 + 1)
    body = body[:size]
    before = s3.put_object(Bucket="tmp", Key="job/1/part", Body=body)["ETag"]
    head = s3.head_object(Bucket="tmp", Key="job/1/part")
    assert head["ContentLength"] == size and head["ETag"] == before, size
    assert get("job/1/part") == body, size
    if size > 10:
        assert get("job/1/part", Range="bytes=3-9") == body[3:10]
        assert get("job/1/part", Range="bytes=-5") == body[-5:]
        assert get("job/1/part", Range=f"bytes={size // 2}-") == body[size // 2 :]
    assert refused(s3.get_object, Key="job/1/part", Range=f"bytes={size}-") == "InvalidRange"
s3.put_object(Bucket="tmp", Key="job/1/part", Body=b"small again")
assert s3.head_object(Bucket="tmp", Key="job/1/part")["ETag"] != before
assert refused(s3.get_object, Key="job/1/part", IfMatch=before) == "PreconditionFailed"
assert keys() == ["job/1/part"], "drafts of uploads are not seen"

# In parts, and copied, also from and to shared storage.
large = bytes(range(253)) * 50_000
s3.upload_fileobj(io.BytesIO(large), "tmp", "uploads/large", Config=TransferConfig(multipart_threshold=5 << 20, multipart_chunksize=5 << 20))
out = io.BytesIO()
s3.download_fileobj("tmp", "uploads/large", out)
assert out.getvalue() == large
for source, target in [(("tmp", "uploads/large"), ("tmp", "copies/large")), (("tmp", "copies/large"), ("lake", "kept")), (("lake", "kept"), ("tmp", "back"))]:
    s3.copy_object(Bucket=target[0], Key=target[1], CopySource={"Bucket": source[0], "Key": source[1]})
    assert s3.get_object(Bucket=target[0], Key=target[1])["Body"].read() == large

# Keys are listed in their byte order, which is not that of names: "a." is before "a/".
made = ["a/1.5/x", "a/1-5", "a/1/y", "a.b/c", "a-b", "b/x/y", "b/x.z", "c d/é", "b0"]
for key in made:
    s3.put_object(Bucket="tmp", Key="sorted/" + key, Body=key.encode())
expected = sorted("sorted/" + key for key in made)
assert keys("sorted/") == expected
for size in (1, 2, 3):
    assert keys("sorted/", PaginationConfig={"PageSize": size}) == expected, size
for at, after in enumerate(expected):
    assert keys("sorted/", StartAfter=after) == expected[at + 1 :], after
    assert keys(after[:-1]) == [key for key in expected if key.startswith(after[:-1])], after
assert keys("sorted/b") == [key for key in expected if key.startswith("sorted/b")]
assert keys("sorted//") == keys("nothing/") == keys("sorted/b0/") == []
page = s3.list_objects_v2(Bucket="tmp", Prefix="sorted/", Delimiter="/")
assert [entry["Prefix"] for entry in page["CommonPrefixes"]] == ["sorted/a.b/", "sorted/a/", "sorted/b/", "sorted/c d/"]
assert [entry["Key"] for entry in page["Contents"]] == ["sorted/a-b", "sorted/b0"]
folders, objects, token = [], [], {}
while token is not None:
    page = s3.list_objects_v2(Bucket="tmp", Prefix="sorted/", Delimiter="/", MaxKeys=1, **token)
    folders += [entry["Prefix"] for entry in page.get("CommonPrefixes", [])]
    objects += [entry["Key"] for entry in page.get("Contents", [])]
    token = {"ContinuationToken": page["NextContinuationToken"]} if page["IsTruncated"] else None
assert folders == ["sorted/a.b/", "sorted/a/", "sorted/b/", "sorted/c d/"] and objects == ["sorted/a-b", "sorted/b0"]
assert [entry["Key"] for entry in s3.list_objects(Bucket="tmp", Prefix="sorted/a")["Contents"]] == keys("sorted/a")

# Folders: made, looked at, deleted when they are empty; what is not there can be deleted.
s3.put_object(Bucket="tmp", Key="folder/", Body=b"")
assert s3.head_object(Bucket="tmp", Key="folder/")["ContentLength"] == 0
assert refused(s3.get_object, Key="folder") == "NoSuchKey"
s3.put_object(Bucket="tmp", Key="folder/x", Body=b"x")
s3.delete_object(Bucket="tmp", Key="folder/")
assert get("folder/x") == b"x"
s3.delete_object(Bucket="tmp", Key="folder")
assert get("folder/x") == b"x"
s3.delete_object(Bucket="tmp", Key="nothing")
deleted = s3.delete_objects(Bucket="tmp", Delete={"Objects": [{"Key": key} for key in expected]})
assert len(deleted["Deleted"]) == len(expected) and keys("sorted/") == []
assert refused(s3.get_object, Key="sorted/b0") == "NoSuchKey"

# Conditions of writes.
made = s3.put_object(Bucket="tmp", Key="if/x", Body=b"1", IfNoneMatch="*")["ETag"]
assert refused(s3.put_object, Key="if/x", Body=b"2", IfNoneMatch="*") == "PreconditionFailed"
replaced = s3.put_object(Bucket="tmp", Key="if/x", Body=b"2", IfMatch=made)["ETag"]
assert refused(s3.put_object, Key="if/x", Body=b"3", IfMatch=made) == "PreconditionFailed"
assert refused(s3.put_object, Key="if/none", Body=b"3", IfMatch=made) == "NoSuchKey"
assert get("if/x") == b"2" and s3.head_object(Bucket="tmp", Key="if/x")["ETag"] == replaced
s3.delete_object(Bucket="tmp", Key="if/x", IfMatch=replaced)
assert keys("if/") == []

# Nothing has tags, and who copies asks for them.
assert s3.get_object_tagging(Bucket="tmp", Key="folder/x")["TagSet"] == []
assert refused(s3.get_object_tagging, Key="folder/none") == "NoSuchKey"

# What can't be, says so.
assert refused(s3.put_object, Key="folder/x/y", Body=b"below an object") == "OperationAborted"
assert refused(s3.put_object, Key="folder", Body=b"a folder is there") == "OperationAborted"
assert refused(s3.put_object, Key="a//b", Body=b"x") == "InvalidRequest"
assert refused(s3.put_object_tagging, Key="folder/x", Tagging={"TagSet": [{"Key": "a", "Value": "b"}]}) == "NotImplemented"
assert refused(s3.delete_bucket) == "AccessDenied"
