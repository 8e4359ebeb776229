//! One refresh of a dataset.

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use forebay_client::Client;
use forebay_shard::{Key, LeftKeys, SourceVersion, plan_sources};
use forebay_shard_store::{DatasetSource, GARBAGE_AFTER};
use forebay_types::{Error, ErrorKind, ForebayPath, ObjectInfo, Result, ResultExt, format_bytes};
use serde_json::{Value as Json, json};

use super::files::{CHANGES_AT_ONCE, ReadRecords, bring, ended_early, keys_of, puts_of};
use super::keys::{load_keys, store_keys};
use super::listing::objects_followed;
use super::sources::{Sources, doubt};
use super::state::Lease;
use crate::Shards;

/// Objects that are taken over together, at most, and their bytes, which this machine's disk has meanwhile; one alone may have more.
const TOGETHER: usize = 32;
const TOGETHER_BYTES: u64 = 1 << 30;
const OBJECT_BYTES_MAX: u64 = 4 << 30;
/// Keys of earlier versions that are in memory together, about; those of one object alone may be more.
const TOGETHER_KEYS: u64 = 4 << 20;
/// How often changes are tried whose workers have no room for them yet, and how long between.
const ATTEMPTS: usize = 5;
const PAUSE: Duration = Duration::from_secs(1);

/// What a refresh did.
#[derive(Clone, Debug, Default, PartialEq, schemars::JsonSchema, serde::Serialize)]
pub struct Refreshed {
    /// Objects that are followed.
    pub objects: u64,
    /// How many of them had come.
    pub added: u64,
    /// How many had another version.
    pub replaced: u64,
    /// Objects that had gone.
    pub gone: u64,
    /// Records that were written or deleted.
    pub changes: u64,
    /// Objects that could not be read, and why; what was read of them before stays.
    pub errors: Vec<String>,
}

/// An object that was brought.
struct Brought {
    file: PathBuf,
    source: DatasetSource,
}

struct Pass<'a> {
    client: &'a Client,
    shards: Shards,
    sources: Sources,
    lease: Lease,
    reader: Arc<dyn ReadRecords>,
    scratch: &'a Path,
    files: usize,
    done: Refreshed,
}

/// Has the dataset in a folder of a mount say what the objects say now that it follows. Objects are files in the folder `scratch` while
/// they are read, which takes up to 1 GiB, or as much as the largest of them. `Retry` while another process refreshes it. What is cut
/// short is made good by the next one.
pub async fn refresh(client: &Client, path: &ForebayPath, reader: Arc<dyn ReadRecords>, scratch: &Path) -> Result<Refreshed> {
    let nothing =
        || Error::invalid(format!("{path}: it follows no objects: `forebay shard create --refresh` makes one that does"));
    let shards = Shards::open(client, path).await?;
    if shards.dataset().following.is_none() {
        return Err(nothing());
    }
    let mut lease = Lease::take(client, path, following_of(&shards)).await?;
    // Whoever had it before may have written sources until then, and somebody a manifest.
    let opened = async {
        let shards = Shards::open(client, path).await?;
        let from = shards.dataset().following.as_ref().ok_or_else(nothing)?.from.clone();
        let sources = Sources::read(&shards).await?;
        Ok::<_, Error>((shards, from, sources))
    };
    let (shards, from, sources) = match opened.await {
        Ok(opened) => opened,
        Err(error) => {
            lease.end(&[error.message().to_string()], None).await?;
            return Err(error);
        }
    };
    lease.turn_to(following_of(&shards));
    let mut pass = Pass { client, shards, sources, lease, reader, scratch, files: 0, done: Refreshed::default() };
    let result = pass.run(&from).await;
    let Pass { lease, done, .. } = pass;
    match result {
        Ok(()) => lease.end(&done.errors, Some((done.objects, done.changes))).await?,
        Err(error) => {
            if let Err(unsaid) = lease.end(&[error.message().to_string()], None).await {
                tracing::debug!(%path, %unsaid, "it is not said how the refresh ended");
            }
            return Err(error);
        }
    }
    Ok(done)
}

