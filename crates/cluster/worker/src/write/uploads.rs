//! Objects that are written in parts.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;
use forebay_protocol::PutCondition;
use forebay_runtime::deadline::Waiting;
use forebay_trace::{current, within};
use forebay_types::{Error, Key, MountId, ObjectInfo, OperationId, Result};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::Writes;
use super::changes::Write;
use super::drafts::{By, Draft, all_given_up, give_up};

/// Uploads of one connection at a time.
const UPLOADS_MAX: usize = 256;

/// The uploads that a connection has begun. Those that it did not commit are given up with it, and the drafts that it has opened.
pub(crate) struct SessionUploads {
    /// The connection's, which tells it from others.
    number: u64,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    open: HashMap<u64, Arc<Draft>>,
    closed: bool,
}

impl SessionUploads {
    pub(crate) fn new(writes: &Writes) -> Self {
        Self { number: writes.next_number.fetch_add(1, Relaxed), table: Mutex::default() }
    }

    /// Begins an upload: its id and the bytes of each part.
    pub(crate) async fn begin(&self, writes: &Arc<Writes>, mount: MountId, key: &Key) -> Result<(u64, u64)> {
        let door = writes.writable(mount, key).await?;
        if self.table.lock().open.len() >= UPLOADS_MAX {
            return Err(Error::retry(format!("{UPLOADS_MAX} uploads are open on this connection: finish one first")));
        }
        let upload = writes.notes.begun(&door.mount, key, door.storage()?.begin_upload(key).await?);
        let (id, part_bytes) = (writes.next_number.fetch_add(1, Relaxed), upload.part_bytes());
        let draft = Arc::new(Draft::new(mount, key, upload));
        {
            let mut table = self.table.lock();
            if !table.closed {
                let known = table.open.insert(id, draft);
                assert!(known.is_none(), "an upload's id is given once");
                return Ok((id, part_bytes));
            }
        }
        give_up(writes, draft);
        Err(Error::closed("the connection has ended"))
    }

    /// Lets drafts of an operation begin below a place, which are this connection's to commit.
    pub(crate) async fn open_drafts(
        &self,
        writes: &Arc<Writes>,
        operation: OperationId,
        mount: MountId,
        below: Key,
    ) -> Result<()> {
        writes.writable(mount, &below).await?;
        let table = self.table.lock();
        // Under the lock, so that they are there before the connection's end looks for them, or not at all.
        match table.closed {
            true => Err(Error::closed("the connection has ended")),
            false => writes.drafts.open(operation, self.number, mount, below),
        }
    }

    /// Begins a draft for who has opened the operation's, as [`Self::begin`].
    pub(crate) async fn begin_draft(
        &self,
        writes: &Arc<Writes>,
        operation: OperationId,
        mount: MountId,
        key: &Key,
    ) -> Result<(u64, u64)> {
        let door = writes.writable(mount, key).await?;
        writes.drafts.check(operation, mount, key)?;
        let (storage, key, by, owner) = (door.storage()?, key.clone(), self.number, Arc::clone(writes));
        let waiting = Waiting::begin();
        let waited = waiting.waited();
        let begun = to_its_end(writes, async move {
            let upload = owner.notes.begun(&door.mount, &key, waited.scope(storage.begin_upload(&key)).await?);
            let (id, part_bytes) = (owner.next_number.fetch_add(1, Relaxed), upload.part_bytes());
            match owner.drafts.begin(operation, id, by, Draft::new(mount, &key, upload)) {
                Ok(()) => Ok((id, part_bytes)),
                Err((error, draft)) => {
                    give_up(&owner, draft);
                    Err(error)
                }
            }
        });
        begun.await?
    }

    /// Gives up what this connection has opened for an operation, and did not commit.
    pub(crate) async fn end_drafts(&self, writes: &Writes, operation: OperationId) {
        let left = writes.drafts.end(operation, self.number);
        // Where the worker stops, they are given up as far as its time allows.
        let _ = to_its_end(writes, all_given_up(left)).await;
    }

    /// The object of a draft that is this connection's to commit.
    pub(crate) fn draft(&self, writes: &Writes, id: u64) -> Option<(MountId, Key)> {
        let draft = writes.drafts.find(id, By::Opener(self.number))?;
        Some((draft.mount, draft.key.clone()))
    }

    /// The object of an upload that this connection has begun, and that is no draft.
    pub(crate) fn begun(&self, id: u64) -> Option<(MountId, Key)> {
        self.table.lock().open.get(&id).map(|draft| (draft.mount, draft.key.clone()))
    }

