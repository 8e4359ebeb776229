//! A dataset, opened.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use forebay_client::{Client, DatasetId};
use forebay_shard::Schema;
use forebay_shard_store::{Columns, Dataset, manifest_key, manifest_number, manifest_tag};
use forebay_types::{Error, ErrorKind, ForebayPath, Key, ObjectInfo, Result, ResultExt};
use futures::TryStreamExt;
use parking_lot::Mutex;

use crate::choose::Workers;

/// How long a question may take, with all of its tries.
const WITHIN: Duration = Duration::from_secs(60);
/// Bytes of a manifest or of an object of a log at most, as workers have it: they are read whole.
const WHOLE_BYTES_MAX: u64 = 16 << 20;

/// A dataset of shards. Clones share what is known of the workers. It stays at the manifest that it was opened with: open it anew
/// to see a later one. Where the dataset has other shards by now, what is asked is answered by these all the same.
#[derive(Clone)]
pub struct Shards {
    pub(crate) client: Client,
    pub(crate) path: ForebayPath,
    pub(crate) id: DatasetId,
    pub(crate) dataset: Arc<Dataset>,
    pub(crate) schema: Arc<Schema>,
    pub(crate) workers: Arc<Mutex<Workers>>,
    pub(crate) within: Duration,
    /// The same with the shards that it has now, once this is known to have others no more.
    pub(crate) later: Arc<Mutex<Option<Arc<Shards>>>>,
}

impl Shards {
    /// Opens the dataset in a folder of a mount. `NotFound` when there is none.
    pub async fn open(client: &Client, path: &ForebayPath) -> Result<Self> {
        let number = latest_manifest(client, path).await?.ok_or_else(|| no_dataset(path))?;
        Self::open_at(client, path, number).await
    }

    async fn open_at(client: &Client, path: &ForebayPath, number: u64) -> Result<Self> {
        let mount = client.mount(path.mount()).await?;
        let (dataset, tag) = read_manifest(client, path, number).await?;
        let id = DatasetId { mount: mount.id, folder: path.key().clone(), manifest: number, tag };
        Ok(Self::at(client, path.clone(), id, dataset))
    }

    /// A dataset that was opened elsewhere, at the same manifest.
    pub fn at(client: &Client, path: ForebayPath, id: DatasetId, dataset: Dataset) -> Self {
        let schema = Arc::new(dataset.columns.schema());
        let (dataset, workers) = (Arc::new(dataset), Arc::default());
        Self { client: client.clone(), path, id, dataset, schema, workers, within: WITHIN, later: Arc::default() }
    }

    /// Which one it is, at which manifest.
    pub fn id(&self) -> &DatasetId {
        &self.id
    }

    /// The same with another time that a question may take; 60 s without it.
    pub fn with_patience(self, within: Duration) -> Self {
        // What is known of later shards has the patience of who found them.
        Self { within, later: Arc::default(), ..self }
    }

    /// Where it is.
    pub fn path(&self) -> &ForebayPath {
        &self.path
    }

    /// What asks it.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The manifest's number.
    pub fn manifest(&self) -> u64 {
        self.id.manifest
    }

    /// The columns of its records.
    pub fn columns(&self) -> &Columns {
        &self.dataset.columns
    }

    /// What it is made of.
    pub fn dataset(&self) -> &Dataset {
        &self.dataset
    }
}

/// Datasets that are kept open, and bytes of a manifest above which one is not.
const OPEN_MAX: usize = 16;
const KEPT_BYTES_MAX: u64 = 1 << 20;
/// How long a dataset is taken as it is without another look for a later manifest, by who may.
const LOOK_AFTER: Duration = Duration::from_secs(1);

/// Datasets that were opened. One whose last manifest is the same object as it was is not read again, and what is known of its workers stays.
#[derive(Default)]
pub struct OpenShards {
    /// The one that was asked for last is the last one.
    kept: Mutex<Vec<Kept>>,
}

struct Kept {
    /// Its last manifest, as it was listed.
    manifest: ObjectInfo,
    shards: Shards,
    /// When it was begun to look for that.
    looked: Instant,
}

impl OpenShards {
    /// Opens a dataset as [`Shards::open`] does, at the manifest that is the last one now.
    pub async fn open(&self, client: &Client, path: &ForebayPath) -> Result<Shards> {
        let looked = forebay_runtime::now();
        let (number, manifest) = last_manifest(client, path).await?.ok_or_else(|| no_dataset(path))?;
        if let Some(shards) = self.known(path, &manifest, looked) {
            return Ok(shards);
        }
        let shards = Shards::open_at(client, path, number).await?;
        if manifest.version.size <= KEPT_BYTES_MAX {
            self.keep(Kept { manifest, shards: shards.clone(), looked });
        }
        Ok(shards)
    }

