//! What clients are shown of the cluster: what one coordinator says in its epoch.

use forebay_client::Client;
use forebay_protocol::ClusterView;
use xxhash_rust::xxh3::xxh3_64;

use crate::world::course::Course;

/// A client, by its name, and what it was shown last: epoch and version.
pub(super) struct Looks {
    who: String,
    last: Option<(u64, u64)>,
}

impl Looks {
    pub(super) fn of(number: usize) -> Self {
        Self { who: format!("client {number}"), last: None }
    }

    /// Looks at the client's view, on the way of what the client does: a task for it would have seeds say other worlds.
    pub(super) fn look(&mut self, client: &Client, course: &Course) {
        let view = client.view();
        let of = (view.epoch, view.version);
        if self.last.replace(of) != Some(of) {
            course.shown(&self.who, of, says(&view));
        }
    }
}

/// A number made of what a view says of mounts, pins and workers. How often it is asked for may be set anew without another version.
fn says(view: &ClusterView) -> u64 {
    let ClusterView { mounts, pins, workers, losses, .. } = view;
    xxh3_64(format!("{mounts:?} {pins:?} {workers:?} {losses}").as_bytes())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use forebay_protocol::WorkerInfo;
    use forebay_types::{HostId, WorkerId};

    use super::*;

    #[test]
    fn another_worker_is_another_view_and_another_pace_is_not() {
        let one = ClusterView { version: 1, epoch: 1, ..ClusterView::default() };
        let worker = WorkerInfo::new(WorkerId(1), HostId("h".to_owned()), "w:1");
        let other = ClusterView { workers: vec![worker], ..one.clone() };
        let slower = ClusterView { poll: Some(Duration::from_secs(9)), ..one.clone() };
        assert_ne!(says(&one), says(&other));
        assert_eq!(says(&one), says(&slower));
    }
}
