use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use forebay_client::Client;
use forebay_sql::tpch::TPCH_TABLES;
use forebay_sql::{Engine, EngineSettings};
use forebay_testing::{ACCESS_KEY, SECRET_KEY};
use forebay_types::{Error, Result, ResultExt};
use object_store::aws::AmazonS3Builder;
use object_store::{ClientOptions, ObjectStore};
use url::Url;

use super::serve::BUCKET;
use super::stage::MOUNT;

/// An engine with the eight tables, over one of the places that their files are in.
pub(crate) struct Tpch(Engine);

impl Tpch {
    /// Straight from the S3 server.
    pub(crate) async fn direct(endpoint: &str) -> Result<Self> {
        let url = format!("s3://{BUCKET}");
        let parsed = Url::parse(&url).map_err(|error| Error::internal(error.to_string()))?;
        let engine = Engine::over_object_store(vec![(parsed, s3(endpoint)?)], EngineSettings::default());
        Self::with_tables(engine, &url).await
    }

    /// Through Forebay.
    pub(crate) async fn forebay(client: Client) -> Result<Self> {
        Self::with_tables(Engine::over_client(client, EngineSettings::default()), &format!("/{MOUNT}")).await
    }

    /// Over files of this machine.
    pub(crate) async fn local(folder: &Path) -> Result<Self> {
        let folder = std::path::absolute(folder).context(|| folder.display())?;
        let engine = Engine::over_object_store(Vec::new(), EngineSettings::default());
        Self::with_tables(engine, &format!("file://{}", folder.display())).await
    }

    async fn with_tables(engine: Engine, place: &str) -> Result<Self> {
        for table in TPCH_TABLES {
            let statement = format!("create view {table} as select * from '{place}/{table}/*.parquet'");
            engine.execute(&statement).await?.collect().await?;
        }
        Ok(Self(engine))
    }

    /// Runs a query to its last row.
    pub(crate) async fn run(&self, query: &str) -> Result<Vec<RecordBatch>> {
        self.0.execute(query).await?.collect().await
    }
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
