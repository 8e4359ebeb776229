//! Which store answers for a path of a query: that of the mounts, a bucket read directly, or files of this machine.

use std::collections::HashMap;
use std::sync::Arc;

use forebay_client::Client;
use forebay_shards::OpenShards;
use forebay_types::{Error, ErrorKind, Mount, MountName, Result, names_link_local};
use object_store::ObjectStore;
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::local::LocalFileSystem;
use parking_lot::Mutex;
use url::Url;

use crate::location::{Namespace, Place, SCHEME, scheme_of, store_name};
use crate::reach::{LocalFiles, Reach};
use crate::stores::{Rooted, Routes, Seen};

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
    format!("{}://{}", scheme_of(url.scheme()), url.host_str().unwrap_or_default())
}

fn open(url: &Url) -> object_store::Result<Arc<dyn ObjectStore>> {
    Ok(match scheme_of(url.scheme()).as_str() {
        "file" => Arc::new(LocalFileSystem::new()),
        "s3" => {
            let endpoint = std::env::var("AWS_ENDPOINT_URL").unwrap_or_default();
            let authority = endpoint.split_once("://").and_then(|(_, rest)| rest.split('/').next());
            if authority.is_some_and(names_link_local) {
                let source = format!("AWS_ENDPOINT_URL {endpoint} is a link-local address, where no storage is").into();
                return Err(object_store::Error::NotSupported { source });
            }
            let plain = endpoint.starts_with("http://");
            let builder = AmazonS3Builder::from_env().with_bucket_name(url.host_str().unwrap_or_default());
            Arc::new(if plain { builder.with_allow_http(true) } else { builder }.build()?)
        }
        "gs" => Arc::new(GoogleCloudStorageBuilder::from_env().with_url(key(url)).build()?),
        "az" => Arc::new(MicrosoftAzureBuilder::from_env().with_url(key(url)).build()?),
        other => {
            return Err(object_store::Error::NotSupported { source: format!("there is no store for {other}://").into() });
        }
    })
}

/// A name that paths begin with.
#[derive(Debug)]
pub(crate) struct Named {
    pub(crate) name: String,
    /// The URL of shared storage that it covers, if it does.
    pub(crate) url: Option<String>,
    pub(crate) read_only: bool,
}

impl Named {
    pub(crate) fn of(mount: &Mount) -> Self {
        Self { name: mount.name.to_string(), url: Some(mount.url.clone()), read_only: mount.options.read_only }
    }
}

/// The names of one query: `/NAME/...` goes to one store, URLs to what they name.
pub(crate) struct QueryNamespace {
    pub(crate) names: Vec<Named>,
    /// The store whose paths are `NAME/KEY`.
    pub(crate) named: Arc<dyn ObjectStore>,
    /// All others.
    pub(crate) direct: Arc<DirectStores>,
    /// Which of them statements may name.
    pub(crate) reach: Reach,
    /// Pins what is read directly from shared storage; none for runs that are to be the engine alone.
    pub(crate) pins: Option<Arc<Seen>>,
    /// Who asks datasets of shards, and has temporary data; none without a cluster.
    pub(crate) client: Option<Client>,
    /// Datasets that are open.
    pub(crate) datasets: Arc<OpenShards>,
}

forebay_types::shown!(QueryNamespace: names);

impl Namespace for QueryNamespace {
    fn has(&self, name: &str) -> bool {
        let is_temporary = name == MountName::temporary().as_str();
        self.names.iter().any(|known| known.name == name) || (is_temporary && self.reach.temporary && self.client.is_some())
    }

    fn covers(&self, url: &str) -> Option<String> {
        let place = Place::of(url)?;
        let below = |named: &Named| {
            let base = Place::of_mount(named.url.as_deref()?)?;
            Some(((base.depth(), named.read_only), format!("/{}/{}", named.name, base.rest(&place)?)))
        };
        // The nearest one. Of several of one place a URL says which is meant no more than it says that it may be written.
        self.names.iter().filter_map(below).max_by_key(|(nearest, _)| *nearest).map(|(_, path)| path)
    }

    fn names(&self) -> Vec<String> {
        self.names.iter().map(|named| format!("/{}", named.name)).collect()
    }

    fn local_files(&self) -> &LocalFiles {
        &self.reach.local_files
    }

