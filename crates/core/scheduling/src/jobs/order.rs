use super::books::{Job, Schedule};
use super::model::{JobId, Policy};

impl Schedule {
    /// Jobs with tasks that wait, in the order in which free slots are offered to them.
    pub(super) fn order_for_slots(&self) -> Vec<JobId> {
        self.ordered(|job| job.pending > 0, |job| job.running)
    }

    /// Jobs with tasks that wait, in the order in which their input is brought: as the slots are expected to be given.
    pub(super) fn order_for_transfers(&self) -> Vec<JobId> {
        self.ordered(|job| job.pending > 0, |job| job.ready)
    }

    fn ordered(&self, takes_part: impl Fn(&Job) -> bool, fair: impl Fn(&Job) -> usize) -> Vec<JobId> {
        let by_arrival = self.settings.policy == Policy::Fifo;
        let mut order: Vec<_> = self
            .jobs
            .iter()
            .filter(|(_, job)| takes_part(job))
            .map(|(id, job)| (-i64::from(job.priority), if by_arrival { 0 } else { fair(job) }, job.arrival, *id))
            .collect();
        order.sort_unstable();
        order.into_iter().map(|(.., id)| id).collect()
    }
}