    pub(crate) async fn part(&self, writes: &Writes, id: u64, part: u32, payload: Bytes) -> Result<()> {
        let draft = self.find(writes, id, By::Writer(self.number))?;
        let upload = draft.upload.read().await;
        let upload = upload.as_ref().ok_or_else(|| unknown(id))?;
        let bytes = payload.len() as u64;
        upload.put_part(part, vec![payload.clone()]).await?;
        draft.keep(part, &payload);
        writes.signals.meters.written.add(bytes);
        Ok(())
    }

    /// Makes the object of its parts.
    pub(crate) async fn commit(&self, writes: &Arc<Writes>, id: u64, parts: u32, when: PutCondition) -> Result<ObjectInfo> {
        let draft = self.find(writes, id, By::Opener(self.number))?;
        self.table.lock().open.remove(&id);
        let owner = Arc::clone(writes);
        // What is under way goes on, but is not tried again for a writer who was told that nobody knows how it ended.
        let waiting = Waiting::begin();
        let waited = waiting.waited();
        let ended = to_its_end(writes, async move {
            // Held until it is over, so that who ends drafts, or gives this one up, is answered then.
            let mut place = draft.upload.write().await;
            let upload = place.take().ok_or_else(|| unknown(id))?;
            let ended = match Write::begin(&owner, draft.mount, &draft.key).await {
                // Parts that were under way, or a lease, have kept it until its writer was told that nobody knows how it ends.
                Ok(_) if waited.is_over() => {
                    let _ = upload.abort().await;
                    Err(Error::retry("nothing was written: it was not begun while its writer waited"))
                }
                Ok(write) => {
                    let result = waited.scope(upload.commit(parts, when)).await;
                    write.end(result.map(Some)).await
                }
                Err(error) => {
                    // Its parts are no use to anyone: the writer begins again.
                    let _ = upload.abort().await;
                    Err(error)
                }
            };
            if let Ok(Some(info)) = &ended {
                owner.fresh.add(&info.version);
                if let (Some(bytes), Some(door)) = (draft.take_kept(parts), owner.origin.mounts.find(draft.mount)) {
                    owner.keep_written(&door, info, bytes);
                }
            }
            owner.drafts.remove(id);
            ended
        });
        Ok(ended.await??.expect("a commit gives what it made"))
    }

    /// Gives an upload up.
    pub(crate) async fn abort(&self, writes: &Writes, id: u64) -> Result<()> {
        let of_writer = self.find(writes, id, By::Writer(self.number));
        let draft = of_writer.or_else(|_| self.find(writes, id, By::Opener(self.number)))?;
        let upload = draft.upload.write().await.take().ok_or_else(|| unknown(id))?;
        self.remove(writes, id);
        to_its_end(writes, upload.abort()).await?
    }

    /// The connection has ended: gives all uploads up, in the background, and the drafts that it has opened.
    pub(crate) fn close(&self, writes: &Arc<Writes>) {
        let open = {
            let mut table = self.table.lock();
            table.closed = true;
            std::mem::take(&mut table.open)
        };
        let left: Vec<_> = open.into_values().chain(writes.drafts.gone(self.number)).collect();
        if !left.is_empty() {
            writes.background.spawn(all_given_up(left));
        }
    }

    fn find(&self, writes: &Writes, id: u64, by: By) -> Result<Arc<Draft>> {
        let own = self.table.lock().open.get(&id).cloned();
        own.or_else(|| writes.drafts.find(id, by)).ok_or_else(|| unknown(id))
    }

    fn remove(&self, writes: &Writes, id: u64) {
        if self.table.lock().open.remove(&id).is_none() {
            writes.drafts.remove(id);
        }
    }
}

/// Does something with an upload to its end, also when who waits goes away: what is half done leaves parts behind, which cost money.
async fn to_its_end<T: Send + 'static>(writes: &Writes, work: impl Future<Output = T> + Send + 'static) -> Result<T> {
    let (send, receive) = oneshot::channel();
    writes.background.spawn(within(current(), async move {
        // Nobody may be there any more to hear of it.
        let _ = send.send(work.await);
    }));
    receive.await.map_err(|_| Error::closed("the worker is stopping"))
}

fn unknown(id: u64) -> Error {
    Error::not_found(format!("upload {id} is not open on this connection: begin again"))
}
