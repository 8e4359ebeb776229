//! Ending claims: what the two workers have goes to shared storage, and then an object that says that it is over.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use forebay_navigation::{Ending, Word, ending};
use forebay_protocol::PutCondition;
use forebay_shard_store::{ClaimedLog, LogObject};
use forebay_types::{Error, ErrorKind, MountId, Result, WorkerId};
use futures::stream::{self, StreamExt};

use super::held::Held;
use super::{is_under, named};
use crate::origin::MountDoor;
use crate::shards::Shards;

/// Claims that are ended at a time.
const AT_ONCE: usize = 16;
/// How often claims are looked at that their writers may have left.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long a writer may be silent until its second worker ends the claim: one that lives ends it by itself.
const SILENT_FOR: Duration = Duration::from_secs(10);

/// How long what is on disk stays of a log that is gone: its dataset was deleted, or shared storage is not the one that it was, which may come back.
const GONE_FOR: Duration = Duration::from_secs(60 * 60);

/// Goes on for ever: ends the claims that their writers have left, processes of this worker among them.
pub(crate) async fn look_after(shards: Arc<Shards>) {
    loop {
        // Until they are over, one disk alone may have what was acknowledged under them.
        let ending: Vec<_> = shards.claims.all().into_iter().map(|held| shards.end_if_left(held)).collect();
        stream::iter(ending).buffer_unordered(AT_ONCE).collect::<()>().await;
        forebay_runtime::time::sleep(LOOK_EVERY).await;
    }
}

/// What one of the two has, as far as it was asked for.
#[derive(Default)]
struct Rest {
    /// The number of the first one.
    from: u64,
    /// The number behind the last one that there is.
    end: u64,
    objects: VecDeque<Bytes>,
}

impl Shards {
    async fn end_if_left(self: &Arc<Self>, held: Arc<Held>) {
        let claim = &held.of.claim;
        let is_left = match claim.writer == self.cluster.id {
            true => self.claims.own_by_id(claim.id).is_none(),
            false => self.cluster.worker(claim.writer).is_none() || held.heard().elapsed() > SILENT_FOR,
        };
        if is_left && let Err(error) = self.end_claim(&held.of, claim.number).await {
            let (folder, shard) = (&held.of.place.folder, held.of.place.shard);
            tracing::debug!(%folder, shard, %error, "a claim is not over yet");
            if error.kind() == ErrorKind::NotFound && held.heard().elapsed() > GONE_FOR {
                tracing::warn!(%folder, shard, "what this worker had on its disk of a log that is gone is given up");
                self.claims.forget(&held.of).await;
            }
        }
    }

    /// Ends a claim, in whose log shared storage was seen to have all before `from`: what its two workers have that was acknowledged is there then, and anyone
    /// writes. `DataLost` where neither has it any more, `NotFound` where the log is gone.
    pub(in crate::shards) async fn end_claim(self: &Arc<Self>, of: &ClaimedLog, from: u64) -> Result<()> {
        let asking = self.claims.ending.join(of.clone());
        let mut turn = asking.turn().await;
        // Whoever had the turn before has ended it.
        if turn.is_some() {
            return Ok(());
        }
        let mount = MountId(of.mount);
        let door = self.origin.mount(mount).await?;
        debug_assert!(from >= of.claim.number, "what comes before a claim says nothing of it");
        let (mut number, mut rest) = (from.max(of.claim.number), Rest::default());
        loop {
            match self.stands_under(&door, of, number).await? {
                Some(true) => {
                    number += 1;
                    continue;
                }
                // It is over, or never came to be: who follows the log here may not have heard yet.
                Some(false) => {
                    self.told.came(mount, &of.place.key(number)?);
                    break;
                }
                None => {}
            }
            let next = self.next_of(of, number, &mut rest).await;
            // Who has ended it meanwhile has told the two.
            if next.is_err() && self.stands_under(&door, of, number).await?.is_some() {
                continue;
            }
            let object = next.inspect_err(|error| {
                if error.kind() == ErrorKind::DataLost {
                    self.claims.meters.lost(of.claim.id);
                }
            })?;
            if number == of.claim.number && rest.end > number + 1 {
                // What makes the claim was there before anything was under it.
                return Err(Error::not_found(format!("{} shard {}: its log is gone", of.place.folder, of.place.shard)));
            }
            let is_last = object.is_none();
            let key = of.place.key(number)?;
            let object = match object {
                Some(object) => {
                    self.tell_of_kept(of, number, &object).await?;
                    object
                }
                None => Bytes::from(LogObject::Over.encode(number)),
            };
            let put = self.writes.put(mount, &key, PutCondition::Absent, object).await;
            self.told.came(mount, &key);
            match put {
                Ok(_) if is_last => {
                    self.claims.meters.ended();
                    break;
                }
                Ok(_) => number += 1,
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                Err(error) => return Err(error),
            }
        }
        *turn = Some(());
        drop(turn);
        self.forget_everywhere(of).await;
        Ok(())
    }

    /// All workers hear which records an object changes that goes from disks to shared storage: some may have heard that from its writer too long
    /// ago to know it.
    pub(super) async fn tell_of_kept(&self, of: &ClaimedLog, number: u64, object: &[u8]) -> Result<()> {
        let records = LogObject::keys_in(object, number, &of.place.folder)?;
        self.tell_coming(MountId(of.mount), &of.place.key(number)?, records).await
    }

    /// Whether the object of a number makes the claim or is under it; none where there is none.
    pub(super) async fn stands_under(&self, door: &MountDoor, of: &ClaimedLog, number: u64) -> Result<Option<bool>> {
        let key = of.place.key(number)?;
        let what = format!("/{}/{key}", door.mount.name);
        match self.origin.read_whole(door, &key).await {
            Ok(bytes) => LogObject::claim_in(&bytes, number, &what).map(|claim| Some(claim == Some(of.claim))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.context(what)),
        }
    }

