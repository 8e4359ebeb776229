//! The store that DataFusion reads through.

use futures::TryStreamExt;
use object_store::aws::AmazonS3Builder;
use object_store::path::Path;
use object_store::{GetOptions, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, WriteMultipart};

use crate::rig::cluster::{Cluster, ID, SECRET, bytes, gateway_settings};

#[tokio::test(flavor = "multi_thread")]
async fn datafusion_s_object_store() {
    let (cluster, _s3) = Cluster::over_s3(|_| {}, gateway_settings()).await;
    let builder = AmazonS3Builder::new().with_endpoint(cluster.endpoint()).with_allow_http(true).with_bucket_name("lake");
    let store = builder.with_access_key_id(ID).with_secret_access_key(SECRET).with_region("us-east-1").build().unwrap();
    let at = |text: &str| Path::from(text);
    let body = bytes(4, 3_000_000);
    store.put(&at("df/a b.parquet"), PutPayload::from(body.clone())).await.unwrap();
    let ranges = store.get_ranges(&at("df/a b.parquet"), &[0..10, 1_000_000..1_000_100, 2_999_990..3_000_000]).await.unwrap();
    assert!(ranges[1] == body[1_000_000..1_000_100] && ranges[2] == body[2_999_990..]);
    let meta = store.head(&at("df/a b.parquet")).await.unwrap();
    assert_eq!(meta.size, 3_000_000);
    let same = GetOptions { if_match: meta.e_tag.clone(), ..GetOptions::default() };
    assert!(store.get_opts(&at("df/a b.parquet"), same).await.unwrap().bytes().await.unwrap() == body);
    let other = GetOptions { if_match: Some("\"other\"".into()), ..GetOptions::default() };
    let refused = store.get_opts(&at("df/a b.parquet"), other).await;
    assert!(matches!(refused, Err(object_store::Error::Precondition { .. })));
    let once = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
    let refused = store.put_opts(&at("df/a b.parquet"), PutPayload::from_static(b"x"), once).await;
    assert!(matches!(refused, Err(object_store::Error::AlreadyExists { .. })));
    let mut upload = WriteMultipart::new(store.put_multipart(&at("df/large")).await.unwrap());
    let large = bytes(5, 14 << 20);
    upload.write(&large);
    upload.finish().await.unwrap();
    assert!(store.get(&at("df/large")).await.unwrap().bytes().await.unwrap() == large);
    store.copy(&at("df/large"), &at("df/copy")).await.unwrap();
    let listed: Vec<_> = store.list(Some(&at("df"))).map_ok(|meta| meta.location.to_string()).try_collect().await.unwrap();
    assert_eq!(listed, ["df/a b.parquet", "df/copy", "df/large"]);
    let locations = futures::stream::iter(listed).map(|text: String| Ok(Path::from(text)));
    use futures::StreamExt;
    let deleted: Vec<_> = store.delete_stream(locations.boxed()).try_collect().await.unwrap();
    assert_eq!(deleted.len(), 3);
}
