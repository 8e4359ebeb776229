//! Buckets that clients make: each is a mount.

use forebay_s3::{AccessRule, NewBuckets};
use forebay_testing::SecondServer;

use crate::rig::client::{Answer, Signed, request};
use crate::rig::cluster::{Cluster, gateway_settings};

fn is(answer: &Answer, status: u16, code: &str) {
    assert_eq!((answer.status, answer.code().as_str()), (status, code), "{}", answer.text());
}

/// A gateway that makes buckets at `url`.
async fn makes_at(url: &str, endpoint: Option<&str>) -> Cluster {
    let mut settings = gateway_settings();
    settings.new_buckets = Some(NewBuckets { url: url.into(), endpoint: endpoint.map(Into::into) });
    settings.bucket_configuration = true;
    settings.keys.push(AccessRule::new("READER", "s").read_only());
    settings.keys.push(AccessRule::new("LIMITED", "s").only(vec!["mine-only".parse().unwrap()]));
    let mut cluster = Cluster::start().await;
    cluster.serve(settings).await;
    cluster
}

async fn a_bucket_s_life(cluster: &Cluster) {
    let at = cluster.address();
    let by = |id: &str, mut request: Signed| {
        (request.id, request.secret) = (id.into(), "s".into());
        request
    };
    is(&request("HEAD", "/fresh-one").send(at).await, 404, "");
    for id in ["READER", "LIMITED"] {
        is(&by(id, request("PUT", "/fresh-one")).send(at).await, 403, "AccessDenied");
        is(&by(id, request("PUT", "/mine-only")).send(at).await, 403, "AccessDenied");
    }
    for (name, body, code) in [
        ("Bad_Name", "", "InvalidBucketName"),
        (
            "fresh-one",
            "<CreateBucketConfiguration><LocationConstraint>mars</LocationConstraint></CreateBucketConfiguration>",
            "InvalidLocationConstraint",
        ),
        ("fresh-one", "<Other/>", "MalformedXML"),
    ] {
        is(&request("PUT", &format!("/{name}")).body(body).send(at).await, 400, code);
    }
    let made = request("PUT", "/fresh-one").send(at).await;
    assert_eq!((made.status, made.header("location")), (200, Some("/fresh-one")), "{}", made.text());
    is(&request("PUT", "/fresh-one").send(at).await, 409, "BucketAlreadyOwnedByYou");
    assert_eq!(request("HEAD", "/fresh-one").send(at).await.status, 200);
    assert!(request("GET", "/").send(at).await.text().contains("<Name>fresh-one</Name>"));
    assert_eq!(request("PUT", "/fresh-one/a/b").body("x").send(at).await.status, 200);
    assert_eq!(request("GET", "/fresh-one/a/b").send(at).await.body, b"x");
    is(&request("DELETE", "/fresh-one").send(at).await, 409, "BucketNotEmpty");
    assert_eq!(request("DELETE", "/fresh-one/a/b").send(at).await.status, 204);
    is(&by("READER", request("DELETE", "/fresh-one")).send(at).await, 403, "AccessDenied");
    assert_eq!(request("DELETE", "/fresh-one").send(at).await.status, 204);
    is(&request("GET", "/fresh-one").send(at).await, 404, "NoSuchBucket");
    is(&request("DELETE", "/fresh-one").send(at).await, 404, "NoSuchBucket");
    // The same name is another bucket afterwards.
    assert_eq!(request("PUT", "/fresh-one").send(at).await.status, 200);
    is(&request("GET", "/fresh-one/a/b").send(at).await, 404, "NoSuchKey");
}

#[tokio::test(flavor = "multi_thread")]
async fn buckets_of_the_store() {
    let store = SecondServer::start(&["elsewhere"]);
    let cluster = makes_at("s3://", Some(&store.endpoint)).await;
    a_bucket_s_life(&cluster).await;
    let at = cluster.address();
    // What is there already is somebody else's.
    is(&request("PUT", "/elsewhere").send(at).await, 409, "BucketAlreadyExists");
    let tags = "<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>";
    let tag = |path: &str| request("PUT", path).header("content-md5", "jqzPL3CP1xqTN8blcrX3gg==").body(tags);
    let tagged = tag("/fresh-one?tagging").send(at).await;
    assert!(tagged.status < 300, "{}", tagged.text());
    assert!(request("GET", "/fresh-one?tagging").send(at).await.text().contains("<Value>b</Value>"));
    // A mount that was not made here is not removed here, and one that is a part of a bucket does not configure all of it.
    cluster.mount("part", "s3://elsewhere/part/", &store.endpoint, |_| {}).await;
    is(&request("DELETE", "/part").send(at).await, 403, "AccessDenied");
    is(&tag("/part?tagging").send(at).await, 403, "AccessDenied");
}

#[tokio::test(flavor = "multi_thread")]
async fn folders() {
    let folder = tempfile::tempdir().unwrap();
    let cluster = makes_at(&format!("file://{}", folder.path().display()), None).await;
    a_bucket_s_life(&cluster).await;
    assert!(folder.path().join("fresh-one").is_dir());
    assert_eq!(request("DELETE", "/fresh-one").send(cluster.address()).await.status, 204);
    assert!(!folder.path().join("fresh-one").exists());
    // What lies in a data folder is not shown, and stays.
    assert_eq!(request("PUT", "/fresh-two").send(cluster.address()).await.status, 200);
    let data = folder.path().join("fresh-two/data");
    std::fs::create_dir_all(data.join("spill")).unwrap();
    std::fs::write(data.join("owner.secret"), "hush").unwrap();
    assert_eq!(request("DELETE", "/fresh-two").send(cluster.address()).await.status, 204);
    assert!(data.join("spill").is_dir());
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_place_buckets_are_not_made() {
    let (cluster, s3) = Cluster::over_s3(|_| {}, gateway_settings()).await;
    s3.reset_counters();
    is(&request("PUT", "/fresh-one").send(cluster.address()).await, 403, "AccessDenied");
    is(&request("DELETE", "/lake").send(cluster.address()).await, 403, "AccessDenied");
    is(&request("PUT", "/lake?versioning").body("<VersioningConfiguration/>").send(cluster.address()).await, 403, "AccessDenied");
    assert_eq!(s3.counters().requests(), 0);
}
