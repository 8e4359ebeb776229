"""Checks of S3 as clients see it: `conformance.py ENDPOINT BUCKET` prints a line a check, `pass NAME` or `fail NAME: WHY`."""

import base64
import datetime
import hashlib
import http.client
import sys
import traceback
import urllib.parse
import zlib

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

endpoint, bucket = sys.argv[1:3]
config = Config(signature_version="s3v4", retries={"max_attempts": 1}, s3={"addressing_style": "path"}, connect_timeout=5, read_timeout=60)
s3 = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", config=config)
MiB = 1 << 20
checks = []


def check(function):
    checks.append(function)
    return function


def refused(code, status, call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except ClientError as error:
        got = (error.response["Error"]["Code"], error.response["ResponseMetadata"]["HTTPStatusCode"])
        codes = code if isinstance(code, tuple) else (code,)
        assert got[0] in codes and got[1] == status, f"got {got}, expected {code} {status}"
        return error.response
    raise AssertionError(f"was not refused with {code}")


def put(key, body=b"hello", **more):
    return s3.put_object(Bucket=bucket, Key=key, Body=body, **more)


def get(key, **more):
    answer = s3.get_object(Bucket=bucket, Key=key, **more)
    answer["Data"] = answer["Body"].read()
    return answer


def keys(answer):
    return [entry["Key"] for entry in answer.get("Contents", [])]


def prefixes(answer):
    return [entry["Prefix"] for entry in answer.get("CommonPrefixes", [])]


def clean(prefix):
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
    for page in pages:
        found = [{"Key": key} for key in keys(page)]
        if found:
            s3.delete_objects(Bucket=bucket, Delete={"Objects": found, "Quiet": True})


def raw(method, url, body=None, headers=None):
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=30)
    connection.request(method, parts.path + ("?" + parts.query if parts.query else ""), body, headers or {})
    answer = connection.getresponse()
    data = answer.read()
    connection.close()
    return answer.status, dict((name.lower(), value) for name, value in answer.getheaders()), data


def presign(operation, expires=300, **params):
    return s3.generate_presigned_url(operation, Params={"Bucket": bucket, **params}, ExpiresIn=expires)


# Objects

@check
def put_and_get():
    tag = put("o/a", b"some bytes")["ETag"]
    answer = get("o/a")
    assert answer["Data"] == b"some bytes" and answer["ETag"] == tag and answer["ContentLength"] == 10
    assert answer["AcceptRanges"] == "bytes"


@check
def etag_is_md5():
    assert put("o/md5", b"x" * 1000)["ETag"] == f'"{hashlib.md5(b"x" * 1000).hexdigest()}"'


@check
def empty_object():
    put("o/empty", b"")
    assert get("o/empty")["Data"] == b"" and s3.head_object(Bucket=bucket, Key="o/empty")["ContentLength"] == 0


@check
def overwrite_is_seen():
    for n in range(5):
        body = f"version {n}".encode() * (n + 1)
        put("o/over", body)
        assert get("o/over")["Data"] == body


@check
def large_object():
    body = bytes(range(256)) * 4096 * 9
    put("o/large", body)
    assert get("o/large")["Data"] == body
    assert get("o/large", Range="bytes=5000000-9000000")["Data"] == body[5000000:9000001]


@check
def missing_object():
    refused("NoSuchKey", 404, s3.get_object, Bucket=bucket, Key="o/missing")
    refused("404", 404, s3.head_object, Bucket=bucket, Key="o/missing")


@check
def missing_bucket():
    refused("NoSuchBucket", 404, s3.get_object, Bucket="no-such-bucket-here", Key="a")
    refused("NoSuchBucket", 404, s3.list_objects_v2, Bucket="no-such-bucket-here")
    refused("NoSuchBucket", 404, s3.put_object, Bucket="no-such-bucket-here", Key="a", Body=b"")
    refused("404", 404, s3.head_bucket, Bucket="no-such-bucket-here")


@check
def content_type_is_kept():
    put("o/type", b"{}", ContentType="application/json")
    assert get("o/type")["ContentType"] == "application/json"
    assert s3.head_object(Bucket=bucket, Key="o/type")["ContentType"] == "application/json"


@check
def content_type_of_none():
    put("o/untyped", b"{}")
    assert get("o/untyped")["ContentType"] == "binary/octet-stream"


@check
def headers_are_kept():
    put("o/headers", b"x", CacheControl="max-age=3", ContentDisposition="attachment", ContentEncoding="zstd",
        ContentLanguage="de", Expires=datetime.datetime(2030, 1, 1))
    for answer in (get("o/headers"), s3.head_object(Bucket=bucket, Key="o/headers")):
        assert (answer["CacheControl"], answer["ContentDisposition"]) == ("max-age=3", "attachment")
        assert (answer["ContentEncoding"], answer["ContentLanguage"]) == ("zstd", "de")


@check
def user_metadata_is_kept():
    put("o/meta", b"x", Metadata={"one": "1", "two": "zwei drei"})
    for answer in (get("o/meta"), s3.head_object(Bucket=bucket, Key="o/meta")):
        assert answer["Metadata"] == {"one": "1", "two": "zwei drei"}, answer["Metadata"]


