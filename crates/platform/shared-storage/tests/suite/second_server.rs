//! S3 again, against a server that others wrote: versitygw over a directory, or whatever is at
//! `FOREBAY_TEST_S3_ENDPOINT` with a bucket `lake` and the test keys.

use forebay_testing::SecondServer;
use forebay_types::ErrorKind;

use crate::conformance;
use crate::lab::{key, open, options, patient};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_server_agrees() {
    let named = std::env::var("FOREBAY_TEST_S3_ENDPOINT").ok();
    let server = named.is_none().then(|| SecondServer::start(&["lake"]));
    let endpoint = server.as_ref().map_or_else(|| named.unwrap_or_default(), |server| server.endpoint.clone());
    let run = std::process::id();
    let mount = |prefix: &str| open(&format!("s3://lake/{run}/{prefix}"), options(&endpoint), patient());
    conformance::objects_come_back_whole(&mount("whole")).await;
    conformance::ranges_are_exact(&mount("ranges")).await;
    conformance::empty_objects_are_objects(&mount("empty")).await;
    conformance::what_is_not_there_is_not_found(&mount("missing")).await;
    conformance::old_versions_conflict(&mount("versions")).await;
    conformance::writes_obey_conditions(&mount("conditions")).await;
    conformance::keys_are_byte_exact(&mount("a b+ä%")).await;
    conformance::dot_segments_are_refused(&mount("dots")).await;
    conformance::folders_are_listed_once(&mount("folders")).await;
    conformance::parts_become_an_object(&mount("parts")).await;
    conformance::uploads_can_be_given_up(&mount("uploads")).await;
    conformance::pages_of(&mount("pages"), 300).await;
    let elsewhere = open("s3://nowhere", options(&endpoint), patient());
    assert_eq!(elsewhere.check().await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(elsewhere.head(&key("x")).await.unwrap_err().kind(), ErrorKind::NotFound);
}
