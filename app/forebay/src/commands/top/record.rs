//! A look for programs.

use std::collections::BTreeMap;
use std::time::SystemTime;

use forebay_api::{Placement, Status};
use forebay_protocol::{JobState, TransferState};
use forebay_types::WorkerId;
use serde::Serialize;

use super::history::{History, Of, Rates};
use super::sample::Sample;

/// A look for programs.
#[derive(Serialize)]
pub(super) struct Record<'a> {
    unix_ms: u64,
    status: Status<'a>,
    placement: Placement<'a>,
    queues: BTreeMap<String, u32>,
    jobs: Option<&'a [JobState]>,
    transfers: Option<&'a [TransferState]>,
    /// A second, since the look before; none at the first one.
    rates: Option<Rates>,
    workers: BTreeMap<String, Rates>,
    mounts: BTreeMap<String, Rates>,
}

impl<'a> Record<'a> {
    /// A look, and what happened a second since the one before it.
    pub(super) fn of(sample: &'a Sample, history: &History) -> Self {
        let unix = sample.at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let worker = |id: WorkerId| Some((id.to_string(), history.now(&Of::Worker(id))?));
        let mount = |name: &str| Some((name.to_string(), history.now(&Of::Mount(name.to_string()))?));
        Self {
            unix_ms: u64::try_from(unix.as_millis()).unwrap_or(u64::MAX),
            status: Status::of(&sample.status),
            placement: Placement::of(&sample.placement),
            queues: sample.queues.iter().map(|(worker, queue)| (worker.to_string(), *queue)).collect(),
            jobs: sample.jobs.as_deref(),
            transfers: sample.transfers.as_deref(),
            rates: history.now(&Of::Cluster),
            workers: sample.status.workers.iter().filter_map(|(info, _, _)| worker(info.id)).collect(),
            mounts: sample.status.mounts.iter().filter_map(|of| mount(of.mount.name.as_str())).collect(),
        }
    }
}
