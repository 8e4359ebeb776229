use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use forebay_types::{Error, Result};
use object_store::ObjectStore;
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::local::LocalFileSystem;
use parking_lot::Mutex;
use url::{Position, Url};

use crate::paths::{Namespace, SCHEME};
use crate::stores::{Pinned, Seen};

/// Stores that are no mounts: made once, with the environment's credentials, and kept with their connections.
#[derive(Debug, Default)]
pub(crate) struct DirectStores(Mutex<HashMap<String, Arc<dyn ObjectStore>>>);

impl DirectStores {
    pub(crate) fn add(&self, url: &Url, store: Arc<dyn ObjectStore>) {
        self.0.lock().insert(key(url), store);
    }

    pub(crate) fn get(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        let mut stores = self.0.lock();
        if let Some(store) = stores.get(&key(url)) {
            return Ok(Arc::clone(store));
        }
        let store = open(url).map_err(|error| Error::invalid(format!("{}: {error}", key(url))))?;
        stores.insert(key(url), Arc::clone(&store));
        Ok(store)
    }
}

fn key(url: &Url) -> String {
    url[Position::BeforeScheme..Position::BeforePath].to_string()
}

fn open(url: &Url) -> object_store::Result<Arc<dyn ObjectStore>> {
    Ok(match url.scheme() {
        "file" => Arc::new(LocalFileSystem::new()),
        "s3" | "s3a" => {
            let plain = std::env::var("AWS_ENDPOINT_URL").is_ok_and(|endpoint| endpoint.starts_with("http://"));
            let builder = AmazonS3Builder::from_env().with_bucket_name(url.host_str().unwrap_or_default());
            Arc::new(if plain { builder.with_allow_http(true) } else { builder }.build()?)
        }
        "gs" => Arc::new(GoogleCloudStorageBuilder::from_env().with_url(url.as_str()).build()?),
        "az" => Arc::new(MicrosoftAzureBuilder::from_env().with_url(url.as_str()).build()?),
        other => {
            return Err(object_store::Error::NotSupported { source: format!("there is no store for {other}://").into() });
        }
    })
}

/// The names of one query: `/NAME/...` goes to one store, URLs to what they name.
pub(crate) struct QueryNamespace {
    /// Names, and the URL of shared storage that each covers, if it does.
    pub(crate) names: Vec<(String, Option<String>)>,
    /// The store whose paths are `NAME/KEY`.
    pub(crate) named: Arc<dyn ObjectStore>,
    /// All others.
    pub(crate) direct: Arc<DirectStores>,
    /// Pins what is read directly from shared storage; none for runs that are to be the engine alone.
    pub(crate) pins: Option<Arc<Seen>>,
}

impl fmt::Debug for QueryNamespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueryNamespace").field("names", &self.names).finish_non_exhaustive()
    }
}

impl Namespace for QueryNamespace {
    fn has(&self, name: &str) -> bool {
        self.names.iter().any(|(known, _)| known == name)
    }

    fn covers(&self, url: &str) -> Option<String> {
        let below = |(name, base): &(String, Option<String>)| {
            let base = base.as_deref()?.trim_end_matches('/');
            let rest = url.strip_prefix(base)?;
            (rest.is_empty() || rest.starts_with('/')).then(|| (base.len(), format!("/{name}{rest}")))
        };
        self.names.iter().filter_map(below).max_by_key(|(len, _)| *len).map(|(_, path)| path)
    }

    fn names(&self) -> Vec<String> {
        self.names.iter().map(|(name, _)| format!("/{name}")).collect()
    }

    fn store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        if url.scheme() == SCHEME {
            return Ok(Arc::clone(&self.named));
        }
        let store = self.direct.get(url)?;
        Ok(match &self.pins {
            Some(seen) if url.scheme() != "file" => Arc::new(Pinned::new(store, Arc::clone(seen))),
            _ => store,
        })
    }
}