@check
def metadata_changes_with_the_object():
    put("o/meta2", b"x", Metadata={"v": "1"})
    assert get("o/meta2")["Metadata"] == {"v": "1"}
    put("o/meta2", b"x", Metadata={"v": "2"})
    assert get("o/meta2")["Metadata"] == {"v": "2"}


@check
def odd_keys():
    for key in ["o/a b", "o/a+b", "o/a%20b", "o/ä€😀", "o/a&b<c>'\"", "o/a=b?c#d", "o/a;b,c:d@e!f$g(h)*i~j", "o/[x]{y}|\\z"]:
        put(key, key.encode())
        assert get(key)["Data"] == key.encode(), key
        assert s3.head_object(Bucket=bucket, Key=key)["ContentLength"] == len(key.encode())
        s3.delete_object(Bucket=bucket, Key=key)
        refused("NoSuchKey", 404, s3.get_object, Bucket=bucket, Key=key)


@check
def key_too_long():
    refused("KeyTooLongError", 400, put, "o/" + "x" * 1100)


@check
def delete_is_idempotent():
    put("o/gone")
    for _ in range(2):
        assert s3.delete_object(Bucket=bucket, Key="o/gone")["ResponseMetadata"]["HTTPStatusCode"] == 204
    refused("NoSuchKey", 404, s3.get_object, Bucket=bucket, Key="o/gone")


@check
def delete_many():
    for n in range(20):
        put(f"many/{n}")
    answer = s3.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": f"many/{n}"} for n in range(20)] + [{"Key": "many/none"}]})
    assert sorted(entry["Key"] for entry in answer["Deleted"]) == sorted([f"many/{n}" for n in range(20)] + ["many/none"])
    assert s3.list_objects_v2(Bucket=bucket, Prefix="many/")["KeyCount"] == 0


@check
def delete_thousand():
    objects = [{"Key": f"thousand/{n:04}"} for n in range(1000)]
    for entry in objects[:30]:
        put(entry["Key"])
    assert len(s3.delete_objects(Bucket=bucket, Delete={"Objects": objects})["Deleted"]) == 1000
    refused("MalformedXML", 400, s3.delete_objects, Bucket=bucket, Delete={"Objects": objects + [{"Key": "one-more"}]})


@check
def delete_many_quiet():
    put("quiet/a")
    assert "Deleted" not in s3.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": "quiet/a"}], "Quiet": True})


# Ranges and conditions

@check
def ranges():
    body = bytes(range(200))
    put("r/a", body)
    for text, start, end in [("0-9", 0, 10), ("10-10", 10, 11), ("190-", 190, 200), ("-7", 193, 200), ("-900", 0, 200), ("150-900", 150, 200)]:
        answer = get("r/a", Range=f"bytes={text}")
        assert answer["Data"] == body[start:end], text
        assert answer["ContentRange"] == f"bytes {start}-{end - 1}/200", answer["ContentRange"]
        assert answer["ResponseMetadata"]["HTTPStatusCode"] == 206 and answer["ContentLength"] == end - start


@check
def range_past_the_end():
    put("r/b", b"x" * 10)
    refused("InvalidRange", 416, s3.get_object, Bucket=bucket, Key="r/b", Range="bytes=10-20")
    refused("InvalidRange", 416, s3.get_object, Bucket=bucket, Key="r/b", Range="bytes=1000-")


@check
def range_of_nothing():
    put("r/empty", b"")
    refused("InvalidRange", 416, s3.get_object, Bucket=bucket, Key="r/empty", Range="bytes=0-5")


@check
def range_that_is_none():
    put("r/c", b"0123456789")
    answer = get("r/c", Range="bytes=5-2")
    assert answer["Data"] == b"0123456789" and answer["ResponseMetadata"]["HTTPStatusCode"] == 200


@check
def if_match():
    tag = put("c/a", b"x")["ETag"]
    assert get("c/a", IfMatch=tag)["Data"] == b"x"
    refused("PreconditionFailed", 412, s3.get_object, Bucket=bucket, Key="c/a", IfMatch='"other"')
    refused("412", 412, s3.head_object, Bucket=bucket, Key="c/a", IfMatch='"other"')


@check
def if_match_on_a_missing_key():
    refused("NoSuchKey", 404, s3.get_object, Bucket=bucket, Key="c/missing", IfMatch='"x"')


@check
def if_none_match():
    tag = put("c/b", b"x")["ETag"]
    for call in (s3.get_object, s3.head_object):
        answer = refused("304", 304, call, Bucket=bucket, Key="c/b", IfNoneMatch=tag)
        assert answer["ResponseMetadata"]["HTTPHeaders"].get("etag") == tag, "no ETag on a 304"
    assert get("c/b", IfNoneMatch='"other"')["Data"] == b"x"


@check
def if_modified_since():
    put("c/c", b"x")
    now = datetime.datetime.now(datetime.timezone.utc)
    refused("304", 304, s3.get_object, Bucket=bucket, Key="c/c", IfModifiedSince=now + datetime.timedelta(seconds=5))
    assert get("c/c", IfModifiedSince=now - datetime.timedelta(days=1))["Data"] == b"x"