    fn check(&self, url: &Url) -> Result<()> {
        if url.scheme() == "file" {
            return self.reach.local_files.check_any();
        }
        if url.scheme() == SCHEME || self.reach.direct_stores {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Denied,
            format!(
                "{0} is below no mount, and SQL reaches mounts only here: add one with `forebay mount add NAME {0}`, or set \
                 `direct-stores = true` where this server is started",
                key(url)
            ),
        ))
    }

    fn client(&self) -> Option<&Client> {
        self.client.as_ref()
    }

    fn datasets(&self) -> &OpenShards {
        &self.datasets
    }

    fn store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        if url.scheme() == SCHEME {
            return Ok(Arc::clone(&self.named));
        }
        self.check(url)?;
        let is_file = url.scheme() == "file";
        let store = self.direct.get(url)?;
        let store = match &self.reach.local_files {
            LocalFiles::Below(_) if is_file => Arc::new(Rooted::new(store, self.reach.local_files.clone())),
            _ => store,
        };
        let name = store_name(&scheme_of(url.scheme()), url.host_str().unwrap_or_default());
        Ok(Arc::new(Routes::of(&name, store, self.pins.clone().filter(|_| !is_file))))
    }
}

#[cfg(test)]
mod tests {
    use datafusion::execution::object_store::ObjectStoreRegistry;
    use object_store::ObjectStoreExt;
    use object_store::memory::InMemory;
    use object_store::path::Path;

    use super::*;
    use crate::stores::QueryStores;

    fn url(text: &str) -> Url {
        text.parse().unwrap()
    }

    #[test]
    fn a_url_below_several_mounts_goes_by_the_nearest_and_of_one_place_by_the_read_only_one() {
        let named = |(name, url, read_only): &(&str, &str, bool)| Named {
            name: name.to_string(),
            url: Some(url.to_string()),
            read_only: *read_only,
        };
        let mut mounts = [
            ("kept", "s3://b/lake", true),
            ("lake", "s3a://b/lake/", false),
            ("scratch", "s3://b/lake/scratch", false),
            ("all", "s3://b", false),
            ("raw", "s3://b/raw", true),
        ];
        for _ in 0..mounts.len() {
            mounts.rotate_left(1);
            let names = mounts.iter().map(named).collect();
            let (named, direct, datasets) = (Arc::new(InMemory::new()), Arc::default(), Arc::default());
            let reach = Reach::of_mounts();
            let namespace = QueryNamespace { names, named, direct, reach, pins: None, client: None, datasets };
            for (url, path) in [
                ("s3://b/lake/x", "/kept/x"),
                ("s3a://B/lake/", "/kept/"),
                ("s3://b/lake/scratch/x", "/scratch/x"),
                ("s3://b/raw/x", "/raw/x"),
                ("s3://b/x", "/all/x"),
            ] {
                assert_eq!(namespace.covers(url).as_deref(), Some(path), "{url} below {:?}", namespace.names);
            }
        }
    }

    #[tokio::test]
    async fn writing_a_key_of_one_bucket_keeps_the_version_that_is_read_of_another() {
        let (one, two) = (Arc::new(InMemory::new()), Arc::new(InMemory::new()));
        let (direct, seen) = (DirectStores::default(), Arc::new(Seen::default()));
        direct.add(&url("s3://one"), Arc::clone(&one) as _);
        direct.add(&url("s3a://two"), Arc::clone(&two) as _);
        let named = Arc::new(InMemory::new());
        let (direct, reach, pins) = (Arc::new(direct), Reach::of_process(), Some(Arc::clone(&seen)));
        let datasets = Arc::default();
        let namespace = QueryNamespace { names: Vec::new(), named, direct, reach, pins, client: None, datasets };
        let stores = QueryStores::new(Arc::new(namespace), Arc::clone(&seen));
        one.put(&Path::from("k"), "old".into()).await.unwrap();

        let source = stores.get_store(&url("s3://one/")).unwrap();
        let path = Path::from("s3:one/k");
        assert_eq!(source.head(&path).await.unwrap().location, path);
        stores.get_store(&url("s3://two/")).unwrap().put(&Path::from("s3:two/k"), "other".into()).await.unwrap();
        assert_eq!(two.get(&Path::from("k")).await.unwrap().bytes().await.unwrap(), "other");
        assert_eq!(source.get(&path).await.unwrap().bytes().await.unwrap(), "old");
        one.put(&Path::from("k"), "new".into()).await.unwrap();
        let error = source.get(&path).await.unwrap_err();
        assert!(matches!(error, object_store::Error::Precondition { .. }), "{error}");
        let parts = source.get_ranges(&path, &[0..1, 2..3]).await;
        assert!(matches!(parts, Err(object_store::Error::Precondition { .. })), "{parts:?}");
    }
}