    /// Opens a dataset at the manifest that was the last one a second ago or later: without a look into its folder where there was one since.
    /// What is asked of it is answered with all that was acknowledged before all the same, but where another dataset is in its place.
    pub async fn open_lately(&self, client: &Client, path: &ForebayPath) -> Result<Shards> {
        let now = forebay_runtime::now();
        let is_of_late = |kept: &Kept| kept.shards.path == *path && now.saturating_duration_since(kept.looked) < LOOK_AFTER;
        match self.taken(is_of_late, |_| {}) {
            Some(shards) => Ok(shards),
            None => self.open(client, path).await,
        }
    }

    fn known(&self, path: &ForebayPath, manifest: &ObjectInfo, looked: Instant) -> Option<Shards> {
        let is_it = |kept: &Kept| kept.manifest == *manifest && kept.shards.path == *path;
        self.taken(is_it, |kept| kept.looked = kept.looked.max(looked))
    }

    /// The one that is meant, which is the last one from now on.
    fn taken(&self, is_meant: impl Fn(&Kept) -> bool, change: impl FnOnce(&mut Kept)) -> Option<Shards> {
        let mut kept = self.kept.lock();
        let place = kept.iter().position(is_meant)?;
        let mut found = kept.remove(place);
        change(&mut found);
        let shards = found.shards.clone();
        kept.push(found);
        Some(shards)
    }

    fn keep(&self, opened: Kept) {
        let mut kept = self.kept.lock();
        let is_same = |other: &Kept| other.shards.path == opened.shards.path;
        // Who has looked later knows better.
        if kept.iter().any(|other| is_same(other) && other.looked > opened.looked) {
            return;
        }
        kept.retain(|other| !is_same(other));
        if kept.len() >= OPEN_MAX {
            kept.remove(0);
        }
        kept.push(opened);
        debug_assert!(kept.len() <= OPEN_MAX, "{} datasets are kept", kept.len());
    }
}

fn no_dataset(path: &ForebayPath) -> Error {
    Error::not_found(format!("{path}: there is no dataset of shards: make one with `forebay shard create {path}`"))
}

/// A manifest, with what names it by its bytes.
pub(crate) async fn read_manifest(client: &Client, path: &ForebayPath, number: u64) -> Result<(Dataset, u128)> {
    let file = below(path, &manifest_key(number))?;
    let info = client.open(&file).await?;
    let bytes = whole(client, &file, &info).await?;
    Ok((Dataset::decode(&bytes, &file.to_string())?, manifest_tag(&bytes)))
}

/// All bytes of a manifest, or of an object of a log. `Corrupt` where it is longer than any is: whoever may write there would fill this
/// process's memory.
pub(crate) async fn whole(client: &Client, at: &ForebayPath, info: &ObjectInfo) -> Result<Bytes> {
    let size = info.version.size;
    if size > WHOLE_BYTES_MAX {
        return Err(Error::corrupt(format!("{at}: of {size} bytes nothing of a dataset is: create it again")));
    }
    let bytes = client.read(client.operation(), &info.version, 0..size).await?;
    debug_assert_eq!(bytes.len() as u64, size, "exactly what was asked for");
    Ok(bytes)
}

/// The number of the last manifest in a folder, if it has any.
pub async fn latest_manifest(client: &Client, path: &ForebayPath) -> Result<Option<u64>> {
    Ok(last_manifest(client, path).await?.map(|(number, _)| number))
}

/// The same, with what the listing says of it.
async fn last_manifest(client: &Client, path: &ForebayPath) -> Result<Option<(u64, ObjectInfo)>> {
    let prefix = below(path, "manifest-")?;
    // Not those of a folder within that begins as they do.
    let folder_len = prefix.key().as_str().rfind('/').map_or(0, |slash| slash + 1);
    let mut last: Option<(u64, ObjectInfo)> = None;
    let later = |info: ObjectInfo| {
        let number = info.version.key.as_str().get(folder_len..).and_then(manifest_number);
        if let Some(number) = number.filter(|number| last.as_ref().is_none_or(|(last, _)| last < number)) {
            last = Some((number, info));
        }
        Ok(())
    };
    match each_below(client, &prefix, later).await {
        Err(error) if error.kind() == ErrorKind::NotFound => Err(error.context(path)),
        looked => looked.map(|()| last),
    }
}

/// Looks at all objects whose keys start with a path's key, as they are listed: however many there are, none is kept.
pub(crate) async fn each_below(
    client: &Client,
    below: &ForebayPath,
    mut each: impl FnMut(ObjectInfo) -> Result<()>,
) -> Result<()> {
    let mut pages = client.list(below, false).await?;
    while let Some(page) = pages.try_next().await? {
        page.objects.into_iter().try_for_each(&mut each)?;
    }
    Ok(())
}

/// An object below a dataset's folder.
pub(crate) fn below(path: &ForebayPath, name: &str) -> Result<ForebayPath> {
    let folder = path.key().as_str().trim_end_matches('/');
    if folder.is_empty() {
        return Err(Error::invalid(format!("{path}: a dataset is a folder of a mount, as /lake/orders.shards")));
    }
    let key = Key::new(format!("{folder}/{name}")).context(|| path.to_string())?;
    Ok(ForebayPath::new(path.mount().clone(), key))
}