@check
def head_if_modified_since():
    put("c/d", b"x")
    now = datetime.datetime.now(datetime.timezone.utc)
    refused("304", 304, s3.head_object, Bucket=bucket, Key="c/d", IfModifiedSince=now + datetime.timedelta(seconds=5))


@check
def if_unmodified_since():
    put("c/e", b"x")
    now = datetime.datetime.now(datetime.timezone.utc)
    refused("PreconditionFailed", 412, s3.get_object, Bucket=bucket, Key="c/e", IfUnmodifiedSince=now - datetime.timedelta(days=1))
    assert get("c/e", IfUnmodifiedSince=now + datetime.timedelta(days=1))["Data"] == b"x"


@check
def put_if_none_match():
    clean("c/once")
    put("c/once", b"first", IfNoneMatch="*")
    refused("PreconditionFailed", 412, put, "c/once", b"second", IfNoneMatch="*")
    assert get("c/once")["Data"] == b"first"


@check
def put_if_match():
    tag = put("c/cas", b"1")["ETag"]
    refused("PreconditionFailed", 412, put, "c/cas", b"2", IfMatch='"00000000000000000000000000000000"')
    put("c/cas", b"2", IfMatch=tag)
    assert get("c/cas")["Data"] == b"2"


@check
def put_if_match_on_a_missing_key():
    refused("NoSuchKey", 404, put, "c/nothing-there", b"2", IfMatch='"00000000000000000000000000000000"')


@check
def response_overrides():
    put("c/over", b"x", ContentType="text/plain")
    answer = get("c/over", ResponseContentType="text/csv", ResponseContentDisposition="inline", ResponseCacheControl="no-store",
                 ResponseContentLanguage="fr", ResponseContentEncoding="br")
    assert (answer["ContentType"], answer["ContentDisposition"], answer["CacheControl"]) == ("text/csv", "inline", "no-store")
    assert (answer["ContentLanguage"], answer["ContentEncoding"]) == ("fr", "br")


# Listings

def tree():
    names = ["asdf", "boo/bar", "boo/baz/xyzzy", "cquux/bla", "cquux/thud", "foo"]
    if s3.list_objects_v2(Bucket=bucket, Prefix="l/")["KeyCount"] != len(names):
        for name in names:
            put(f"l/{name}")
    return [f"l/{name}" for name in names]


@check
def list_v1():
    answer = s3.list_objects(Bucket=bucket, Prefix="l/") if tree() else None
    assert keys(answer) == tree() and answer["IsTruncated"] is False and answer["Marker"] == "" and answer["MaxKeys"] == 1000
    assert answer["Name"] == bucket and answer["Prefix"] == "l/"


@check
def list_v2():
    wanted = tree()
    answer = s3.list_objects_v2(Bucket=bucket, Prefix="l/")
    assert keys(answer) == wanted and answer["KeyCount"] == 6 and answer["IsTruncated"] is False
    entry = answer["Contents"][0]
    assert entry["Size"] == 5 and entry["ETag"] == '"5d41402abc4b2a76b9719d911017c592"' and entry["StorageClass"] == "STANDARD"


@check
def list_delimiter():
    tree()
    for call in (s3.list_objects, s3.list_objects_v2):
        answer = call(Bucket=bucket, Prefix="l/", Delimiter="/")
        assert keys(answer) == ["l/asdf", "l/foo"] and prefixes(answer) == ["l/boo/", "l/cquux/"] and answer["Delimiter"] == "/"


@check
def list_delimiter_pages_v1():
    tree()
    seen, marker = [], ""
    for expected in [(["l/asdf"], []), ([], ["l/boo/"]), ([], ["l/cquux/"]), (["l/foo"], [])]:
        answer = s3.list_objects(Bucket=bucket, Prefix="l/", Delimiter="/", MaxKeys=1, Marker=marker)
        assert (keys(answer), prefixes(answer)) == expected, (keys(answer), prefixes(answer), marker)
        seen.append(answer["IsTruncated"])
        marker = answer.get("NextMarker", "")
    assert seen == [True, True, True, False]


@check
def list_delimiter_pages_v2():
    tree()
    more, seen = {}, []
    while True:
        answer = s3.list_objects_v2(Bucket=bucket, Prefix="l/", Delimiter="/", MaxKeys=1, **more)
        seen += keys(answer) + prefixes(answer)
        if not answer["IsTruncated"]:
            break
        more = {"ContinuationToken": answer["NextContinuationToken"]}
    assert seen == ["l/asdf", "l/boo/", "l/cquux/", "l/foo"], seen


@check
def list_other_delimiter():
    for name in ["bar", "baz", "cab", "foo"]:
        put(f"d/{name}")
    answer = s3.list_objects_v2(Bucket=bucket, Prefix="d/", Delimiter="a")
    assert keys(answer) == ["d/foo"] and prefixes(answer) == ["d/ba", "d/ca"], (keys(answer), prefixes(answer))


