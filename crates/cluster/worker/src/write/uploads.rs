//! Objects that are written in parts.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use bytes::Bytes;
use forebay_protocol::PutCondition;
use forebay_shared_storage::Upload;
use forebay_trace::{current, within};
use forebay_types::{Error, Key, MountId, ObjectInfo, Result};
use parking_lot::Mutex;
use tokio::sync::{RwLock, oneshot};

use super::Writes;
use super::changes::Write;

/// Uploads of one connection at a time.
const UPLOADS_MAX: usize = 256;
/// How long the parts of an abandoned upload are tried to be removed.
const ABORT_WITHIN: Duration = Duration::from_secs(30);

/// The uploads that a connection has begun. Those that it did not commit are given up with it.
#[derive(Default)]
pub(crate) struct SessionUploads(Mutex<Table>);

#[derive(Default)]
struct Table {
    open: HashMap<u64, Arc<Draft>>,
    closed: bool,
}

struct Draft {
    mount: MountId,
    key: Key,
    /// Parts are written under the shared lock, the end takes the upload out under the exclusive one.
    upload: RwLock<Option<Upload>>,
}

impl SessionUploads {
    /// Begins an upload: its id and the bytes of each part.
    pub(crate) async fn begin(&self, writes: &Arc<Writes>, mount: MountId, key: &Key) -> Result<(u64, u64)> {
        let door = writes.writable(mount, key).await?;
        if self.0.lock().open.len() >= UPLOADS_MAX {
            return Err(Error::retry(format!("{UPLOADS_MAX} uploads are open on this connection: finish one first")));
        }
        let upload = door.storage()?.begin_upload(key).await?;
        let (id, part_bytes) = (writes.next_upload.fetch_add(1, Relaxed), upload.part_bytes());
        let draft = Draft { mount, key: key.clone(), upload: RwLock::new(Some(upload)) };
        let closed = {
            let mut table = self.0.lock();
            if !table.closed {
                let known = table.open.insert(id, Arc::new(draft));
                assert!(known.is_none(), "an upload's id is given once");
                return Ok((id, part_bytes));
            }
            draft
        };
        give_up(writes, Arc::new(closed));
        Err(Error::closed("the connection has ended"))
    }

    pub(crate) async fn part(&self, writes: &Writes, id: u64, part: u32, payload: Bytes) -> Result<()> {
        let draft = self.find(id)?;
        let upload = draft.upload.read().await;
        let upload = upload.as_ref().ok_or_else(|| unknown(id))?;
        let bytes = payload.len() as u64;
        upload.put_part(part, vec![payload]).await?;
        writes.signals.meters.written(bytes);
        Ok(())
    }

    /// Makes the object of its parts.
    pub(crate) async fn commit(&self, writes: &Arc<Writes>, id: u64, parts: u32, when: PutCondition) -> Result<ObjectInfo> {
        let draft = self.find(id)?;
        let upload = draft.upload.write().await.take().ok_or_else(|| unknown(id))?;
        self.0.lock().open.remove(&id);
        // Goes on when the writer goes away: half a commit would leave parts behind.
        let (send, receive) = oneshot::channel();
        let owner = Arc::clone(writes);
        writes.background.spawn(within(current(), async move {
            let ended = match Write::begin(&owner, draft.mount, &draft.key).await {
                Ok(write) => {
                    let result = upload.commit(parts, when).await;
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
            }
            // Nobody may be there any more to hear of it.
            let _ = send.send(ended);
        }));
        let ended = receive.await.map_err(|_| Error::closed("the worker is stopping"))?;
        Ok(ended?.expect("a commit gives what it made"))
    }

    /// Gives an upload up.
    pub(crate) async fn abort(&self, id: u64) -> Result<()> {
        let draft = self.find(id)?;
        let upload = draft.upload.write().await.take().ok_or_else(|| unknown(id))?;
        self.0.lock().open.remove(&id);
        upload.abort().await
    }

    /// The connection has ended: gives all uploads up, in the background.
    pub(crate) fn close(&self, writes: &Arc<Writes>) {
        let open = {
            let mut table = self.0.lock();
            table.closed = true;
            std::mem::take(&mut table.open)
        };
        for draft in open.into_values() {
            give_up(writes, draft);
        }
    }

    fn find(&self, id: u64) -> Result<Arc<Draft>> {
        self.0.lock().open.get(&id).cloned().ok_or_else(|| unknown(id))
    }
}

fn give_up(writes: &Arc<Writes>, draft: Arc<Draft>) {
    writes.background.spawn(async move {
        // A part that is being written ends with its connection, so the lock is free soon.
        let Some(upload) = draft.upload.write().await.take() else { return };
        match forebay_runtime::time::timeout(ABORT_WITHIN, upload.abort()).await {
            Ok(Ok(())) => tracing::info!(key = %draft.key, "upload given up with its connection"),
            Ok(Err(error)) => tracing::warn!(key = %draft.key, %error, "parts of an upload may be left in shared storage"),
            Err(_) => tracing::warn!(key = %draft.key, "parts of an upload may be left in shared storage"),
        }
    });
}

fn unknown(id: u64) -> Error {
    Error::not_found(format!("upload {id} is not open on this connection: begin again"))
}
