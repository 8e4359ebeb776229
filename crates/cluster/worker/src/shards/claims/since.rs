//! What is acknowledged under a claim and not in shared storage yet, for who answers.

use std::sync::Arc;

use bytes::Bytes;
use forebay_shard_store::LogClaim;
use forebay_types::Result;

use super::is_under;
use crate::shards::Shards;
use crate::shards::log::Follower;

/// What follows in a log that stands under a claim.
pub(in crate::shards) enum Since {
    /// These objects, which two disks have; there may be more behind them.
    Objects(Vec<Bytes>),
    /// Nothing that is acknowledged.
    Nothing,
    /// Shared storage has the next one by now.
    Stored,
    /// Shared storage has all: the claim is over.
    Over,
}

impl Shards {
    /// What is acknowledged from a number on under the claim that a log stands under. A claim whose writer does not say is ended, from the first
    /// object on that shared storage was not seen to have.
    pub(in crate::shards) async fn since(
        self: &Arc<Self>,
        log: &Follower,
        claim: LogClaim,
        (from, unseen): (u64, u64),
    ) -> Result<Since> {
        let of = log.claimed(claim);
        if claim.writer == self.cluster.id {
            if let Some(own) = self.claims.own(&log.name, claim.id).filter(|own| !own.is_over()) {
                return Ok(own.since(from));
            }
        } else if let Some(writer) = self.cluster.worker(claim.writer)
            && let Ok(key) = of.place.key(claim.number)
            && let Ok(Some(told)) = self.cluster.peers.claim_kept(&writer, (claim.id, log.mount(), &key), from, false).await
            && !told.is_closed
            && (from..).zip(&told.objects).all(|(number, object)| is_under(&of, number, object))
        {
            return Ok(match told.objects.is_empty() {
                true if told.end > from => Since::Stored,
                true => Since::Nothing,
                false => Since::Objects(told.objects),
            });
        }
        self.end_claim(&of, unseen).await?;
        Ok(Since::Over)
    }
}
