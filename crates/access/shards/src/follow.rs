//! Datasets that have other shards than those that they were opened with.

use std::sync::Arc;
use std::time::Duration;

use forebay_types::{Error, ErrorKind, Result};

use crate::Shards;

/// How often, and after which pause, it is looked again for the manifest that is to be there.
const TRIES: usize = 20;
const PAUSE: Duration = Duration::from_millis(100);

/// Does something with a dataset, and once more with the shards that it has by then where it has others: which shard a key is in depends
/// on how many there are.
macro_rules! at_present {
    ($shards:ident, $at:ident => $done:expr) => {{
        let mut later = $shards.later();
        loop {
            let $at: &Shards = later.as_deref().unwrap_or($shards);
            let done = $done.await;
            match done {
                Err(error) if error.kind() == forebay_types::ErrorKind::NotFound => {
                    later = Some($shards.follow($at, error).await?);
                }
                done => break done,
            }
        }
    }};
}

pub(crate) use at_present;

impl Shards {
    /// The dataset with the shards that it has now, where this one is known to have none of them.
    pub(crate) fn later(&self) -> Option<Arc<Self>> {
        self.later.lock().clone()
    }

    /// The same after workers did not find what was asked `at` a state of it; their error where the dataset is no later state of that one, and
    /// `Retry` where that can't be told now.
    pub(crate) async fn follow(&self, at: &Self, error: Error) -> Result<Arc<Self>> {
        let Some(log) = &at.dataset.log else { return Err(error) };
        let mut tries = 0;
        let opened = loop {
            match Self::open(&self.client, &self.path).await {
                Ok(opened) if opened.dataset.before.contains(log) => break opened,
                // Who has said so may have seen the manifest before who lists the folder heard of it.
                Ok(opened) if opened.dataset.log.as_ref() == Some(log) && tries < TRIES => tries += 1,
                Ok(_) => return Err(error),
                Err(failed) => return Err(why(failed, error)),
            }
            forebay_runtime::time::sleep(PAUSE).await;
        };
        debug_assert!(opened.manifest() > at.manifest(), "manifests are numbered upwards");
        tracing::debug!(path = %self.path, shards = opened.dataset.shards.len(), "the dataset has other shards now");
        let opened = Arc::new(opened.with_patience(self.within));
        *self.later.lock() = Some(Arc::clone(&opened));
        Ok(opened)
    }
}

/// What is told where workers did not find it, and opening it anew `failed`: it may be there all the same.
fn why(failed: Error, error: Error) -> Error {
    match failed.kind() {
        ErrorKind::Retry | ErrorKind::Closed => failed,
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_can_t_look_says_nothing_of_what_is_there() {
        let said = |failed| why(failed, Error::not_found("by a worker")).kind();
        assert_eq!([Error::retry("away"), Error::closed("gone")].map(said), [ErrorKind::Retry, ErrorKind::Closed]);
        assert_eq!([Error::not_found("none"), Error::denied("no")].map(said), [ErrorKind::NotFound; 2]);
    }
}