    /// What the two workers have of a number; none where they have nothing, and will not.
    async fn next_of(&self, of: &ClaimedLog, number: u64, rest: &mut Rest) -> Result<Option<Bytes>> {
        while rest.from < number && rest.objects.pop_front().is_some() {
            rest.from += 1;
        }
        if rest.from != number || rest.objects.is_empty() {
            let (end, objects) = self.objects_of(of, number).await?;
            *rest = Rest { from: number, end, objects };
        }
        Ok(rest.objects.front().cloned())
    }

    /// What the two have from a number on, who take nothing more from then on, and the number behind it.
    async fn objects_of(&self, of: &ClaimedLog, from: u64) -> Result<(u64, VecDeque<Bytes>)> {
        let (writer, second) = (of.claim.writer, of.claim.second);
        let ((of_writer, first), (of_second, other)) =
            futures::join!(self.word_of(of, writer, from), self.word_of(of, second, from));
        let who = || format!("{} and {}", named(writer), named(second));
        let what = format!("{} shard {}", of.place.folder, of.place.shard);
        let end = |word| if let Word::Closed(end) = word { end } else { from };
        match ending(of_writer, of_second) {
            Ending::ByWriter => Ok((end(of_writer), first)),
            Ending::BySecond => Ok((end(of_second), other)),
            Ending::Wait => {
                Err(Error::retry(format!("{what}: its last changes are on the disks of {}, who don't answer", who())))
            }
            Ending::Lost => Err(Error::data_lost(format!(
                "{what}: changes that were acknowledged in the last seconds were on the disks of {} alone, and neither is there any more: \
                 start one of them with its data folder, or give these changes up by `forebay shard forgo`",
                who()
            ))),
        }
    }

    async fn word_of(&self, of: &ClaimedLog, worker: WorkerId, from: u64) -> (Word, VecDeque<Bytes>) {
        let none = VecDeque::new();
        if worker == self.cluster.id {
            return match self.claims.of(of) {
                None => (Word::Unknown, none),
                Some(held) => match held.found(from, true).await {
                    Ok(found) => word(of, from, found.end, found.objects),
                    Err(error) => {
                        tracing::warn!(%error, "what is on disk under a claim can't be read");
                        (Word::Silent, none)
                    }
                },
            };
        }
        let Some(info) = self.cluster.worker(worker) else { return (Word::Gone, none) };
        let Ok(key) = of.place.key(of.claim.number) else { return (Word::Unknown, none) };
        match self.cluster.peers.claim_kept(&info, (of.claim.id, MountId(of.mount), &key), from, true).await {
            Ok(Some(told)) if told.is_closed => word(of, from, told.end, told.objects),
            Ok(None) => (Word::Unknown, none),
            Ok(Some(_)) | Err(_) => (Word::Silent, none),
        }
    }

    async fn forget_everywhere(&self, of: &ClaimedLog) {
        for worker in [of.claim.writer, of.claim.second] {
            if worker == self.cluster.id {
                self.claims.forget(of).await;
            } else if let Some(info) = self.cluster.worker(worker)
                && let Ok(key) = of.place.key(of.claim.number)
            {
                // Who does not hear looks for itself.
                self.cluster.peers.claim_end(&info, (of.claim.id, MountId(of.mount), &key)).await;
            }
        }
    }
}

/// What one of the two says that takes nothing more: nothing where that is not what it can have from a number on.
fn word(of: &ClaimedLog, from: u64, end: u64, objects: Vec<Bytes>) -> (Word, VecDeque<Bytes>) {
    let first = of.claim.number + 1;
    let is_all = end >= first && (end <= from || from < first || !objects.is_empty());
    if is_all && (from..).zip(&objects).all(|(number, object)| is_under(of, number, object)) {
        return (Word::Closed(end), objects.into());
    }
    tracing::warn!(folder = %of.place.folder, shard = of.place.shard, "what a worker has under a claim is damaged");
    (Word::Silent, VecDeque::new())
}

#[cfg(test)]
mod tests {
    use forebay_shard_store::{LogClaim, LogPlace};

    use super::*;

    #[test]
    fn what_is_no_object_of_the_claim_is_taken_from_nobody() {
        let place = LogPlace { folder: "x".into(), log: "0123456789abcdef".into(), shard: 0 };
        let claim = LogClaim { id: 7, writer: WorkerId(1), second: WorkerId(2), number: 4 };
        let of = ClaimedLog { mount: 1, place, claim };
        let object = |claim, number| Bytes::from(LogObject::Kept(claim, vec![]).encode(number));
        let said = |from, end, objects: Vec<Bytes>| word(&of, from, end, objects).0;
        assert_eq!(said(5, 7, vec![object(claim, 5), object(claim, 6)]), Word::Closed(7));
        assert_eq!((said(7, 7, vec![]), said(4, 7, vec![])), (Word::Closed(7), Word::Closed(7)));
        assert_eq!(said(5, 7, vec![]), Word::Silent, "it has some and gives none");
        assert_eq!(said(5, 6, vec![object(claim, 6)]), Word::Silent, "of another number");
        assert_eq!(said(5, 6, vec![object(LogClaim { id: 8, ..claim }, 5)]), Word::Silent, "of another claim");
        assert_eq!(said(5, 6, vec![Bytes::from(LogObject::Over.encode(5))]), Word::Silent, "of none");
        assert_eq!(said(5, 6, vec![Bytes::from_static(&[0; 100])]), Word::Silent);
        assert_eq!(said(5, 4, vec![]), Word::Silent, "what it says of its end can't be");
    }
}
