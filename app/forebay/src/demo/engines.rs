//! The engines that the demo compares: straight from S3, through Forebay, and over local files.

use std::path::Path;
use std::sync::Arc;

use forebay_client::Client;
use forebay_demo::{ACCESS_KEY, SECRET_KEY};
use forebay_sql::{Engine, EngineSettings};
use forebay_tpch::Tpch;
use forebay_types::{Error, Result, ResultExt};
use object_store::aws::AmazonS3Builder;
use object_store::{ClientOptions, ObjectStore};
use url::Url;

use super::serve::BUCKET;
use super::stage::MOUNT;

/// The tables straight from the S3 server.
pub(crate) async fn direct(endpoint: &str) -> Result<Tpch> {
    let url = format!("s3://{BUCKET}");
    let parsed = Url::parse(&url).map_err(|error| Error::internal(error.to_string()))?;
    Tpch::new(Engine::over_object_store(vec![(parsed, s3(endpoint)?)], EngineSettings::default()), &url).await
}

/// The tables through Forebay.
pub(crate) async fn forebay(client: Client) -> Result<Tpch> {
    Tpch::new(Engine::over_client(client, EngineSettings::default()), &format!("/{MOUNT}")).await
}

/// The tables as files of this machine.
pub(crate) async fn local(folder: &Path) -> Result<Tpch> {
    let folder = std::path::absolute(folder).context(|| folder.display())?;
    let place = format!("file://{}", folder.display());
    Tpch::new(Engine::over_object_store(Vec::new(), EngineSettings::default()), &place).await
}

/// The S3 server as any program would use it.
pub(crate) fn s3(endpoint: &str) -> Result<Arc<dyn ObjectStore>> {
    let store = AmazonS3Builder::new()
        .with_endpoint(endpoint)
        .with_region("us-east-1")
        .with_bucket_name(BUCKET)
        .with_access_key_id(ACCESS_KEY)
        .with_secret_access_key(SECRET_KEY)
        .with_client_options(ClientOptions::new().with_allow_http(true))
        .build();
    store.map(|store| Arc::new(store) as Arc<dyn ObjectStore>).map_err(|error| Error::internal(error.to_string()))
}
