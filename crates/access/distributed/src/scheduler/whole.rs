//! Whether a stage is about to read all that was passed on, and once.

use std::collections::HashMap;

use ballista_core::serde::protobuf::task_status;
use ballista_scheduler::state::execution_stage::{ExecutionStage, RunningStage, SuccessfulStage};

use crate::shuffle::rows_of;

/// What a done task of a stage said: which partitions of the stage it was for, and how many rows it has for others.
struct Told<'a> {
    partitions: &'a [usize],
    rows: u64,
}

/// What a stage that is about to run does not read, or reads twice, of the stages before it; none when its books are right.
///
/// Ballista keeps where results are apart from who is done, and takes pieces out of both as executors are lost. A stage whose two
/// books differ would give an answer that misses rows, or has some twice, without a word.
pub(super) fn differs(stages: &HashMap<usize, ExecutionStage>, stage: &RunningStage) -> Option<String> {
    stage.inputs.iter().find_map(|(input, output)| {
        let Some(ExecutionStage::Successful(done)) = stages.get(input) else {
            return Some(format!("stage {} reads of stage {input}, which is not done", stage.stage_id));
        };
        let found = output.partition_locations.values().flatten().map(|location| rows_of(location).unwrap_or(0)).sum();
        differ(done.partitions, &told(done), found).map(|what| format!("stage {} reads of stage {input}: {what}", stage.stage_id))
    })
}

fn told(stage: &SuccessfulStage) -> Vec<Told<'_>> {
    let of_task = stage.task_infos.iter().filter_map(|info| match &info.task_status {
        task_status::Status::Successful(task) => {
            let rows = task.partitions.iter().map(|partition| partition.num_rows).sum();
            Some(Told { partitions: &info.global_input_partition_ids, rows })
        }
        _ => None,
    });
    of_task.collect()
}

/// Where a stage of so many partitions is not what its tasks told, each partition once and `found` rows in all.
fn differ(partitions: usize, told: &[Told<'_>], found: u64) -> Option<String> {
    let mut times = vec![0_u32; partitions];
    for partition in told.iter().flat_map(|task| task.partitions) {
        match times.get_mut(*partition) {
            Some(times) => *times += 1,
            None => return Some(format!("there is no partition {partition} of {partitions}")),
        }
    }
    if let Some(partition) = times.iter().position(|times| *times != 1) {
        return Some(format!("partition {partition} was done {} times", times[partition]));
    }
    let rows: u64 = told.iter().map(|task| task.rows).sum();
    (rows != found).then(|| format!("{found} rows of {rows}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_is_not_run_on_less_or_more_than_was_passed_on() {
        let of = |partitions, rows| Told { partitions, rows };
        assert_eq!(differ(3, &[of(&[0, 2], 5), of(&[1], 4)], 9), None);
        assert_eq!(differ(0, &[], 0), None);
        let said = |partitions, told: &[Told<'_>], found| differ(partitions, told, found).expect("a difference");
        assert_eq!(said(3, &[of(&[0, 2], 5), of(&[1], 4)], 5), "5 rows of 9", "an output is forgotten");
        assert_eq!(said(2, &[of(&[0], 5)], 5), "partition 1 was done 0 times", "nobody runs it again");
        assert_eq!(said(1, &[of(&[0], 5), of(&[0], 5)], 10), "partition 0 was done 2 times");
        assert_eq!(said(1, &[of(&[0, 7], 5)], 5), "there is no partition 7 of 1");
    }
}
