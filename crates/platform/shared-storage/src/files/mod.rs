//! A directory, NFS among them. Keys are paths below it, byte for byte; nothing outside is ever reached.

mod apart;
mod folder;
mod fresh;
mod list;
mod name;
mod read;
mod upload;
mod write;

use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use forebay_types::{Attributes, Error, Key, Mount, MountId, MountName, ObjectInfo, Result, VersionTag};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;

use crate::backend::{Backend, Opened, Parts};
use crate::bandwidth::Limiter;
use crate::counters::{Tally, count, count_by};
use crate::request::{Get, ListPage, PutCondition};

/// A folder as shared storage. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Files(Arc<Inner>);

pub(crate) struct Inner {
    mount: MountId,
    name: MountName,
    folder: PathBuf,
    apart: apart::Apart,
    limiter: Arc<Limiter>,
    tally: Arc<Tally>,
    /// How long a call may wait for the file system.
    patience: Duration,
    /// Each call that waits for the file system has one, also when nobody waits for the call any more: a server that hangs takes
    /// no more of the process's threads.
    places: Arc<Semaphore>,
    /// What copies much into the kernel has one of these as well, so that threads which answer others get their turn.
    copies: Arc<Semaphore>,
    /// Large writes that have ended: as long as some do, the others wait their turn.
    copied: AtomicU64,
    /// What dead writers left was looked for.
    is_swept: AtomicBool,
    /// How files below an open folder are asked for anew.
    asking: fn(BorrowedFd<'_>) -> Option<fresh::Ask>,
}

/// Calls of one mount that wait for the file system at a time.
const PLACES: usize = 64;
/// A write of so many bytes is a large one.
const LARGE_BYTES: u64 = 1 << 20;

/// Large writes of one mount at a time: one a core, and so many in any case, as they wait for disks and servers too.
fn copies() -> usize {
    const LEAST: usize = 2;
    std::thread::available_parallelism().map_or(LEAST, |cores| cores.get().max(LEAST))
}

impl Files {
    pub(crate) fn new(mount: &Mount, folder: PathBuf, patience: Duration, limiter: &Arc<Limiter>, tally: &Arc<Tally>) -> Self {
        let (limiter, tally) = (Arc::clone(limiter), Arc::clone(tally));
        let (places, copies) = (Arc::new(Semaphore::new(PLACES)), Arc::new(Semaphore::new(copies())));
        let (mount, name, is_swept) = (mount.id, mount.name.clone(), AtomicBool::new(false));
        Self(Arc::new(Inner {
            mount,
            name,
            folder,
            apart: apart::Apart::default(),
            limiter,
            tally,
            patience,
            places,
            copies,
            copied: AtomicU64::new(0),
            is_swept,
            asking: fresh::asking,
        }))
    }

    /// Runs what may wait for a disk or a server aside. `Retry` when that takes too long; the call may end later all the same.
    async fn aside<T: Send + 'static>(&self, work: impl FnOnce(&Inner) -> Result<T> + Send + 'static) -> Result<T> {
        self.aside_within(self.0.patience, work).await
    }

    async fn aside_within<T: Send + 'static>(
        &self,
        within: Duration,
        work: impl FnOnce(&Inner) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let done = self.begin(work).await?;
        forebay_runtime::time::timeout(within, done).await.map_err(|_| self.hangs())?.map_err(broken_off)?
    }

    /// The same for what changes an object: who asks hears how it ended, however long it takes, as others are told of it then.
    async fn aside_to_its_end<T: Send + 'static>(&self, work: impl FnOnce(&Inner) -> Result<T> + Send + 'static) -> Result<T> {
        self.begin(work).await?.await.map_err(broken_off)?
    }

    /// The same for what writes so many bytes.
    async fn aside_writing<T: Send + 'static>(
        &self,
        bytes: u64,
        work: impl FnOnce(&Inner) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        if bytes < LARGE_BYTES {
            return self.aside_to_its_end(work).await;
        }
        let (copy, place) = (self.turn_to_copy().await?, self.place_among(&self.0.places).await?);
        let files = Arc::clone(&self.0);
        // Behind those who want little: what is small is answered in less time than this takes the core for.
        let written = forebay_runtime::run_behind(move || {
            let _turn = (copy, place);
            let done = work(&files);
            files.copied.fetch_add(1, Relaxed);
            done
        });
        written.await.ok_or_else(|| Error::internal("a file operation was broken off"))?
    }

    /// The turn of a large write, `Retry` when none ends for too long.
    async fn turn_to_copy(&self) -> Result<OwnedSemaphorePermit> {
        let mut turn = std::pin::pin!(Arc::clone(&self.0.copies).acquire_owned());
        loop {
            let before = self.0.copied.load(Relaxed);
            match forebay_runtime::time::timeout(self.0.patience, &mut turn).await {
                Ok(turn) => return turn.map_err(|_| Error::closed("the mount is closed")),
                Err(_) if self.0.copied.load(Relaxed) == before => return Err(self.hangs()),
                Err(_) => {}
            }
        }
    }

    /// A place, `Retry` when none is free for too long.
    async fn place_among(&self, places: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit> {
        let place = forebay_runtime::time::timeout(self.0.patience, Arc::clone(places).acquire_owned()).await;
        place.map_err(|_| self.hangs())?.map_err(|_| Error::closed("the mount is closed"))
    }

    async fn begin<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner) -> Result<T> + Send + 'static,
    ) -> Result<JoinHandle<Result<T>>> {
        let place = self.place_among(&self.0.places).await?;
        let files = Arc::clone(&self.0);
        Ok(forebay_runtime::spawn_blocking(move || {
            let _place = place;
            work(&files)
        }))
    }

    fn hangs(&self) -> Error {
        let Inner { name, folder, patience, .. } = &*self.0;
        Error::retry(format!(
            "mount {name}: {} did not answer within {} s: see whether its file server is there",
            folder.display(),
            patience.as_secs()
        ))
    }
}