@check
def list_prefix_without_slash():
    tree()
    assert keys(s3.list_objects_v2(Bucket=bucket, Prefix="l/b")) == ["l/boo/bar", "l/boo/baz/xyzzy"]
    assert prefixes(s3.list_objects_v2(Bucket=bucket, Prefix="l/b", Delimiter="/")) == ["l/boo/"]
    assert s3.list_objects_v2(Bucket=bucket, Prefix="l/nothing")["KeyCount"] == 0


@check
def list_pages_v2():
    wanted = tree()
    first = s3.list_objects_v2(Bucket=bucket, Prefix="l/", MaxKeys=4)
    assert keys(first) == wanted[:4] and first["IsTruncated"] and first["MaxKeys"] == 4
    second = s3.list_objects_v2(Bucket=bucket, Prefix="l/", ContinuationToken=first["NextContinuationToken"])
    assert keys(second) == wanted[4:] and second["ContinuationToken"] == first["NextContinuationToken"]


@check
def list_start_after():
    wanted = tree()
    answer = s3.list_objects_v2(Bucket=bucket, Prefix="l/", StartAfter="l/boo/bar")
    assert keys(answer) == wanted[2:] and answer["StartAfter"] == "l/boo/bar"
    assert keys(s3.list_objects_v2(Bucket=bucket, Prefix="l/", StartAfter="l/zzz")) == []


@check
def list_marker():
    wanted = tree()
    assert keys(s3.list_objects(Bucket=bucket, Prefix="l/", Marker="l/blah")) == wanted[1:]
    assert keys(s3.list_objects(Bucket=bucket, Prefix="l/", Marker="l/zzz")) == []


@check
def list_max_keys():
    tree()
    answer = s3.list_objects_v2(Bucket=bucket, Prefix="l/", MaxKeys=0)
    assert keys(answer) == [] and answer["IsTruncated"] is False
    status, _, data = raw("GET", presign("list_objects_v2") )
    assert status == 200
    refused("InvalidArgument", 400, s3.list_objects_v2, Bucket=bucket, MaxKeys=-5)


@check
def list_echoes_what_is_empty():
    answer = s3.list_objects(Bucket=bucket, Prefix="", Marker="", Delimiter="")
    assert answer["Prefix"] == "" and answer["Marker"] == "" and "Delimiter" not in answer
    assert s3.list_objects_v2(Bucket=bucket, Prefix="")["Prefix"] == ""


@check
def list_empty_token():
    tree()
    answer = s3.list_objects_v2(Bucket=bucket, Prefix="l/", ContinuationToken="")
    assert answer["ContinuationToken"] == "" and answer["IsTruncated"] is False and len(keys(answer)) == 6


@check
def list_encoding():
    names = ["e/a b", "e/a+b", "e/ä", "e/foo&bar"]
    for name in names:
        put(name)
    answer = s3.list_objects_v2(Bucket=bucket, Prefix="e/", EncodingType="url")
    assert answer["EncodingType"] == "url" and len(answer["Contents"]) == 4
    assert [urllib.parse.unquote_plus(key) for key in keys(answer)] == sorted(names), keys(answer)
    assert keys(s3.list_objects_v2(Bucket=bucket, Prefix="e/")) == sorted(names)


@check
def list_fetch_owner():
    tree()
    assert "Owner" in s3.list_objects_v2(Bucket=bucket, Prefix="l/", FetchOwner=True)["Contents"][0]
    assert "Owner" not in s3.list_objects_v2(Bucket=bucket, Prefix="l/")["Contents"][0]


@check
def listing_sees_writes():
    clean("w/")
    put("w/a")
    assert keys(s3.list_objects_v2(Bucket=bucket, Prefix="w/")) == ["w/a"]
    put("w/b")
    assert keys(s3.list_objects_v2(Bucket=bucket, Prefix="w/")) == ["w/a", "w/b"]
    s3.delete_object(Bucket=bucket, Key="w/a")
    assert keys(s3.list_objects_v2(Bucket=bucket, Prefix="w/")) == ["w/b"]


# Buckets

@check
def buckets():
    assert bucket in [entry["Name"] for entry in s3.list_buckets()["Buckets"]]
    assert s3.head_bucket(Bucket=bucket)["ResponseMetadata"]["HTTPStatusCode"] == 200
    assert s3.get_bucket_location(Bucket=bucket)["LocationConstraint"] in (None, "", "us-east-1")


@check
def bucket_versioning():
    assert s3.get_bucket_versioning(Bucket=bucket)["ResponseMetadata"]["HTTPStatusCode"] == 200


# Multipart uploads

def upload(key, sizes, **more):
    begun = s3.create_multipart_upload(Bucket=bucket, Key=key, **more)
    bodies, parts = [], []
    for number, size in enumerate(sizes, 1):
        bodies.append(bytes([number]) * size)
        answer = s3.upload_part(Bucket=bucket, Key=key, UploadId=begun["UploadId"], PartNumber=number, Body=bodies[-1])
        parts.append({"PartNumber": number, "ETag": answer["ETag"]})
    return begun["UploadId"], bodies, parts