impl Pass<'_> {
    async fn run(&mut self, from: &[String]) -> Result<()> {
        let mount = self.shards.path().mount().clone();
        let path_of = |object: &ObjectInfo| ForebayPath::new(mount.clone(), object.version.key.clone()).to_string();
        let listing = objects_followed(self.client, self.shards.path(), from).await?;
        let listing: Vec<(String, ObjectInfo)> = listing.into_iter().map(|object| (path_of(&object), object)).collect();
        let version = |(path, object): &(String, ObjectInfo)| SourceVersion {
            path: path.clone(),
            tag: object.version.tag.as_str().to_string(),
        };
        let versions: Vec<SourceVersion> = listing.iter().map(version).collect();
        let known = |source: &DatasetSource| SourceVersion { path: source.path.clone(), tag: source.tag.clone() };
        let known: Vec<SourceVersion> = self.sources.all.iter().map(known).collect();
        let changes = plan_sources(&versions, &known);
        self.done.objects = listing.len() as u64;
        (self.done.added, self.done.replaced) = (changes.added.len() as u64, changes.replaced.len() as u64);
        self.done.gone = changes.gone.len() as u64;
        debug_assert!(self.done.added + self.done.replaced <= self.done.objects, "only what is there is taken over");
        let wanted: HashSet<&str> = changes.added.iter().chain(&changes.replaced).copied().collect();
        let mut gone: VecDeque<String> = changes.gone.iter().map(|path| path.to_string()).collect();
        let mut held: HashMap<String, u64> = HashMap::new();
        for source in &self.sources.all {
            let held = held.entry(source.path.clone()).or_default();
            *held = held.saturating_add(source.records);
        }
        let now: HashMap<String, ObjectInfo> = listing.iter().cloned().collect();
        let mut waiting: VecDeque<(String, ObjectInfo)> =
            listing.into_iter().filter(|(path, _)| wanted.contains(path.as_str())).collect();
        while !waiting.is_empty() {
            let some = take_some(&mut waiting, |(path, object)| (object.version.size, held.get(path).copied().unwrap_or(0)));
            self.take_over(&now, some, Vec::new()).await?;
        }
        // Last, so that records which are in another object by now are not away meanwhile.
        while !gone.is_empty() {
            let some = take_some(&mut gone, |path| (0, held.get(path).copied().unwrap_or(0)));
            self.take_over(&now, Vec::new(), some).await?;
        }
        Ok(())
    }

    /// Reads some objects and lets go of some that are gone. Which these are is said first, so that whoever comes after a sudden end knows
    /// what may have been written, and what was deleted.
    async fn take_over(
        &mut self,
        now: &HashMap<String, ObjectInfo>,
        objects: Vec<(String, ObjectInfo)>,
        gone: Vec<String>,
    ) -> Result<()> {
        let began = forebay_runtime::now();
        let mut brought = Vec::new();
        for (path, object) in objects {
            self.lease.renew().await?;
            let tag = object.version.tag.as_str().to_string();
            let refused = self.lease.refused(&path, &tag).map(str::to_string);
            let fetched = if let Some(why) = refused { Err(Error::invalid(why)) } else { self.fetch(&path, &object).await };
            match fetched {
                Ok((file, keys)) => {
                    let named = self.sources.all.iter().filter(|source| source.path == path);
                    let named: Vec<&str> = named.map(|source| source.keys.as_str()).collect();
                    let records = keys.len() as u64;
                    let keys = store_keys(self.client, self.shards.path(), &keys, &named).await?;
                    let bytes = object.version.size;
                    brought.push(Brought { file, source: DatasetSource { path, tag, bytes, records, keys } });
                }
                Err(error) => self.done.errors.push(format!("{path}: {}", error.message())),
            }
        }
        self.lease.renew().await?;
        let goes: HashSet<String> = gone.into_iter().chain(brought.iter().map(|one| one.source.path.clone())).collect();
        if goes.is_empty() {
            return Ok(());
        }
        let read: Vec<DatasetSource> = brought.iter().map(|one| one.source.clone()).collect();
        let before = self.sources.all.clone();
        let mut begun = before.clone();
        doubt(&mut begun, &goes, &read);
        // What is not named for long is garbage, which workers delete.
        if began.elapsed() > GARBAGE_AFTER / 2 {
            return Err(Error::retry(format!("{}: bringing objects took too long", self.shards.path())));
        }
        self.say(begun).await?;
        let written = self.write(now, &before, &goes, &brought).await;
        let mut after: Vec<DatasetSource> = before.into_iter().filter(|source| !goes.contains(&source.path)).collect();
        after.extend(read);
        let ended = match written {
            Ok(()) => self.say(after).await,
            failed => failed,
        };
        let Err(error) = ended else { return Ok(()) };
        if let Err(unsaid) = self.doubt_again(&goes, &brought).await {
            tracing::warn!(path = %self.shards.path(), error = %unsaid, "it is not said that records of objects are doubtful");
        }
        Err(error)
    }

    /// Whoever took this one for gone meanwhile knows nothing of what was written since: his sources say then that it is doubtful.
    async fn doubt_again(&mut self, goes: &HashSet<String>, brought: &[Brought]) -> Result<()> {
        if !self.sources.are_others().await? {
            return Ok(());
        }
        let mut read = Vec::new();
        for Brought { source, .. } in brought {
            // Nobody may have named the object with the keys for long: it is garbage, if it is there still.
            let Ok(keys) = self.keys(source).await else { continue };
            let keys = store_keys(self.client, self.shards.path(), &keys, &[]).await?;
            read.push(DatasetSource { keys, ..source.clone() });
        }
        self.sources.doubt(goes, &read).await
    }

    /// Says what the sources are. `Conflict` where another process has refreshed it meanwhile.
    async fn say(&mut self, next: Vec<DatasetSource>) -> Result<()> {
        let what = || format!("{}: what it follows is not said", self.shards.path());
        self.sources.write(next).await.context(what)
    }

    /// Writes the records of what was brought, those of other objects that count from now on, and deletes those that no object has any more.
    async fn write(
        &mut self,
        now: &HashMap<String, ObjectInfo>,
        before: &[DatasetSource],
        goes: &HashSet<String>,
        brought: &[Brought],
    ) -> Result<()> {
        debug_assert!(
            brought.iter().all(|one| goes.contains(&one.source.path)),
            "what is brought takes the place of what was there"
        );
        let mut left = LeftKeys::default();
        for (place, source) in before.iter().enumerate() {
            if goes.contains(&source.path) {
                self.lease.renew().await?;
                left.leave(place, self.keys(source).await?);
            }
        }
        if !left.is_empty() {
            for one in brought {
                self.lease.renew().await?;
                left.come(&self.keys(&one.source).await?);
            }
        }
        for one in brought {
            self.put((&one.source.path, &one.file), None).await.map(drop)?;
        }
        for (place, source) in before.iter().enumerate().rev() {
            if left.is_empty() {
                break;
            }
            if goes.contains(&source.path) {
                continue;
            }
            self.lease.renew().await?;
            let again = left.stay(place, &self.keys(source).await?);
            // One that has changed too has its own turn.
            let object = now.get(&source.path).filter(|object| object.version.tag.as_str() == source.tag);
            if let (Some(object), false) = (object, again.is_empty()) {
                let file = self.file(object);
                bring(self.client, &mut self.lease, object, &file).await?;
                if let Some(error) = self.put((&source.path, &file), Some(again)).await? {
                    self.done.errors.push(format!(
                        "{}: what it has stays as another object had it: {}",
                        source.path,
                        error.message()
                    ));
                }
            }
        }
        let columns = self.shards.columns();
        let deleted: Vec<Json> = left.into_deleted().iter().map(|key| json!({ "delete": columns.key_json(key) })).collect();
        for changes in deleted.chunks(CHANGES_AT_ONCE) {
            self.change(changes).await?;
        }
        Ok(())
    }

    /// Brings an object, with the keys of its records. What can't be read is remembered.
    async fn fetch(&mut self, path: &str, object: &ObjectInfo) -> Result<(PathBuf, Vec<Key>)> {
        let version = &object.version;
        if version.size > OBJECT_BYTES_MAX {
            return Err(Error::invalid(format!(
                "it has more than {}: cut it into smaller objects",
                format_bytes(OBJECT_BYTES_MAX)
            )));
        }
        self.reader.check_name(version.key.as_str())?;
        let file = self.file(object);
        let keys = match bring(self.client, &mut self.lease, object, &file).await {
            Ok(()) => self.lease.during(keys_of(&self.reader, (path, &file), self.shards.columns())).await?,
            Err(error) => {
                remove(&file)?;
                return Err(error);
            }
        };
        if let Err(error) = &keys {
            remove(&file)?;
            if [ErrorKind::Invalid, ErrorKind::Corrupt].contains(&error.kind()) {
                self.lease.refuse(path, version.tag.as_str(), error.message());
            }
        }
        Ok((file, keys?))
    }

    /// A file that an object is brought to: its ending says the format.
    fn file(&mut self, object: &ObjectInfo) -> PathBuf {
        self.files += 1;
        let name = object.version.key.as_str().rsplit('/').next().unwrap_or_default();
        // Names may be longer than those of files.
        let from = name.char_indices().map(|(at, _)| at).find(|at| name.len() - at <= 100).unwrap_or(name.len());
        self.scratch.join(format!("{:06}-{}", self.files, &name[from..]))
    }

    async fn keys(&self, source: &DatasetSource) -> Result<Vec<Key>> {
        load_keys(self.client, self.shards.path(), self.shards.columns(), source).await
    }

    /// Writes the records of the object at a path, of all keys or of some, and removes its file. Of some: why one can't be written.
    async fn put(&mut self, (path, file): (&str, &Path), only: Option<Vec<Key>>) -> Result<Option<Error>> {
        let (mut puts, reading) = puts_of(&self.reader, (path, file.to_path_buf()), self.shards.columns(), only);
        while let Some(changes) = self.lease.during(puts.recv()).await? {
            self.change(&changes).await?;
        }
        let left_out = reading.await.map_err(ended_early)??;
        std::fs::remove_file(file).context(|| file.display())?;
        Ok(left_out)
    }

    async fn change(&mut self, changes: &[Json]) -> Result<()> {
        let mut attempt = 1;
        loop {
            self.lease.renew().await?;
            match self.shards.change(changes).await {
                Ok(_) => break,
                // Workers compress meanwhile what they have.
                Err(error) if error.kind() == ErrorKind::Retry && attempt < ATTEMPTS => {
                    tracing::debug!(path = %self.shards.path(), %error, "records of an object wait");
                    forebay_runtime::time::sleep(PAUSE).await;
                }
                Err(error) => return Err(error),
            }
            attempt += 1;
        }
        self.done.changes += changes.len() as u64;
        Ok(())
    }
}

/// What its sources are kept under.
fn following_of(shards: &Shards) -> &str {
    shards.dataset().following.as_ref().map_or("", |following| &following.name)
}

/// Removes a file that an object was brought to, if it is there.
fn remove(file: &Path) -> Result<()> {
    match std::fs::remove_file(file) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error).context(|| file.display()),
        _ => Ok(()),
    }
}

/// The first of what waits, as much as is taken over together: of each `measure` says the bytes, and the keys of its earlier versions.
fn take_some<T>(waiting: &mut VecDeque<T>, measure: impl Fn(&T) -> (u64, u64)) -> Vec<T> {
    let mut some = Vec::new();
    let (mut bytes, mut keys) = (0u64, 0u64);
    while let Some(first) = waiting.front() {
        let (more_bytes, more_keys) = measure(first);
        (bytes, keys) = (bytes.saturating_add(more_bytes), keys.saturating_add(more_keys));
        let is_much = some.len() >= TOGETHER || bytes > TOGETHER_BYTES || keys > TOGETHER_KEYS;
        if is_much && !some.is_empty() {
            break;
        }
        some.extend(waiting.pop_front());
    }
    debug_assert!(!some.is_empty() || waiting.is_empty(), "all of it is taken over in the end");
    some
}