fn broken_off(error: tokio::task::JoinError) -> Error {
    Error::internal("a file operation was broken off").with_source(error)
}

impl Inner {
    /// How an object is called in errors.
    fn path(&self, key: &str) -> String {
        format!("/{}/{key}", self.name)
    }

    fn info(&self, key: &Key, stat: &rustix::fs::Stat) -> ObjectInfo {
        let tag = name::tag(stat);
        let version = forebay_types::ObjectVersion { mount: self.mount, key: key.clone(), tag, size: stat.st_size as u64 };
        ObjectInfo { version, modified_ms: name::modified_ns(stat).div_euclid(1_000_000) as i64 }
    }

    fn conflict(&self, key: &Key, wanted: &VersionTag, there: &VersionTag) -> Error {
        Error::conflict(format!("{}: version {wanted} was asked for, it is {there} now", self.path(key.as_str())))
    }
}

#[async_trait]
impl Backend for Files {
    async fn check(&self) -> Result<()> {
        self.aside(|files| files.check_folder()).await
    }

    async fn get(&self, get: &Get<'_>) -> Result<Opened> {
        count(&self.0.tally.gets);
        read::open(self, get).await
    }

    async fn head(&self, key: &Key) -> Result<(ObjectInfo, Attributes)> {
        count(&self.0.tally.heads);
        let key = key.clone();
        self.aside(move |files| {
            files.open_file(&key).map(|(_, _, info)| (info, Attributes { complete: true, ..Attributes::default() }))
        })
        .await
    }

    async fn list(&self, prefix: &Key, folders: bool, after: Option<&Key>, limit: usize) -> Result<ListPage> {
        count(&self.0.tally.lists);
        let (prefix, after) = (prefix.clone(), after.cloned());
        // A folder with many entries is many calls.
        let within = self.0.patience * 4;
        self.aside_within(within, move |files| list::list(files, &prefix, folders, after.as_ref(), limit)).await
    }

    async fn put(&self, key: &Key, payload: Vec<Bytes>, condition: &PutCondition) -> Result<ObjectInfo> {
        count(&self.0.tally.puts);
        let bytes = payload.iter().map(|piece| piece.len() as u64).sum();
        count_by(&self.0.tally.bytes_out, bytes);
        let (key, condition) = (key.clone(), condition.clone());
        self.aside_writing(bytes, move |files| files.write(&key, &payload, &condition)).await
    }

    async fn begin_upload(&self, key: &Key) -> Result<Box<dyn Parts>> {
        count(&self.0.tally.puts);
        let (upload_key, files) = (key.clone(), self.clone());
        let draft = self.aside(move |inner| inner.draft(&upload_key)).await?;
        Ok(Box::new(upload::FileParts::new(files, key.clone(), draft)))
    }