def complete(key, upload_id, parts, **more):
    return s3.complete_multipart_upload(Bucket=bucket, Key=key, UploadId=upload_id, MultipartUpload={"Parts": parts}, **more)


@check
def multipart():
    upload_id, bodies, parts = upload("m/a", [5 * MiB, 5 * MiB, 1000], ContentType="x/y", Metadata={"a": "b"})
    refused("NoSuchKey", 404, s3.get_object, Bucket=bucket, Key="m/a")
    done = complete("m/a", upload_id, parts)
    assert done["Bucket"] == bucket and done["Key"] == "m/a" and done["ETag"].endswith('-3"'), done
    answer = get("m/a")
    assert answer["Data"] == b"".join(bodies) and answer["ETag"] == done["ETag"]
    assert answer["ContentType"] == "x/y" and answer["Metadata"] == {"a": "b"}


@check
def multipart_names():
    begun = s3.create_multipart_upload(Bucket=bucket, Key="m/names a+b")
    assert (begun["Bucket"], begun["Key"]) == (bucket, "m/names a+b"), begun
    parts = s3.list_parts(Bucket=bucket, Key="m/names a+b", UploadId=begun["UploadId"])
    assert (parts["Bucket"], parts["Key"], parts["UploadId"]) == (bucket, "m/names a+b", begun["UploadId"])
    uploads = s3.list_multipart_uploads(Bucket=bucket, Prefix="m/")
    assert [entry["UploadId"] for entry in uploads["Uploads"] if entry["Key"] == "m/names a+b"] == [begun["UploadId"]], uploads
    assert uploads["Prefix"] == "m/" and uploads["Bucket"] == bucket
    s3.abort_multipart_upload(Bucket=bucket, Key="m/names a+b", UploadId=begun["UploadId"])


@check
def multipart_names_with_returns():
    begun = s3.create_multipart_upload(Bucket=bucket, Key="m/return\rx")
    parts = s3.list_parts(Bucket=bucket, Key="m/return\rx", UploadId=begun["UploadId"])
    s3.abort_multipart_upload(Bucket=bucket, Key="m/return\rx", UploadId=begun["UploadId"])
    assert begun["Key"] == parts["Key"] == "m/return\rx", (begun, parts)


@check
def multipart_list_parts():
    upload_id, _, parts = upload("m/parts", [5 * MiB, 5 * MiB, 7])
    answer = s3.list_parts(Bucket=bucket, Key="m/parts", UploadId=upload_id)
    assert [(part["PartNumber"], part["ETag"], part["Size"]) for part in answer["Parts"]] == [
        (part["PartNumber"], part["ETag"], size) for part, size in zip(parts, [5 * MiB, 5 * MiB, 7])]
    page = s3.list_parts(Bucket=bucket, Key="m/parts", UploadId=upload_id, MaxParts=2)
    assert len(page["Parts"]) == 2 and page["IsTruncated"] and page["NextPartNumberMarker"] == 2
    s3.abort_multipart_upload(Bucket=bucket, Key="m/parts", UploadId=upload_id)


@check
def multipart_abort_leaves_nothing():
    upload_id, _, parts = upload("m/aborted", [5 * MiB])
    s3.abort_multipart_upload(Bucket=bucket, Key="m/aborted", UploadId=upload_id)
    refused("NoSuchUpload", 404, s3.list_parts, Bucket=bucket, Key="m/aborted", UploadId=upload_id)
    refused("NoSuchKey", 404, s3.get_object, Bucket=bucket, Key="m/aborted")
    uploads = s3.list_multipart_uploads(Bucket=bucket).get("Uploads", [])
    assert upload_id not in [entry["UploadId"] for entry in uploads]
    refused("NoSuchUpload", 404, complete, "m/aborted", upload_id, parts)


@check
def multipart_unknown_upload():
    refused("NoSuchUpload", 404, s3.abort_multipart_upload, Bucket=bucket, Key="m/x", UploadId="56788")
    refused("NoSuchUpload", 404, s3.upload_part, Bucket=bucket, Key="m/x", UploadId="56788", PartNumber=1, Body=b"x")


@check
def multipart_wrong_part():
    upload_id, _, parts = upload("m/wrong", [5 * MiB])
    refused("InvalidPart", 400, complete, "m/wrong", upload_id, [{"PartNumber": 1, "ETag": '"ffffffffffffffffffffffffffffffff"'}])
    refused("InvalidPart", 400, complete, "m/wrong", upload_id, [{"PartNumber": 9999, "ETag": parts[0]["ETag"]}])
    s3.abort_multipart_upload(Bucket=bucket, Key="m/wrong", UploadId=upload_id)


@check
def multipart_part_order():
    upload_id, _, parts = upload("m/order", [5 * MiB, 5 * MiB])
    refused("InvalidPartOrder", 400, complete, "m/order", upload_id, parts[::-1])
    s3.abort_multipart_upload(Bucket=bucket, Key="m/order", UploadId=upload_id)


@check
def multipart_small_part():
    upload_id, _, parts = upload("m/small", [10, 10])
    refused("EntityTooSmall", 400, complete, "m/small", upload_id, parts)
    s3.abort_multipart_upload(Bucket=bucket, Key="m/small", UploadId=upload_id)


