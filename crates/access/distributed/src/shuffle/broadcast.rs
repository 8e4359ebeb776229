//! Keeps a small table that all tasks of a stage read whole, so that an executor reads it once and not once a task.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ballista_core::JobId;
use ballista_core::serde::scheduler::PartitionLocation;
use datafusion::arrow::array::RecordBatch;
use datafusion::error::Result;
use parking_lot::Mutex;
use tokio::sync::OnceCell;

/// Tables kept at most, and how long one is kept that no task asks for.
const TABLES_MAX: usize = 8;
const IDLE: Duration = Duration::from_secs(10);

/// Tables that all tasks of a stage read whole, each read once by this executor: those that come while it is being read wait
/// for it. In place, they are pins in the worker's tier; else copies of at most what Ballista broadcasts.
#[derive(Default)]
pub(super) struct Broadcasts(Mutex<HashMap<Key, Kept>>);

/// Which outputs a table is made of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key(JobId, usize, Vec<(usize, Option<u64>)>);

struct Kept {
    table: Arc<OnceCell<Arc<Vec<RecordBatch>>>>,
    used: Instant,
}

impl Key {
    /// All are of one stage.
    pub(super) fn of(locations: &[PartitionLocation]) -> Self {
        let mut outputs: Vec<_> =
            locations.iter().map(|location| (location.partition_id.partition_id, location.file_id)).collect();
        outputs.sort_unstable();
        let of = locations.first().map(|location| (location.partition_id.job_id.clone(), location.partition_id.stage_id));
        let (job, stage) = of.unwrap_or_else(|| (JobId::from(String::new()), 0));
        Self(job, stage, outputs)
    }
}

impl Broadcasts {
    /// The table, from `read` when nobody has read it.
    pub(super) async fn get(
        &self,
        key: Key,
        read: impl Future<Output = Result<Vec<RecordBatch>>>,
    ) -> Result<Arc<Vec<RecordBatch>>> {
        let table = {
            let mut kept = self.0.lock();
            trim(&mut kept);
            if !kept.contains_key(&key) && kept.len() >= TABLES_MAX {
                let oldest = kept.iter().min_by_key(|(_, kept)| kept.used).map(|(key, _)| key.clone());
                oldest.and_then(|key| kept.remove(&key));
            }
            assert!(kept.contains_key(&key) || kept.len() < TABLES_MAX, "{} tables are kept, and one comes", kept.len());
            let kept = kept.entry(key).or_insert_with(|| Kept { table: Arc::default(), used: forebay_runtime::now() });
            kept.used = forebay_runtime::now();
            Arc::clone(&kept.table)
        };
        table.get_or_try_init(|| async { read.await.map(Arc::new) }).await.cloned()
    }

    /// Lets go of what no task asked for lately.
    pub(super) fn trim(&self) {
        trim(&mut self.0.lock());
    }
}

fn trim(kept: &mut HashMap<Key, Kept>) {
    kept.retain(|_, kept| kept.used.elapsed() < IDLE);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u64) -> Key {
        Key(JobId::from("job".to_string()), 1, vec![(0, Some(number))])
    }

    #[tokio::test]
    async fn a_table_is_read_once_and_again_after_an_error() {
        let tables = Broadcasts::default();
        let fails = tables.get(key(1), async { datafusion::common::exec_err!("lost") }).await;
        assert!(fails.is_err());
        let first = tables.get(key(1), async { Ok(Vec::new()) }).await.unwrap();
        let again = tables.get(key(1), async { panic!("read twice") }).await.unwrap();
        assert!(Arc::ptr_eq(&first, &again));
        for number in 2..20 {
            tables.get(key(number), async { Ok(Vec::new()) }).await.unwrap();
        }
        assert_eq!(tables.0.lock().len(), TABLES_MAX);
    }
}
