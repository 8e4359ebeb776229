//! Datasets that come to have other shards: the logs of those that they have end, and the next manifest names the others.

use std::sync::Arc;

use bytes::Bytes;
use forebay_metrics::table;
use forebay_navigation::{SWITCH_LIMITS, may_switch};
use forebay_protocol::PutCondition;
use forebay_shard_store::manifest_key;
use forebay_types::{Error, ErrorKind, Key, Result};
use tokio::sync::oneshot;

use crate::shards::bring::below;
use crate::shards::{Manifest, Shards};

/// How often the next manifest is tried while merges and orders write manifests too.
const ATTEMPTS: usize = 4096;

/// What became of the shards that a dataset was about to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::shards) enum Move {
    /// It has them, or others that came after them.
    Done,
    /// All is as it was: more was changed since they were cut than they can take over, or there are none.
    Stays,
}

impl Manifest {
    /// Whether the dataset may come to have the shards that it is about to have. Where these were given up, it stays so.
    pub(in crate::shards) fn may_move(&self) -> bool {
        let merged = self.dataset.shards.iter().map(|shard| shard.log_from);
        self.dataset.next.as_ref().is_some_and(|next| may_switch(&next.cuts, merged, &SWITCH_LIMITS))
    }
}

impl Shards {
    /// Has a dataset have the shards that it is about to have; goes on when who asked goes away.
    pub(in crate::shards) async fn move_on(self: &Arc<Self>, manifest: &Arc<Manifest>) -> Result<Move> {
        let (shards, manifest) = (Arc::clone(self), Arc::clone(manifest));
        let (done, moved) = oneshot::channel();
        self.background.spawn(async move {
            // Nobody may wait any more.
            let _ = done.send(shards.move_now(&manifest).await);
        });
        moved.await.map_err(|_| Error::closed("the worker is stopping"))?
    }

    /// The log of a shard has ended, since its records are in other shards or about to be: they are from here on, and who asks is told so.
    pub(super) async fn lead_on(self: &Arc<Self>, manifest: &Arc<Manifest>) -> Result<()> {
        match self.move_on(manifest).await? {
            Move::Done => Err(moved(&manifest.id.folder)),
            Move::Stays => Err(Error::retry(format!("{}: its shards give way to others: ask again", manifest.id.folder))),
        }
    }

    /// Does what is left to do, whoever began it and however far he came; one does it for all who want it at the same time.
    pub(super) async fn move_now(self: &Arc<Self>, known: &Arc<Manifest>) -> Result<Move> {
        let Some(log) = &known.dataset.log else { return Ok(Move::Stays) };
        let came = forebay_runtime::now();
        let asking = self.turns.moving.join((known.id.mount, log.clone()));
        let mut last = asking.turn().await;
        if self.moved_to(known).is_some() {
            return Ok(Move::Done);
        }
        if let Some((began, done)) = &*last
            && *began >= came
        {
            return done.clone();
        }
        let began = forebay_runtime::now();
        let done = self.move_whole(known, log).await;
        *last = Some((began, done.clone()));
        done
    }

    async fn move_whole(self: &Arc<Self>, known: &Arc<Manifest>, log: &str) -> Result<Move> {
        let (mount, folder) = (known.id.mount, &known.id.folder);
        let door = self.origin.mount(mount).await?;
        let mut latest = Arc::clone(known);
        for _ in 0..ATTEMPTS {
            while let Some(newer) = self.read_manifest(&door, folder, latest.id.manifest + 1).await? {
                latest = newer;
            }
            if latest.dataset.log.as_deref() != Some(log) {
                return self.was_moved(&latest, log);
            }
            let Some(next) = &latest.dataset.next else { return Ok(Move::Stays) };
            let Some(log_from) = self.end_logs(&door, &latest, next).await? else { return Ok(Move::Stays) };
            let Some(dataset) = latest.dataset.moved(log_from) else { return Ok(Move::Stays) };
            let key = below(folder, &manifest_key(latest.id.manifest + 1))?;
            match self.writes.put(mount, &key, PutCondition::Absent, Bytes::from(dataset.encode()?)).await {
                Ok(_) => {
                    table::WORKER_DATASETS_RESHARDED.only().add(1);
                    tracing::info!(%folder, from = latest.ids.len(), to = dataset.shards.len(), "a dataset has other shards");
                    self.note_manifest(mount, &key);
                }
                // A merge was faster, an order, or somebody else with the same.
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                Err(error) => return Err(error),
            }
        }
        Err(Error::retry(format!("{folder}: other workers write manifests too: try again")))
    }

    fn was_moved(&self, latest: &Arc<Manifest>, log: &str) -> Result<Move> {
        if !latest.dataset.before.iter().any(|before| before == log) {
            return Err(replaced(&latest.id.folder));
        }
        self.learn(Arc::clone(latest));
        Ok(Move::Done)
    }
}

/// What is told to who asks for shards that a dataset has no more: programs that know it open the dataset anew by themselves.
pub(in crate::shards) fn moved(folder: &Key) -> Error {
    Error::not_found(format!("{folder}: the dataset has other shards now: open it again"))
}

pub(super) fn replaced(folder: &Key) -> Error {
    Error::not_found(format!("{folder}: the dataset was replaced: open it again"))
}