@check
def multipart_no_parts():
    upload_id, _, _ = upload("m/none", [])
    refused("MalformedXML", 400, complete, "m/none", upload_id, [])
    s3.abort_multipart_upload(Bucket=bucket, Key="m/none", UploadId=upload_id)


@check
def multipart_overwrites():
    put("m/over", b"old")
    assert get("m/over")["Data"] == b"old"
    upload_id, bodies, parts = upload("m/over", [5 * MiB, 3])
    assert get("m/over")["Data"] == b"old"
    complete("m/over", upload_id, parts)
    assert get("m/over")["Data"] == b"".join(bodies)


@check
def get_part():
    upload_id, bodies, parts = upload("m/get", [5 * MiB, 6 * MiB, 100])
    complete("m/get", upload_id, parts)
    for number, body in enumerate(bodies, 1):
        answer = get("m/get", PartNumber=number)
        assert answer["Data"] == body and answer["ResponseMetadata"]["HTTPStatusCode"] == 206, len(answer["Data"])
        assert answer["PartsCount"] == 3
        assert s3.head_object(Bucket=bucket, Key="m/get", PartNumber=number)["ContentLength"] == len(body)


@check
def get_part_that_is_empty():
    upload_id, _, parts = upload("m/end", [5 * MiB, 0])
    complete("m/end", upload_id, parts)
    assert s3.head_object(Bucket=bucket, Key="m/end", PartNumber=2)["ContentLength"] == 0
    assert get("m/end", PartNumber=2)["Data"] == b""


@check
def get_part_past_the_last():
    upload_id, _, parts = upload("m/past", [5 * MiB, 100])
    complete("m/past", upload_id, parts)
    refused(("InvalidPart", "InvalidPartNumber", "InvalidRange"), 416, s3.get_object, Bucket=bucket, Key="m/past", PartNumber=5)


@check
def get_part_of_a_plain_object():
    put("m/plain", b"plain")
    assert get("m/plain", PartNumber=1)["Data"] == b"plain"


# Copies

@check
def copy():
    put("y/a", b"copied", ContentType="text/x", Metadata={"k": "v"})
    done = s3.copy_object(Bucket=bucket, Key="y/b c+d", CopySource={"Bucket": bucket, "Key": "y/a"})
    assert done["CopyObjectResult"]["ETag"] == s3.head_object(Bucket=bucket, Key="y/a")["ETag"]
    answer = get("y/b c+d")
    assert answer["Data"] == b"copied" and answer["ContentType"] == "text/x" and answer["Metadata"] == {"k": "v"}
    s3.copy_object(Bucket=bucket, Key="y/c", CopySource={"Bucket": bucket, "Key": "y/b c+d"})
    assert get("y/c")["Data"] == b"copied"


@check
def copy_overwrites():
    put("y/new", b"new")
    put("y/old", b"old")
    assert get("y/old")["Data"] == b"old"
    s3.copy_object(Bucket=bucket, Key="y/old", CopySource={"Bucket": bucket, "Key": "y/new"})
    assert get("y/old")["Data"] == b"new"


@check
def copy_replaces_metadata():
    put("y/meta", b"x", Metadata={"a": "1"})
    s3.copy_object(Bucket=bucket, Key="y/meta2", CopySource={"Bucket": bucket, "Key": "y/meta"}, MetadataDirective="REPLACE", Metadata={"b": "2"}, ContentType="a/b")
    answer = get("y/meta2")
    assert answer["Metadata"] == {"b": "2"} and answer["ContentType"] == "a/b"


@check
def copy_to_itself():
    put("y/self", b"x")
    refused("InvalidRequest", 400, s3.copy_object, Bucket=bucket, Key="y/self", CopySource={"Bucket": bucket, "Key": "y/self"})
    s3.copy_object(Bucket=bucket, Key="y/self", CopySource={"Bucket": bucket, "Key": "y/self"}, MetadataDirective="REPLACE", Metadata={"n": "1"})
    assert s3.head_object(Bucket=bucket, Key="y/self")["Metadata"] == {"n": "1"}


@check
def copy_missing():
    refused("NoSuchKey", 404, s3.copy_object, Bucket=bucket, Key="y/x", CopySource={"Bucket": bucket, "Key": "y/not-there"})
    refused("NoSuchBucket", 404, s3.copy_object, Bucket=bucket, Key="y/x", CopySource={"Bucket": "no-such-bucket-here", "Key": "a"})


@check
def copy_conditions():
    tag = put("y/cond", b"x")["ETag"]
    source = {"Bucket": bucket, "Key": "y/cond"}
    s3.copy_object(Bucket=bucket, Key="y/cond2", CopySource=source, CopySourceIfMatch=tag)
    refused("PreconditionFailed", 412, s3.copy_object, Bucket=bucket, Key="y/cond2", CopySource=source, CopySourceIfNoneMatch=tag)
    refused("PreconditionFailed", 412, s3.copy_object, Bucket=bucket, Key="y/cond2", CopySource=source, CopySourceIfMatch='"no"')


