//! Calls that are asked for again, which may be made by objects that are in the shard's files by now.

use forebay_navigation::Made;
use forebay_types::{Error, Key, Result};
use futures::stream::{self, StreamExt};

use super::catch_up::decode;
use crate::shards::log::{Call, Follower, Read};
use crate::shards::served::Served;
use crate::shards::{Asked, Shards};

/// Objects that are looked through for such calls at most: who changes records often knows one that is not long ago, and others' calls wait
/// meanwhile.
const BACK_MAX: u64 = 64;
/// Objects that are read at a time.
const READ_AT_ONCE: usize = 4;

impl Shards {
    /// Refuses a call that was asked for before where the shard is not here, and would be brought in vain: what may have the call is too far
    /// before what it begins with.
    pub(super) fn check_known(&self, asked: &Asked, after: Option<u64>) -> Result<()> {
        let is_far = after.is_some_and(|after| asked.shard().log_from.saturating_sub(after) > BACK_MAX);
        match is_far && !self.served.lock().contains_key(&asked.id()) {
            true => Err(unknown(asked.folder())),
            false => Ok(()),
        }
    }

    /// Looks through objects of a log that are in the shard's files for what calls they have, where one that is asked for again may be in them.
    /// Where shared storage can't say it now, such calls end: it may, later.
    pub(super) async fn look_back(&self, served: &Served, log: &Follower, calls: &mut Vec<Call>) {
        if let Err(error) = self.read_back(served, log, calls).await {
            let folder = &served.part.folder;
            let later = || Error::retry(format!("{folder}: whether the change is made can't be told now: {}", error.message()));
            refuse_unknown(calls, &log.read(), later);
        }
    }

    async fn read_back(&self, served: &Served, log: &Follower, calls: &[Call]) -> Result<()> {
        let (first, known) = {
            let read = log.read();
            let known = read.known_since();
            let unknown = calls.iter().filter(|call| read.made(call.id, call.after) == Made::Unknown);
            (unknown.filter_map(|call| call.after).filter(|after| known - after <= BACK_MAX).min(), known)
        };
        let Some(after) = first else { return Ok(()) };
        let door = self.origin.mount(log.mount()).await?;
        let reading = (after + 1..known).map(|number| self.object(&door, log, number));
        // Each may have megabytes, of which the calls' names stay.
        let mut objects = stream::iter(reading).buffered(READ_AT_ONCE);
        let mut found = Vec::new();
        for number in after + 1..known {
            // None where somebody has deleted a part of the log.
            let Some(bytes) = objects.next().await.transpose()?.flatten() else { return Ok(()) };
            let calls = decode(&door, served, log, number, &bytes)?.into_calls().unwrap_or_default();
            found.extend(calls.iter().map(|call| (call.id, number)));
        }
        log.read().recall(after + 1..known, &found);
        Ok(())
    }
}

/// Refuses the calls that may be made by an object that is not known here.
pub(super) fn refuse_unknown(calls: &mut Vec<Call>, read: &Read, why: impl Fn() -> Error) {
    for call in calls.extract_if(.., |call| read.made(call.id, call.after) == Made::Unknown) {
        call.end(Err(why()));
    }
}

/// Why one is not made: a worker that has followed the log for longer may know.
pub(super) fn unknown(folder: &Key) -> Error {
    Error::retry(format!("{folder}: the change may be made, longer ago than this worker knows: read the record")).here_alone()
}

#[cfg(test)]
mod tests {
    use forebay_shard_store::LogPlace;
    use forebay_types::{ErrorKind, MountId};
    use tokio::sync::oneshot;

    use super::*;

    #[test]
    fn a_call_that_may_be_made_already_is_refused_where_that_is_not_known() {
        let folder = Key::new("x").unwrap();
        let place = LogPlace { folder: "x".into(), log: "0123456789abcdef".into(), shard: 0 };
        // What is before object 8 is in the files.
        let follower = Follower::new(MountId(1), place, 8);
        let call = |id, after| {
            let (done, made) = oneshot::channel();
            (Call { id, after, changes: Vec::new(), bytes: 0, came: forebay_runtime::now(), done }, made)
        };
        let ((first, _), (late, mut told), (soon, _)) = (call(1, None), call(2, Some(6)), call(3, Some(7)));
        let mut calls = vec![first, late, soon];
        refuse_unknown(&mut calls, &follower.read(), || unknown(&folder));
        assert_eq!(calls.iter().map(|call| call.id).collect::<Vec<_>>(), [1, 3]);
        let refused = told.try_recv().unwrap().unwrap_err();
        assert!(refused.kind() == ErrorKind::Retry && refused.is_here_alone(), "another worker may know: {refused}");
        assert!(refused.message().contains("read the record"), "{refused}");
    }
}
