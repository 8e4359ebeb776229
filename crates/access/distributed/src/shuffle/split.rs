//! Sorts rows by their reducer with the hash that all of the engine uses, and holds a bounded amount of them.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::interleave_record_batch;
use datafusion::common::hash_utils::create_hashes;
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::repartition::REPARTITION_RANDOM_STATE;

/// Bytes of rows, with their order, that are held until all of them go to their reducers.
const HELD_BYTES: usize = 48 << 20;

/// Sorts rows by the reducers that the hash of their keys says, as all of DataFusion and Ballista do: a reducer may read
/// outputs of both.
pub(super) struct Split {
    keys: Vec<Arc<dyn PhysicalExpr>>,
    hashes: Vec<u64>,
    batches: Vec<RecordBatch>,
    /// Of each reducer: (batch, row).
    rows: Vec<Vec<(usize, usize)>>,
    pub(super) bytes: usize,
}

impl Split {
    pub(super) fn new(keys: Vec<Arc<dyn PhysicalExpr>>, reducers: usize) -> Self {
        Self { keys, hashes: Vec::new(), batches: Vec::new(), rows: vec![Vec::new(); reducers], bytes: 0 }
    }

    /// Takes rows in.
    pub(super) fn add(&mut self, batch: RecordBatch) -> Result<()> {
        let keys = self.keys.iter().map(|key| key.evaluate(&batch)?.into_array(batch.num_rows()));
        let keys = keys.collect::<Result<Vec<_>>>()?;
        self.hashes.clear();
        self.hashes.resize(batch.num_rows(), 0);
        create_hashes(&keys, REPARTITION_RANDOM_STATE.random_state(), &mut self.hashes)?;
        assert_eq!(self.hashes.len(), batch.num_rows(), "each row has a hash");
        let (number, reducers) = (self.batches.len(), self.rows.len() as u64);
        for (row, hash) in self.hashes.iter().enumerate() {
            self.rows[(hash % reducers) as usize].push((number, row));
        }
        self.bytes += batch.get_array_memory_size() + batch.num_rows() * size_of::<(usize, usize)>();
        self.batches.push(batch);
        Ok(())
    }

    /// Whether what is held should go on.
    pub(super) fn is_full(&self) -> bool {
        self.bytes >= HELD_BYTES
    }

    /// Gives up what is held.
    pub(super) fn take(&mut self) -> Rows {
        let held: usize = self.batches.iter().map(RecordBatch::num_rows).sum();
        assert_eq!(self.rows.iter().map(Vec::len).sum::<usize>(), held, "each row goes to one reducer");
        let rows = self.rows.iter_mut().map(std::mem::take).collect();
        self.bytes = 0;
        Rows { batches: std::mem::take(&mut self.batches), rows }
    }
}

/// Rows by their reducers.
pub(super) struct Rows {
    batches: Vec<RecordBatch>,
    rows: Vec<Vec<(usize, usize)>>,
}

impl Rows {
    /// The rows of a reducer, in batches of so many.
    pub(super) fn of(&self, reducer: usize, batch_rows: usize) -> impl Iterator<Item = Result<RecordBatch>> {
        let batches: Vec<&RecordBatch> = self.batches.iter().collect();
        self.rows[reducer].chunks(batch_rows).map(move |rows| Ok(interleave_record_batch(&batches, rows)?))
    }
}
