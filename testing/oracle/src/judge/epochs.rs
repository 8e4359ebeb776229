//! Epochs: what is said of the cluster in one is said by one coordinator, and who has heard of a later one never goes back.

use std::collections::BTreeMap;

use super::{Rule, Violation};

/// What everybody was shown of the cluster.
#[derive(Debug, Default)]
pub struct Views {
    /// What a version of an epoch says, as a number that hardly anything else has, and who was the first to be shown it.
    said: BTreeMap<(u64, u64), (u64, String)>,
    /// The epoch of which each has heard last.
    heard: BTreeMap<String, u64>,
}

impl Views {
    /// Takes down that somebody is shown a version of an epoch, which says this; what must not be of that. Two coordinators that write in one epoch
    /// count their versions each by itself, and say two things by one number.
    pub fn note(&mut self, who: &str, (epoch, version): (u64, u64), says: u64) -> Option<Violation> {
        let before = self.heard.insert(who.to_owned(), epoch);
        if let Some(before) = before.filter(|before| *before > epoch) {
            return Some(Violation::new(Rule::OneEpoch, format!("{who} is shown epoch {epoch}, after {before}")));
        }
        let (first, shown_to) = self.said.entry((epoch, version)).or_insert_with(|| (says, who.to_owned()));
        (*first != says).then(|| {
            let what = format!("version {version} of epoch {epoch} says one thing to {shown_to}, and another one to {who}");
            Violation::new(Rule::OneEpoch, what)
        })
    }

    /// Versions that anybody was shown.
    pub fn count(&self) -> usize {
        self.said.len()
    }
}
