//! Mounts that are a part of a bucket: nothing of the rest is shown or changed through them, whatever the store makes of a
//! request. The store here answers everything with a listing of all of its bucket, as stores do that don't know a sub-resource.

use crate::rig::client::request;
use crate::rig::cluster::{Cluster, gateway_settings};
use crate::rig::parrot::Parrot;

const ALL: &str =
    "<?xml version=\"1.0\"?><ListBucketResult><Name>whole</Name><Contents><Key>secret/a</Key></Contents></ListBucketResult>";
/// The same as answers to what it does know, of keys that are none of the mount's.
const UPLOADS: &str = "<?xml version=\"1.0\"?><ListMultipartUploadsResult><Upload><Key>secret/a</Key><UploadId>secret</UploadId></Upload></ListMultipartUploadsResult>";

async fn over(store: &Parrot) -> Cluster {
    let mut settings = gateway_settings();
    settings.bucket_configuration = true;
    let mut cluster = Cluster::start().await;
    cluster.mount("lake", "s3://whole", &store.endpoint, |_| {}).await;
    cluster.mount("part", "s3://whole/part/", &store.endpoint, |_| {}).await;
    cluster.serve(settings).await;
    // What workers ask for a new mount.
    store.heard();
    cluster
}

const OF_BUCKETS: &str = "abac accelerate acl analytics&id=a cors encryption intelligent-tiering&id=a inventory lifecycle \
    logging metadataConfiguration metadataTable metrics notification object-lock ownershipControls policy policyStatus \
    publicAccessBlock replication requestPayment tagging uploads versioning versions website \
    uploads&prefix=secret&key-marker=secret";
const OF_OBJECTS: [&str; 9] =
    ["acl", "attributes", "legal-hold", "retention", "tagging", "torrent", "uploadId=u", "acl&versionId=v", "select"];

#[tokio::test(flavor = "multi_thread")]
async fn what_a_store_does_not_know_never_becomes_a_listing_of_its_bucket() {
    for says in [ALL, UPLOADS] {
        let store = Parrot::start(says).await;
        let cluster = over(&store).await;
        let at = cluster.address();
        for bucket in ["lake", "part"] {
            let paths = OF_BUCKETS.split(' ').map(|sub| format!("/{bucket}?{sub}"));
            for path in paths.chain(OF_OBJECTS.iter().map(|sub| format!("/{bucket}/a?{sub}"))) {
                let answer = request("GET", &path).send(at).await;
                // Uploads of a mount that is all of the bucket are its own.
                if says == UPLOADS && (bucket == "lake" || !path.contains("upload")) {
                    continue;
                }
                let told = format!("{path}: {} {}", answer.head, answer.text());
                assert!((400..=501).contains(&answer.status) && !answer.text().contains("secret"), "{told}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_configuration_of_a_bucket_is_not_asked_for_by_a_part_of_it() {
    let store = Parrot::start(ALL).await;
    let cluster = over(&store).await;
    for sub in OF_BUCKETS.split(' ').filter(|sub| !sub.starts_with("uploads") && !sub.starts_with("version")) {
        let answer = request("GET", &format!("/part?{sub}")).send(cluster.address()).await;
        assert_eq!((answer.status, answer.code().as_str()), (403, "AccessDenied"), "{sub}");
    }
    assert_eq!(store.heard(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_hears_only_what_is_meant_for_it() {
    let store = Parrot::start("<Tagging/>").await;
    let cluster = over(&store).await;
    let at = cluster.address();
    let strange = |method, path: &str| {
        let headers = ["x-amz-unheard-of", "x-amz-copy-source-of-all", "x-amz-website", "x-other"];
        headers.into_iter().fold(request(method, path), |request, name| request.header(name, "/whole/secret"))
    };
    for (method, path) in [
        ("GET", "/part?uploads&list-type=2&prefix=x&unheard-of=1&versionId=v"),
        ("GET", "/part?versions&prefix=&max-keys=3"),
        ("GET", "/part/a?tagging&versionId=v&prefix=secret&unheard-of=1"),
        ("PUT", "/part/a?acl&unheard-of=1"),
        ("PUT", "/part/a?unheard-of=1&x-id=PutObject"),
        ("POST", "/part/a?uploads&unheard-of=1"),
        ("DELETE", "/part/a?versionId=v&unheard-of=1"),
    ] {
        strange(method, path).send(at).await;
        let heard = store.heard();
        assert_eq!(heard.len(), 1, "{method} {path}");
        let head = &heard[0];
        let target = head.split(' ').nth(1).unwrap();
        assert!(target.starts_with("/whole/part/") || target.contains("prefix=part%2f"), "{path}: {target}");
        for absent in ["unheard-of", "x-amz-copy-source", "x-amz-website", "x-other", "list-type", "prefix=secret"] {
            assert!(!head.contains(absent), "{method} {path}: {head}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn other_objects_are_not_reached_by_a_header() {
    let store = Parrot::start("<Tagging/>").await;
    let mut settings = gateway_settings();
    let mine = |name: &str| vec![name.parse().unwrap()];
    settings.keys.push(forebay_s3::AccessRule::new("MINE", "s").only(mine("part")));
    let mut cluster = over(&store).await;
    cluster.serve(settings).await;
    for (path, name, value, code) in [
        ("/part/a?renameObject", "x-amz-rename-source", "/secret/a", "NotImplemented"),
        ("/part/a", "x-amz-rename-source", "/secret/a", "NotImplemented"),
        ("/part/a", "x-amz-write-offset-bytes", "3", "NotImplemented"),
        ("/part/a", "x-amz-copy-source", "/lake/secret/a", "AccessDenied"),
        ("/part/a", "x-amz-copy-source", "/part/../secret/a", "InvalidURI"),
        ("/part/a", "x-amz-copy-source", "/part/%2e%2e/secret/a", "InvalidURI"),
        ("/part/a", "x-amz-copy-source", "arn:aws:s3:us-east-1:1:accesspoint/x/object/secret", "AccessDenied"),
        ("/part/a?acl", "x-amz-copy-source", "/lake/secret/a", ""),
    ] {
        let mut put = request("PUT", path).header(name, value);
        (put.id, put.secret) = ("MINE".into(), "s".into());
        let answer = put.send(cluster.address()).await;
        assert_eq!(answer.code(), code, "{path} {name}: {value}: {}", answer.text());
        assert!(store.heard().iter().all(|head| !head.contains("secret")), "{path} {name}: {value}");
    }
}