@check
def copy_part():
    body = bytes(range(256)) * 4096 * 6
    put("y/whole", body)
    begun = s3.create_multipart_upload(Bucket=bucket, Key="y/parts")
    one = s3.upload_part_copy(Bucket=bucket, Key="y/parts", UploadId=begun["UploadId"], PartNumber=1, CopySource={"Bucket": bucket, "Key": "y/whole"}, CopySourceRange=f"bytes=0-{5 * MiB - 1}")
    two = s3.upload_part_copy(Bucket=bucket, Key="y/parts", UploadId=begun["UploadId"], PartNumber=2, CopySource={"Bucket": bucket, "Key": "y/whole"}, CopySourceRange="bytes=10-19")
    complete("y/parts", begun["UploadId"], [{"PartNumber": n, "ETag": part["CopyPartResult"]["ETag"]} for n, part in enumerate([one, two], 1)])
    assert get("y/parts")["Data"] == body[:5 * MiB] + body[10:20]


# Tags

@check
def object_tags():
    put("t/a", b"x", Tagging="a=1&b=two")
    tags = s3.get_object_tagging(Bucket=bucket, Key="t/a")["TagSet"]
    assert sorted((tag["Key"], tag["Value"]) for tag in tags) == [("a", "1"), ("b", "two")]
    s3.put_object_tagging(Bucket=bucket, Key="t/a", Tagging={"TagSet": [{"Key": "c", "Value": "3"}]})
    assert s3.get_object_tagging(Bucket=bucket, Key="t/a")["TagSet"] == [{"Key": "c", "Value": "3"}]
    s3.delete_object_tagging(Bucket=bucket, Key="t/a")
    assert s3.get_object_tagging(Bucket=bucket, Key="t/a")["TagSet"] == []


@check
def object_attributes():
    tag = put("t/attr", b"12345")["ETag"]
    answer = s3.get_object_attributes(Bucket=bucket, Key="t/attr", ObjectAttributes=["ETag", "ObjectSize"])
    assert answer["ObjectSize"] == 5 and answer["ETag"] == tag.strip('"')


# Checksums

def crc32(body):
    return base64.b64encode(zlib.crc32(body).to_bytes(4, "big")).decode()


@check
def checksums_are_kept():
    for algorithm in ["CRC32", "SHA1", "SHA256"]:
        stored = put(f"k/{algorithm}", b"checked", ChecksumAlgorithm=algorithm)[f"Checksum{algorithm}"]
        head = s3.head_object(Bucket=bucket, Key=f"k/{algorithm}", ChecksumMode="ENABLED")
        assert head[f"Checksum{algorithm}"] == stored
        answer = get(f"k/{algorithm}", ChecksumMode="ENABLED")
        assert answer[f"Checksum{algorithm}"] == stored and answer["Data"] == b"checked"


@check
def checksum_only_when_asked():
    put("k/quiet", b"checked", ChecksumAlgorithm="CRC32")
    assert "ChecksumCRC32" not in s3.head_object(Bucket=bucket, Key="k/quiet")


@check
def checksum_of_what_is_empty():
    stored = put("k/empty", b"", ChecksumAlgorithm="CRC32")["ChecksumCRC32"]
    refused("InvalidRange", 416, s3.get_object, Bucket=bucket, Key="k/empty", Range="bytes=0-9")
    assert s3.head_object(Bucket=bucket, Key="k/empty", ChecksumMode="ENABLED")["ChecksumCRC32"] == stored


@check
def no_checksum_of_the_whole_with_a_part():
    put("k/part", b"0123456789" * 100, ChecksumAlgorithm="CRC32")
    answer = get("k/part", Range="bytes=0-9", ChecksumMode="ENABLED")
    assert answer["Data"] == b"0123456789" and "ChecksumCRC32" not in answer


@check
def wrong_checksum():
    refused(("BadDigest", "InvalidRequest"), 400, put, "k/wrong", b"body", ChecksumCRC32=crc32(b"another"))
    refused("NoSuchKey", 404, s3.get_object, Bucket=bucket, Key="k/wrong")


@check
def wrong_md5():
    refused("BadDigest", 400, put, "k/md5", b"body", ContentMD5=base64.b64encode(hashlib.md5(b"another").digest()).decode())
    refused("InvalidDigest", 400, put, "k/md5", b"body", ContentMD5="bad")


def chunked(body, trailer, size=8192):
    out = b""
    for at in range(0, len(body), size):
        piece = body[at:at + size]
        out += f"{len(piece):x}\r\n".encode() + piece + b"\r\n"
    return out + b"0\r\n" + trailer + b"\r\n"


def signed(method, key, headers, body):
    from botocore.auth import S3SigV4Auth
    from botocore.awsrequest import AWSRequest

    class Auth(S3SigV4Auth):
        def payload(self, request):
            return headers["x-amz-content-sha256"]

        def _should_sha256_sign_payload(self, request):
            return True

        def add_auth(self, request):
            super().add_auth(request)

    session = boto3.session.Session()
    url = f"{endpoint}/{bucket}/{key}"
    request = AWSRequest(method=method, url=url, headers=headers, data=body)
    Auth(session.get_credentials(), "s3", "us-east-1").add_auth(request)
    sent = dict(request.headers.items())
    return raw(method, url, body, sent)


