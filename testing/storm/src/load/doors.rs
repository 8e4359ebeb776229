//! The ways in, and what errors of S3 are called.

use std::io::{self, Error};
use std::sync::Arc;
use std::time::Duration;

use forebay_demo::{ACCESS_KEY, S3Server, SECRET_KEY};
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::{ClientOptions, RetryConfig};

use crate::cluster::{BUCKET, Cluster, GATEWAY_KEY};
use forebay_oracle::history::Failure;
use forebay_oracle::load::cut;

/// How long an S3 client waits.
const S3_DEADLINE: Duration = Duration::from_secs(40);

/// A client that asks once: what it is told is what is taken down.
pub(super) fn s3(endpoint: &str, bucket: &str, (id, secret): (&str, &str)) -> io::Result<Arc<AmazonS3>> {
    let options = ClientOptions::new().with_timeout(S3_DEADLINE).with_allow_http(true);
    let builder = AmazonS3Builder::new().with_endpoint(endpoint).with_bucket_name(bucket).with_region("us-east-1");
    let builder = builder.with_access_key_id(id).with_secret_access_key(secret).with_client_options(options);
    let once = RetryConfig { max_retries: 0, retry_timeout: S3_DEADLINE, ..RetryConfig::default() };
    builder.with_retry(once).build().map(Arc::new).map_err(Error::other)
}

/// A mount by the gateway.
pub(super) fn gateway(cluster: &Cluster, mount: &str) -> io::Result<Arc<AmazonS3>> {
    s3(&format!("http://{}", cluster.s3), mount, GATEWAY_KEY)
}

/// The store itself, past Forebay.
pub(super) fn store(store: &S3Server) -> io::Result<Arc<AmazonS3>> {
    s3(&store.endpoint(), BUCKET, (ACCESS_KEY, SECRET_KEY))
}

/// An error of an S3 client: by the answer's status where there was one.
pub(super) fn of_s3(error: &object_store::Error) -> Failure {
    let message = error.to_string();
    let kind = match error {
        object_store::Error::NotFound { .. } => "not found".to_owned(),
        object_store::Error::Precondition { .. } => "conflict".to_owned(),
        _ => status_in(&message).unwrap_or_else(|| "connection".to_owned()),
    };
    Failure { no_effect: kind == "conflict", kind, message: cut(&message) }
}

fn status_in(message: &str) -> Option<String> {
    let rest = message.split_once("status code: ")?.1;
    let status: String = rest.chars().take_while(char::is_ascii_digit).collect();
    (status.len() == 3).then_some(status)
}