    async fn delete(&self, key: &Key) -> Result<()> {
        count(&self.0.tally.deletes);
        let key = key.clone();
        self.aside_to_its_end(move |files| files.remove(&key)).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use forebay_types::{ErrorKind, MountOptions};
    use rustix::io::Errno;

    use super::*;

    fn files(patience: Duration) -> (Files, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let mount = Mount { id: MountId(1), name: "nas".parse().unwrap(), url: String::new(), options: MountOptions::default() };
        let (limiter, tally) = (Limiter::new(None, 0), Arc::default());
        (Files::new(&mount, folder.path().into(), patience, &limiter, &tally), folder)
    }

    /// Stands in for a file server: what its files are now lies beside the mount's folder until somebody asks.
    fn from_beside(folder: BorrowedFd<'_>, name: &str) -> Result<(), Errno> {
        match rustix::fs::renameat(folder, format!("../server/{name}"), folder, name) {
            Err(Errno::NOENT) => Ok(()),
            moved => moved,
        }
    }

    #[tokio::test]
    async fn a_listing_has_the_versions_that_files_have_on_their_server() {
        let place = tempfile::tempdir().unwrap();
        let [kept, there] = ["mount", "server"].map(|name| place.path().join(name));
        for folder in [&kept, &there] {
            std::fs::create_dir(folder).unwrap();
        }
        for name in ["a", "b"] {
            std::fs::write(kept.join(name), "old").unwrap();
        }
        std::fs::write(there.join("a"), "rewritten").unwrap();
        let mount = Mount { id: MountId(1), name: "nas".parse().unwrap(), url: String::new(), options: MountOptions::default() };
        let listed = async |asking: fn(BorrowedFd<'_>) -> Option<fresh::Ask>| {
            let (limiter, tally) = (Limiter::new(None, 0), Arc::default());
            let mut files = Files::new(&mount, kept.clone(), Duration::from_secs(30), &limiter, &tally);
            Arc::get_mut(&mut files.0).unwrap().asking = asking;
            let page = files.list(&Key::new("").unwrap(), false, None, 10).await.unwrap();
            let sizes: Vec<u64> = page.objects.iter().map(|object| object.version.size).collect();
            let opened = files.head(&Key::new("a").unwrap()).await.unwrap().0;
            (sizes, page.objects[0].version == opened.version)
        };
        // What this machine has of its own needs no asking, and a server's files are old without.
        assert_eq!(listed(|_| None).await, (vec![3, 3], true));
        assert_eq!(listed(|_| Some(from_beside as fresh::Ask)).await, (vec![9, 3], true));
        assert_eq!(listed(fresh::asking).await, (vec![9, 3], true));
    }

    /// A file server whose files are below a folder of this machine, and lie elsewhere until somebody asks.
    fn mounted_below(folder: BorrowedFd<'_>) -> Option<fresh::Ask> {
        let ask: fresh::Ask = |folder, name| match rustix::fs::renameat(folder, format!("../../there/{name}"), folder, name) {
            Err(Errno::NOENT) => Ok(()),
            moved => moved,
        };
        rustix::fs::statat(folder, "../../there", rustix::fs::AtFlags::empty()).is_ok().then_some(ask)
    }

    #[tokio::test]
    async fn a_file_server_that_is_mounted_below_a_folder_of_this_machine_is_asked() {
        let place = tempfile::tempdir().unwrap();
        let kept = place.path().join("above/kept");
        for folder in ["above/kept/nas", "above/there"] {
            std::fs::create_dir_all(place.path().join(folder)).unwrap();
        }
        for (name, text) in [("kept/a", "old"), ("kept/nas/a", "old"), ("there/a", "rewritten")] {
            std::fs::write(place.path().join("above").join(name), text).unwrap();
        }
        let mount = Mount { id: MountId(1), name: "nas".parse().unwrap(), url: String::new(), options: MountOptions::default() };
        let (limiter, tally) = (Limiter::new(None, 0), Arc::default());
        let mut files = Files::new(&mount, kept, Duration::from_secs(30), &limiter, &tally);
        Arc::get_mut(&mut files.0).unwrap().asking = mounted_below;
        let page = files.list(&Key::new("").unwrap(), false, None, 10).await.unwrap();
        let sizes: Vec<_> = page.objects.iter().map(|object| (object.version.key.as_str(), object.version.size)).collect();
        assert_eq!(sizes, [("a", 3), ("nas/a", 9)]);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn large_writes_wait_their_turn_as_long_as_others_end() {
        let (files, _folder) = files(Duration::from_millis(300));
        let write = |_: &Inner| {
            std::thread::sleep(Duration::from_millis(60));
            Ok(())
        };
        let all = (0..10 * copies()).map(|_| files.aside_writing(LARGE_BYTES, write));
        assert!(futures::future::join_all(all).await.iter().all(Result::is_ok), "600 ms in all");
        let (release, hung) = mpsc::channel::<()>();
        let hung = Arc::new(parking_lot::Mutex::new(hung));
        let mut writes = Vec::new();
        for _ in 0..copies() {
            let (files, hung) = (files.clone(), Arc::clone(&hung));
            writes.push(forebay_runtime::spawn(async move {
                let hang = move |_: &Inner| {
                    let _ = hung.lock().recv();
                    Ok(())
                };
                files.aside_writing(LARGE_BYTES, hang).await
            }));
        }
        while files.0.copies.available_permits() > 0 {
            forebay_runtime::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(files.aside_writing(LARGE_BYTES, write).await.unwrap_err().kind(), ErrorKind::Retry, "nothing ends");
        drop(release);
        for write in writes {
            write.await.unwrap().unwrap();
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_server_that_hangs_is_named_and_takes_a_bounded_number_of_threads() {
        let (files, folder) = files(Duration::from_millis(200));
        let (release, hung) = mpsc::channel::<()>();
        let hung = Arc::new(parking_lot::Mutex::new(hung));
        let calls = (0..PLACES + 20).map(|_| {
            let hung = Arc::clone(&hung);
            files.aside(move |_| {
                let _ = hung.lock().recv();
                Ok(())
            })
        });
        for called in futures::future::join_all(calls).await {
            let error = called.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Retry);
            assert!(error.message().contains(&folder.path().display().to_string()), "{error}");
        }
        assert_eq!(files.0.places.available_permits(), 0, "they still hang");
        drop(release);
        while files.0.places.available_permits() < PLACES {
            forebay_runtime::time::sleep(Duration::from_millis(5)).await;
        }
        files.aside(|_| Ok(())).await.unwrap();
    }
}