@check
def trailing_checksum():
    body = b"trailing " * 5000
    headers = {"x-amz-content-sha256": "STREAMING-UNSIGNED-PAYLOAD-TRAILER", "content-encoding": "aws-chunked",
               "x-amz-decoded-content-length": str(len(body)), "x-amz-trailer": "x-amz-checksum-crc32"}
    status, _, text = signed("PUT", "k/trailer", headers, chunked(body, f"x-amz-checksum-crc32:{crc32(body)}\r\n".encode()))
    assert status == 200, (status, text)
    answer = get("k/trailer")
    assert answer["Data"] == body and answer.get("ContentEncoding", "") in ("", None), answer.get("ContentEncoding")
    assert s3.head_object(Bucket=bucket, Key="k/trailer", ChecksumMode="ENABLED")["ChecksumCRC32"] == crc32(body)


@check
def wrong_trailing_checksum():
    body = b"trailing " * 5000
    headers = {"x-amz-content-sha256": "STREAMING-UNSIGNED-PAYLOAD-TRAILER", "content-encoding": "aws-chunked",
               "x-amz-decoded-content-length": str(len(body)), "x-amz-trailer": "x-amz-checksum-crc32"}
    status, _, text = signed("PUT", "k/bad-trailer", headers, chunked(body, f"x-amz-checksum-crc32:{crc32(b'no')}\r\n".encode()))
    assert status == 400 and b"BadDigest" in text, (status, text)
    refused("NoSuchKey", 404, s3.get_object, Bucket=bucket, Key="k/bad-trailer")


@check
def chunked_without_length():
    headers = {"x-amz-content-sha256": "UNSIGNED-PAYLOAD", "transfer-encoding": "chunked"}
    url = presign("put_object", Key="k/lengthless")
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=30)
    connection.putrequest("PUT", parts.path + "?" + parts.query)
    connection.putheader("Transfer-Encoding", "chunked")
    connection.endheaders()
    connection.send(b"5\r\nhello\r\n0\r\n\r\n")
    answer = connection.getresponse()
    text = answer.read()
    assert answer.status == 411 and b"MissingContentLength" in text, (answer.status, text)


# Presigned URLs

@check
def presigned_get():
    put("p/a b", b"presigned")
    assert raw("GET", presign("get_object", Key="p/a b"))[::2] == (200, b"presigned")
    status, headers, data = raw("GET", presign("get_object", Key="p/a b"), headers={"Range": "bytes=3-5"})
    assert (status, data) == (206, b"sig")


@check
def presigned_put():
    assert raw("PUT", presign("put_object", Key="p/put"), b"by url")[0] == 200
    assert get("p/put")["Data"] == b"by url"


@check
def presigned_forgeries():
    put("p/secret", b"secret")
    url = presign("get_object", Key="p/secret")
    status, _, text = raw("GET", url[:-4] + "0000")
    assert status == 403 and b"SignatureDoesNotMatch" in text, (status, text)
    status, _, text = raw("GET", url.replace("p/secret", "p/other"))
    assert status == 403 and b"SignatureDoesNotMatch" in text
    status, _, text = raw("DELETE", url)
    assert status == 403


@check
def presigned_expired():
    import time
    put("p/late", b"late")
    url = presign("get_object", expires=1, Key="p/late")
    time.sleep(2.2)
    status, _, text = raw("GET", url)
    assert status == 403 and b"AccessDenied" in text, (status, text)


@check
def unsigned_is_refused():
    status, _, text = raw("GET", f"{endpoint}/{bucket}/p/a")
    assert status == 403 and b"AccessDenied" in text, (status, text)


@check
def unknown_key_is_refused():
    other = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", config=config, aws_access_key_id="NOBODY", aws_secret_access_key="x")
    refused("InvalidAccessKeyId", 403, other.list_objects_v2, Bucket=bucket)


@check
def wrong_secret_is_refused():
    session = boto3.session.Session().get_credentials()
    other = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", config=config, aws_access_key_id=session.access_key, aws_secret_access_key="wrong")
    refused("SignatureDoesNotMatch", 403, other.list_objects_v2, Bucket=bucket)


@check
def client_side_defaults():
    """The transfer manager of boto3: parts in parallel, checksums as it likes them."""
    import io
    body = bytes(range(251)) * 80000
    s3.upload_fileobj(io.BytesIO(body), bucket, "z/transfer")
    out = io.BytesIO()
    s3.download_fileobj(bucket, "z/transfer", out)
    assert out.getvalue() == body


for function in checks:
    try:
        function()
        print(f"pass {function.__name__}", flush=True)
    except Exception as error:  # noqa: BLE001
        where = traceback.extract_tb(error.__traceback__)[1].lineno if len(traceback.extract_tb(error.__traceback__)) > 1 else 0
        print(f"fail {function.__name__}: line {where}: {type(error).__name__} {str(error)[:300]!r}", flush=True)
