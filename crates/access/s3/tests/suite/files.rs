//! The gateway over a folder: what S3 has and a file system has not is made here.

use std::collections::HashSet;

use futures::future::join_all;

use crate::rig::client::{Answer, begin, request};
use crate::rig::cluster::{Cluster, bytes, gateway_settings};

#[tokio::test(flavor = "multi_thread")]
async fn objects_are_files() {
    let (folder, cluster) = Cluster::over_files(gateway_settings()).await;
    let at = cluster.address();
    let body = bytes(1, 12_000_000);
    let put = request("PUT", "/nas/a/b%20c").body(body.clone()).send(at).await;
    assert_eq!(put.status, 200, "{}", put.text());
    assert!(std::fs::read(folder.path().join("a/b c")).unwrap() == body);
    let get = request("GET", "/nas/a/b%20c").header("range", "bytes=5-9").send(at).await;
    assert_eq!((get.status, get.body == body[5..10]), (206, true));
    assert_eq!(get.header("etag"), put.header("etag"));
    let twice = request("PUT", "/nas/a/b%20c").header("if-none-match", "*").body("x").send(at).await;
    assert_eq!(twice.code(), "PreconditionFailed");
    // Some clients tell by this that it is there already.
    assert!(twice.text().contains("<Condition>If-None-Match</Condition>"), "{}", twice.text());
    let other = request("PUT", "/nas/a/b%20c").header("if-match", "\"other\"").body("x").send(at).await;
    assert!(other.text().contains("<Condition>If-Match</Condition>"), "{}", other.text());
    let copied = request("PUT", "/nas/copy").header("x-amz-copy-source", "/nas/a/b%20c").send(at).await;
    assert_eq!(copied.status, 200, "{}", copied.text());
    assert!(std::fs::read(folder.path().join("copy")).unwrap() == body);
    let many = "<Delete><Object><Key>copy</Key></Object><Object><Key>none</Key></Object></Delete>";
    let deleted = request("POST", "/nas?delete").body(many).send(at).await.text();
    assert_eq!(deleted.matches("<Deleted>").count(), 2, "{deleted}");
    assert_eq!(request("DELETE", "/nas/a/b%20c").send(at).await.status, 204);
    assert_eq!(request("GET", "/nas/a/b%20c").send(at).await.code(), "NoSuchKey");
    assert_eq!(request("PUT", "/nas/short").hash(&"0".repeat(64)).body("abc").send(at).await.code(), "XAmzContentSHA256Mismatch");
    assert!(!folder.path().join("short").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_clients_take_for_granted() {
    let (_folder, cluster) = Cluster::over_files(gateway_settings()).await;
    let at = cluster.address();
    for bucket in ["nas", "tmp"] {
        let (one, none) = (format!("/{bucket}/one"), format!("/{bucket}/none"));
        let put = request("PUT", &one).body("x").send(at).await;
        assert_eq!(put.status, 200, "{one}: {}", put.text());
        // s3fs, and Dask by it, read a number there.
        let tag = put.header("etag").unwrap().trim_matches('"').to_string();
        assert!(u128::from_str_radix(tag.split('-').next().unwrap(), 16).is_ok(), "{one}: {tag}");
        let over = || request("PUT", &one).header("if-match", &tag).body("y");
        assert_eq!(over().send(at).await.status, 200, "{one}");
        assert_eq!(over().send(at).await.code(), "PreconditionFailed", "{one}");
        // AWS's CLI asks for tags before it copies in parts.
        let tags = request("GET", &format!("{one}?tagging")).send(at).await;
        assert_eq!((tags.status, tags.text().contains("<TagSet></TagSet>")), (200, true), "{one}: {}", tags.text());
        assert_eq!(request("GET", &format!("{none}?tagging")).send(at).await.code(), "NoSuchKey", "{none}");
        let tagged = request("PUT", &format!("{one}?tagging")).body("<Tagging><TagSet/></Tagging>").send(at).await;
        assert_eq!(tagged.code(), "NotImplemented", "{one}: {}", tagged.text());
        let attributes =
            |path: &str, names: &str| request("GET", &format!("{path}?attributes")).header("x-amz-object-attributes", names);
        let told = attributes(&one, "ETag, ObjectSize,ObjectParts").send(at).await;
        let now = request("HEAD", &one).send(at).await.header("etag").unwrap().trim_matches('"').to_string();
        let shown = format!("<ETag>{now}</ETag><ObjectSize>1</ObjectSize></GetObjectAttributesResponse>");
        assert!(told.status == 200 && told.text().ends_with(&shown), "{one}: {}", told.text());
        let class = attributes(&one, "StorageClass").send(at).await;
        assert!(class.text().contains("<StorageClass>STANDARD</StorageClass>") && class.header("last-modified").is_some());
        for (path, names, code) in
            [(&none, "ETag", "NoSuchKey"), (&one, "Colour", "InvalidArgument"), (&one, "", "InvalidArgument")]
        {
            assert_eq!(attributes(path, names).send(at).await.code(), code, "{path}: {names}");
        }
        for (path, code) in [(&one, "InvalidRange"), (&none, "NoSuchKey")] {
            let answer = request("GET", path).header("range", "bytes=-0").send(at).await;
            assert_eq!(answer.code(), code, "{path}: {}", answer.text());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn uploads_in_parts() {
    let (folder, cluster) = Cluster::over_files(gateway_settings()).await;
    let at = cluster.address();
    let id = begin(at, "/nas/m").await;
    let (first, second) = (bytes(1, 6 << 20), bytes(2, 1000));
    let mut tags = Vec::new();
    // The second before the first, which is sent twice.
    for (number, body) in [(2, &second), (1, &second), (1, &first)] {
        let put = request("PUT", &format!("/nas/m?partNumber={number}&uploadId={id}")).body(body.clone()).send(at).await;
        assert_eq!(put.status, 200, "{}", put.text());
        tags.push(put.header("etag").unwrap().to_string());
    }
    assert!(!folder.path().join("m").exists());
    let parts = request("GET", &format!("/nas/m?uploadId={id}")).send(at).await.text();
    assert_eq!(parts.matches("<Part>").count(), 2, "{parts}");
    assert!(request("GET", "/nas?uploads").send(at).await.text().contains(&id));
    let list = |tags: [&str; 2]| {
        let part = |(n, tag)| format!("<Part><PartNumber>{}</PartNumber><ETag>{tag}</ETag></Part>", n + 1);
        let parts: String = tags.into_iter().enumerate().map(part).collect();
        request("POST", &format!("/nas/m?uploadId={id}"))
            .body(format!("<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>"))
    };
    assert_eq!(list([&tags[1], &tags[0]]).send(at).await.code(), "InvalidPart");
    let done = list([&tags[2], &tags[0]]).send(at).await;
    assert_eq!(done.status, 200, "{}", done.text());
    assert!(std::fs::read(folder.path().join("m")).unwrap() == [first, second].concat());
    // Who asks again, as the answer was lost, is told the same; nothing is written for it.
    assert_eq!(request("PUT", "/nas/m").body("newer").send(at).await.status, 200);
    let again = list([&tags[2], &tags[0]]).send(at).await;
    assert_eq!((again.status, again.text()), (200, done.text()));
    assert_eq!(std::fs::read(folder.path().join("m")).unwrap(), b"newer");
    assert_eq!(list([&tags[0], &tags[2]]).send(at).await.code(), "NoSuchUpload", "these parts are of none");
    let id = begin(at, "/nas/gone").await;
    assert_eq!(request("DELETE", &format!("/nas/gone?uploadId={id}")).send(at).await.status, 204);
    assert!(!request("GET", "/nas?uploads").send(at).await.text().contains(&id));
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_that_wait_take_so_much_of_the_disk_and_no_more() {
    let mut settings = gateway_settings();
    settings.upload_disk_bytes_max = 3000;
    let (_folder, cluster) = Cluster::over_files(settings).await;
    let at = cluster.address();
    let part = |key: &str, number: u32, id: &str, length: usize| {
        request("PUT", &format!("{key}?partNumber={number}&uploadId={id}")).body(vec![7; length])
    };
    for key in ["/nas/m", "/tmp/m"] {
        let id = begin(at, key).await;
        assert_eq!(part(key, 1, &id, 2000).send(at).await.status, 200, "{key}");
        let other = begin(at, key).await;
        let refused = part(key, 1, &other, 1001).send(at).await;
        assert_eq!((refused.status, refused.code().as_str()), (503, "SlowDown"), "{key}: {}", refused.text());
        assert_eq!(request("DELETE", &format!("{key}?uploadId={other}")).send(at).await.status, 204);
        // Of one upload that is larger than all there is no part finds room, however often it comes.
        let refused = part(key, 2, &id, 1001).send(at).await;
        assert_eq!((refused.status, refused.code().as_str()), (400, "EntityTooLarge"), "{key}: {}", refused.text());
        // What S3 refuses of parts is refused as there, before any of it comes.
        let large = part(key, 2, &id, 0).header("content-length", "5368709121").send(at).await;
        assert_eq!((large.status, large.code().as_str()), (400, "EntityTooLarge"), "{key}: {}", large.text());
        assert_eq!(part(key, 10_001, &id, 1).send(at).await.code(), "InvalidArgument", "{key}");
        // Nothing stays of what is refused, early or late.
        let wrong = part(key, 2, &id, 1000).hash(&"0".repeat(64)).send(at).await;
        assert_eq!(wrong.code(), "XAmzContentSHA256Mismatch", "{key}");
        assert_eq!(part(key, 2, &id, 1000).send(at).await.status, 200, "{key}: the rest is free");
        assert_eq!(request("DELETE", &format!("{key}?uploadId={id}")).send(at).await.status, 204);
        for _ in 0..2 {
            let id = begin(at, key).await;
            let put = part(key, 1, &id, 3000).send(at).await;
            assert_eq!(put.status, 200, "{key}: all of it came back: {}", put.text());
            let list = format!(
                "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{}</ETag></Part></CompleteMultipartUpload>",
                put.header("etag").unwrap()
            );
            let done = request("POST", &format!("{key}?uploadId={id}")).body(list).send(at).await;
            assert_eq!(done.status, 200, "{key}: {}", done.text());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_many_complete_at_once_is_whole() {
    let (_folder, cluster) = Cluster::over_files(gateway_settings()).await;
    let at = cluster.address();
    let bodies = [bytes(1, (9 << 20) + 1), bytes(2, 5 << 20), bytes(3, 1000)];
    for key in ["/nas/m", "/tmp/m"] {
        let id = begin(at, key).await;
        let mut parts = String::new();
        for (number, body) in (1..).zip(&bodies) {
            let put = request("PUT", &format!("{key}?partNumber={number}&uploadId={id}")).body(body.clone()).send(at).await;
            let tag = put.header("etag").unwrap();
            parts.push_str(&format!("<Part><PartNumber>{number}</PartNumber><ETag>{tag}</ETag></Part>"));
        }
        let complete = || {
            let list = format!("<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>");
            request("POST", &format!("{key}?uploadId={id}")).body(list)
        };
        // What fails can be done again.
        let failed = complete().header("if-match", "\"00000000000000000000000000000001\"").send(at).await;
        assert_eq!(failed.code(), "NoSuchKey", "{key}: {}", failed.text());
        let answers = join_all((0..8).map(|_| complete().send(at))).await;
        for answer in &answers {
            let told = (answer.status, answer.code());
            let meanwhile = [(200, ""), (409, "OperationAborted"), (404, "NoSuchUpload")];
            assert!(meanwhile.contains(&(told.0, told.1.as_str())), "{key}: {}", answer.text());
        }
        // One of them made it; who came behind that one is told the same.
        let told: HashSet<String> = answers.iter().filter(|answer| answer.status == 200).map(Answer::text).collect();
        assert_eq!(told.len(), 1, "{key}: {told:?}");
        assert!(request("GET", key).send(at).await.body == bodies.concat(), "{key}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delete_with_a_condition_that_is_not_looked_at_deletes_nothing() {
    let (folder, cluster) = Cluster::over_files(gateway_settings()).await;
    let at = cluster.address();
    let tag = request("PUT", "/nas/a").body("a").send(at).await.header("etag").unwrap().to_string();
    let time = "Tue, 14 Nov 2023 22:13:20 GMT";
    for (name, value) in [
        ("if-match", tag.as_str()),
        ("if-match", "\"other\""),
        ("if-none-match", "*"),
        ("if-unmodified-since", time),
        ("x-amz-if-match-last-modified-time", time),
        ("x-amz-if-match-size", "1"),
    ] {
        let refused = request("DELETE", "/nas/a").header(name, value).send(at).await;
        assert_eq!((refused.status, refused.code().as_str()), (501, "NotImplemented"), "{name}: {value}");
    }
    assert_eq!(request("DELETE", "/nas/a?versionId=1").send(at).await.code(), "NotImplemented");
    for condition in [
        format!("<ETag>{tag}</ETag>"),
        "<ETag>*</ETag><Size>1</Size>".into(),
        "<VersionId>1</VersionId>".into(),
        format!("<LastModifiedTime>{time}</LastModifiedTime>"),
        "<Size>1</Size>".into(),
    ] {
        let many = format!("<Delete><Object><Key>a</Key>{condition}</Object><Object><Key>b</Key></Object></Delete>");
        let done = request("POST", "/nas?delete").body(many).send(at).await;
        assert_eq!(done.status, 200);
        let done = done.text();
        assert!(done.contains("<Error><Key>a</Key><Code>NotImplemented</Code>"), "{done}");
        assert!(done.contains("<Deleted><Key>b</Key></Deleted>"), "others are deleted: {done}");
    }
    assert!(folder.path().join("a").exists());
    for _ in 0..2 {
        assert_eq!(request("DELETE", "/nas/a").header("if-match", "*").send(at).await.status, 204);
        assert!(!folder.path().join("a").exists());
    }
    // Objects have one version, which clients that delete all of them name.
    for key in ["a", "b"] {
        request("PUT", &format!("/nas/{key}")).body("x").send(at).await;
    }
    assert_eq!(request("DELETE", "/nas/a?versionId=null").send(at).await.status, 204);
    let many = "<Delete><Object><Key>b</Key><VersionId>null</VersionId></Object></Delete>";
    assert!(request("POST", "/nas?delete").body(many).send(at).await.text().contains("<Deleted><Key>b</Key>"));
    assert!(!folder.path().join("a").exists() && !folder.path().join("b").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_client_says_of_a_body_is_checked() {
    let (folder, cluster) = Cluster::over_files(gateway_settings()).await;
    let at = cluster.address();
    let digests = [
        ("content-md5", "JfnnlDI7RTiF9RgfG2JNCw=="),
        ("x-amz-checksum-crc32", "y/Q5Jg=="),
        ("x-amz-checksum-crc32c", "4waSgw=="),
        ("x-amz-checksum-crc64nvme", "rosUhgp5mIg="),
        ("x-amz-checksum-sha1", "98O8HYCOBHMq32eZZczDTKeuNEE="),
        ("x-amz-checksum-sha256", "FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU="),
    ];
    for (name, value) in digests {
        let put = |body: &str| request("PUT", &format!("/nas/{name}")).header(name, value).body(body);
        let wrong = put("123456780").send(at).await;
        assert_eq!((wrong.status, wrong.code().as_str()), (400, "BadDigest"), "{name}");
        assert!(!folder.path().join(name).exists(), "{name}");
        assert_eq!(put("123456789").send(at).await.status, 200, "{name}");
        assert_eq!(std::fs::read(folder.path().join(name)).unwrap(), b"123456789");
    }
    let malformed = request("PUT", "/nas/x").header("content-md5", "AAAA").body("x").send(at).await;
    assert_eq!(malformed.code(), "InvalidDigest");
    let two = request("PUT", "/nas/x").header("x-amz-checksum-crc32", "y/Q5Jg==").header("x-amz-checksum-crc32c", "4waSgw==");
    assert_eq!(two.body("123456789").send(at).await.code(), "InvalidRequest");
    // Behind the body, as clients do that stream.
    let trailing = |data: &str, sum: &str| {
        let text = format!("{:x}\r\n{data}\r\n0\r\nx-amz-checksum-crc32:{sum}\r\n\r\n", data.len());
        let put = request("PUT", "/nas/trailing").hash("STREAMING-UNSIGNED-PAYLOAD-TRAILER").body(text);
        let put = put.header("x-amz-decoded-content-length", &data.len().to_string()).header("content-encoding", "aws-chunked");
        put.header("x-amz-trailer", "x-amz-checksum-crc32")
    };
    assert_eq!(trailing("123456780", "y/Q5Jg==").send(at).await.code(), "BadDigest");
    assert!(!folder.path().join("trailing").exists());
    let good = trailing("123456789", "y/Q5Jg==").send(at).await;
    assert_eq!((good.status, good.header("x-amz-checksum-crc32")), (200, Some("y/Q5Jg==")), "{}", good.text());
    // Parts, and lists of what to delete.
    let id = begin(at, "/nas/m").await;
    let part = request("PUT", &format!("/nas/m?partNumber=1&uploadId={id}")).header("x-amz-checksum-crc32", "y/Q5Jg==");
    assert_eq!(part.body("123456780").send(at).await.code(), "BadDigest");
    let many = "<Delete><Object><Key>trailing</Key></Object></Delete>";
    let delete = request("POST", "/nas?delete").header("content-md5", "JfnnlDI7RTiF9RgfG2JNCw==").body(many).send(at).await;
    assert_eq!(delete.code(), "BadDigest");
    assert!(folder.path().join("trailing").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_are_listed_behind_any_number() {
    let (_folder, cluster) = Cluster::over_files(gateway_settings()).await;
    let at = cluster.address();
    let id = begin(at, "/nas/m").await;
    for number in [1, 10_000] {
        let put = request("PUT", &format!("/nas/m?partNumber={number}&uploadId={id}")).body("x").send(at).await;
        assert_eq!(put.status, 200, "{}", put.text());
    }
    for (marker, count) in [("0", 2), ("1", 1), ("10000", 0), ("4294967295", 0), ("4294967296", 2)] {
        let parts = request("GET", &format!("/nas/m?uploadId={id}&part-number-marker={marker}")).send(at).await;
        assert_eq!((parts.status, parts.text().matches("<Part>").count()), (200, count), "{marker}: {}", parts.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_are_copied_too() {
    let (_folder, cluster) = Cluster::over_files(gateway_settings()).await;
    let at = cluster.address();
    let body = bytes(1, 11_000_000);
    for (from, to) in [("/nas/from", "/nas/to"), ("/nas/from", "/tmp/to"), ("/tmp/from", "/nas/again")] {
        assert_eq!(request("PUT", from).body(body.clone()).send(at).await.status, 200, "{from}");
        let begin = request("POST", &format!("{to}?uploads")).send(at).await.text();
        let id = begin.split_once("<UploadId>").unwrap().1.split_once('<').unwrap().0.to_string();
        let copy = |number: u32, range: &str| {
            let part = request("PUT", &format!("{to}?partNumber={number}&uploadId={id}")).header("x-amz-copy-source", from);
            if range.is_empty() { part } else { part.header("x-amz-copy-source-range", range) }
        };
        let mut parts = String::new();
        for (number, range) in [(1, "bytes=0-5999999"), (2, "bytes=5000000-10999999"), (3, "")] {
            let copied = copy(number, range).send(at).await;
            assert_eq!(copied.status, 200, "{from} {to}: {}", copied.text());
            let text = copied.text();
            assert!(text.contains("<CopyPartResult"), "{text}");
            let tag = text.split_once("<ETag>").unwrap().1.split_once('<').unwrap().0.to_string();
            parts.push_str(&format!("<Part><PartNumber>{number}</PartNumber><ETag>{tag}</ETag></Part>"));
        }
        for range in ["bytes=0-11000000", "bytes=5-", "bytes=-5", "bytes=5-2", "0-5"] {
            assert_eq!(copy(4, range).send(at).await.code(), "InvalidArgument", "{range}");
        }
        assert_eq!(copy(4, "").header("x-amz-copy-source-if-match", "\"other\"").send(at).await.code(), "PreconditionFailed");
        assert_eq!(copy(10_001, "").send(at).await.code(), "InvalidArgument");
        let list = format!("<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>");
        let done = request("POST", &format!("{to}?uploadId={id}")).body(list).send(at).await;
        assert_eq!(done.status, 200, "{from} {to}: {}", done.text());
        let whole = [&body[..6_000_000], &body[5_000_000..], &body[..]].concat();
        assert!(request("GET", to).send(at).await.body == whole, "{from} {to}");
        assert_eq!(copy(1, "").send(at).await.code(), "NoSuchUpload");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_mark_of_a_folder_is_taken_and_none_is_written() {
    let (folder, cluster) = Cluster::over_files(gateway_settings()).await;
    let at = cluster.address();
    let put = request("PUT", "/nas/a/b/").send(at).await;
    assert_eq!(put.status, 200, "{}", put.text());
    assert!(!folder.path().join("a").exists());
    assert_eq!(request("GET", "/nas/a/b/").send(at).await.code(), "NoSuchKey");
    assert_eq!(request("DELETE", "/nas/a/b/").send(at).await.status, 204);
    // What would be lost is refused.
    for (key, body) in [("/nas/a/b/", "x"), ("/nas/a//", ""), ("/nas//", "")] {
        assert_eq!(request("PUT", key).body(body).send(at).await.code(), "InvalidRequest", "{key}");
    }
    let damaged = request("PUT", "/nas/a/b/").header("x-amz-checksum-crc32", "y/Q5Jg==").send(at).await;
    assert_eq!(damaged.code(), "BadDigest");
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_have_one_version() {
    let (_folder, cluster) = Cluster::over_files(gateway_settings()).await;
    for bucket in ["nas", "tmp"] {
        let said = request("GET", &format!("/{bucket}?versioning")).send(cluster.address()).await;
        assert_eq!(said.status, 200, "{bucket}");
        assert!(said.text().contains("<VersioningConfiguration") && !said.text().contains("Status"), "{}", said.text());
        let from = format!("/{bucket}/from");
        assert_eq!(request("PUT", &from).body("x").send(cluster.address()).await.status, 200);
        for (version, status) in [("null", 200), ("1", 501), ("", 501)] {
            let copy =
                request("PUT", &format!("/{bucket}/to")).header("x-amz-copy-source", &format!("{from}?versionId={version}"));
            assert_eq!(copy.send(cluster.address()).await.status, status, "{bucket}: {version}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_would_not_be_kept_is_refused() {
    let (_folder, cluster) = Cluster::over_files(gateway_settings()).await;
    let at = cluster.address();
    for bucket in ["nas", "tmp"] {
        let key = format!("/{bucket}/secret");
        for (name, value) in
            [("x-amz-server-side-encryption-customer-algorithm", "AES256"), ("x-amz-object-lock-mode", "COMPLIANCE")]
        {
            for (method, path) in [("PUT", key.clone()), ("POST", format!("{key}?uploads"))] {
                let refused = request(method, &path).header(name, value).body("plain").send(at).await;
                assert_eq!((refused.status, refused.code().as_str()), (501, "NotImplemented"), "{method} {path}: {name}");
                assert!(refused.text().contains(name), "{}", refused.text());
            }
        }
        assert_eq!(request("GET", &key).send(at).await.code(), "NoSuchKey");
    }
}
