//! The names of a stage's outputs: paths in temporary nodes, and the numbers by which Ballista tells nodes from files.

use ballista_core::JobId;
use ballista_core::serde::protobuf::PartitionStats;
use ballista_core::serde::scheduler::PartitionLocation;

/// Where jobs keep what passes between their stages.
pub(crate) const ROOT: &str = "/tmp/shuffle";

/// Says of a map's output that it is in nodes. Ballista keeps a number with each output and gives it to who reads it; files
/// of its own have the numbers of tasks.
const IN_NODES: u64 = 1 << 63;
/// Says of one in nodes that it is a key-value of the stage's table.
const SMALL: u64 = 1 << 62;
/// Bits of a number that differ from task to task by chance: a stage that runs again numbers its tasks anew.
const CHANCE_BITS: u32 = 40;

/// Whether a name can be a job's: one that leads nowhere but below where jobs keep what they pass on.
pub(crate) fn is_job_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

/// A job's directory.
pub(crate) fn job_path(job: &str) -> String {
    format!("{ROOT}/{job}")
}

/// A stage of a job.
#[derive(Clone, Debug)]
pub(super) struct StagePlace(String);

impl StagePlace {
    pub(super) fn new(job: &JobId, stage: usize) -> Self {
        Self(format!("{}/{stage}", job_path(job.as_str())))
    }

    /// Its directory.
    pub(super) fn directory(&self) -> &str {
        &self.0
    }

    /// The bag of a reducer.
    pub(super) fn bag(&self, reducer: usize) -> String {
        format!("{}/{reducer}", self.0)
    }

    /// The table of small outputs, of all reducers: they come and go many with one message.
    pub(super) fn table(&self) -> String {
        format!("{}/small", self.0)
    }
}

/// The rows that an output was told to have; none where it was not said.
pub(crate) fn rows_of(location: &PartitionLocation) -> Option<u64> {
    // The fields are Ballista's own; what goes by wire is everybody's.
    let told: PartitionStats = location.partition_stats.into();
    u64::try_from(told.num_rows).ok()
}

/// Whether an output with this number lies in nodes, and not with the executor that wrote it.
pub(crate) fn is_in_nodes(file: Option<u64>) -> bool {
    MapNumber::of_output(file).is_some()
}

/// The number of a map's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct MapNumber(u64);

impl MapNumber {
    /// Of a task.
    pub(super) fn of_task(task: usize) -> Self {
        let chance = forebay_runtime::random::<u64>() >> (64 - CHANCE_BITS);
        Self(((task as u64) << CHANCE_BITS | chance) & (SMALL - 1))
    }

    /// Of an output that is read; none when it is in a file.
    pub(super) fn of_output(file: Option<u64>) -> Option<Self> {
        file.filter(|number| number & IN_NODES != 0).map(|number| Self(number & !(IN_NODES | SMALL)))
    }

    /// Whether an output in nodes is in the table.
    pub(super) fn is_small(file: Option<u64>) -> bool {
        file.is_some_and(|number| number & SMALL != 0)
    }

    /// As Ballista keeps it of an output in nodes.
    pub(super) fn in_nodes(self, small: bool) -> u64 {
        let marks = self.0 & (IN_NODES | SMALL);
        assert_eq!(marks, 0, "a number leaves room for where its output is");
        self.0 | IN_NODES | if small { SMALL } else { 0 }
    }

    /// As Ballista keeps it of an output in a file.
    pub(super) fn in_file(self) -> u64 {
        self.0
    }

    /// The name in a reducer's bag.
    pub(super) fn name(self) -> String {
        format!("{}-{:010x}", self.0 >> CHANCE_BITS, self.0 & ((1 << CHANCE_BITS) - 1))
    }

    /// The name in the stage's table.
    pub(super) fn key(self, reducer: usize) -> String {
        format!("{reducer}-{}", self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_says_where_an_output_is() {
        let number = MapNumber::of_task(17);
        assert!(number.name().starts_with("17-"), "{}", number.name());
        for small in [false, true] {
            let kept = Some(number.in_nodes(small));
            assert_eq!(MapNumber::of_output(kept), Some(number));
            assert_eq!(MapNumber::is_small(kept), small);
        }
        assert_eq!(MapNumber::of_output(Some(number.in_file())), None);
        assert_eq!(MapNumber::of_output(None), None);
        assert_ne!(MapNumber::of_task(17), number, "the same task of a later attempt");
    }
}
