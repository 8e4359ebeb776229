//! What other workers ask about claims.

use bytes::Bytes;
use forebay_protocol::Kept;
use forebay_shard_store::{ClaimedLog, LogClaim, LogPlace};
use forebay_types::{Error, Key, MountId, Result, WorkerId};

use super::is_under;
use super::since::Since;
use crate::cluster::ClaimName;
use crate::shards::Shards;

impl Shards {
    /// Another worker is about to claim a log, and this one is to have what it writes: done once the disk knows it.
    pub(crate) async fn claim_begin(&self, claim: u128, writer: WorkerId, mount: MountId, key: &Key) -> Result<()> {
        let (place, number) =
            LogPlace::parse(key).ok_or_else(|| Error::invalid(format!("{key} is no object of a shard's log")))?;
        if writer == self.cluster.id {
            return Err(Error::invalid("a worker is not the second one of its own claim"));
        }
        if self.claims.by_id(claim).is_some() {
            return Err(Error::conflict("this claim is there already"));
        }
        let claim = LogClaim { id: claim, writer, second: self.cluster.id, number };
        self.claims.begin(ClaimedLog { mount: mount.0, place, claim }, "second").await.map(drop)
    }

    /// The next object under another worker's claim: done once it is on disk.
    pub(crate) async fn claim_keep(&self, claim: u128, number: u64, object: Bytes) -> Result<()> {
        match self.claims.by_id(claim).filter(|held| held.of.claim.writer != self.cluster.id) {
            Some(held) if is_under(&held.of, number, &object) => held.keep(number, object).await,
            Some(_) => Err(Error::invalid(format!("this is not object {number} under the claim"))),
            None => Err(Error::conflict("this worker knows no such claim")),
        }
    }

    /// What there is under a claim from a number on; none where nothing is known of it here, or it is another log's.
    pub(crate) async fn claim_kept(&self, claim: ClaimName<'_>, from: u64, close: bool) -> Result<Option<(Kept, Vec<Bytes>)>> {
        let Some(held) = self.claims.at(claim) else { return Ok(None) };
        if !close && let Some(own) = self.claims.own_by_id(held.of.claim.id).filter(|own| !own.is_over()) {
            let (end, objects) = match own.since(from) {
                Since::Objects(objects) => (from + objects.len() as u64, objects),
                Since::Nothing => (from, Vec::new()),
                Since::Stored | Since::Over => (from.saturating_add(1), Vec::new()),
            };
            return Ok(Some((told(end, false, &objects), objects)));
        }
        let found = held.found(from, close).await?;
        // Its writer went on with it in another process: what it has is for who ends it.
        let is_closed = found.is_closed || held.of.claim.writer == self.cluster.id;
        Ok(Some((told(found.end, is_closed, &found.objects), found.objects)))
    }

    /// A claim is over.
    pub(crate) async fn claim_end(&self, claim: ClaimName<'_>) {
        if let Some(held) = self.claims.at(claim) {
            self.claims.forget(&held.of).await;
        }
    }
}

fn told(end: u64, is_closed: bool, objects: &[Bytes]) -> Kept {
    Kept { end, is_closed, bytes: objects.iter().map(|object| object.len() as u32).collect() }
}
