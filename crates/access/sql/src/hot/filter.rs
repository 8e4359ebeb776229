//! Drops rows of decoded columns by filters that joins and top-K sorts make while they run, as long as that pays.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use datafusion::arrow::array::{Array, BooleanArray, RecordBatch};
use datafusion::arrow::compute::{filter_record_batch, prep_null_mask_filter};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::ScalarValue;
use datafusion::common::cast::as_boolean_array;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::utils::{collect_columns, conjunction, reassign_expr_columns, split_conjunction};
use datafusion::physical_plan::metrics::Count;

use crate::scans::dynamic_filters;

/// Share of the rows that may be left over for a filter to be worth its time: it looks rows up in a join's hash table, which
/// the join does once more for those that are left.
const LEFT: f64 = 0.5;
/// Batches that pass a filter by after it has left more, or of which only a sample is wanted; each time in a row twice as many.
const PAUSE: u64 = 15;
const PAUSE_MAX: u64 = 255;

/// Filters that come into being while the query runs, of joins and of top-K sorts, on decoded columns. The engine's reader
/// only prunes by them; here the columns lie in memory already, and rows that are dropped are not repartitioned, looked up and
/// copied on their way to the join. The filter above the scan and the join decide all the same: to let a row pass is never
/// wrong.
pub(super) struct RowFilter {
    /// What is known before the query runs: spares the others the rows that the filter above the scan will drop.
    fixed: Option<Arc<dyn PhysicalExpr>>,
    /// Of joins that look up the scan's rows as they come: to drop rows here spares these nothing, but what they leave tells
    /// whether the others are worth anything.
    near: Vec<Dynamic>,
    /// A near join drops most rows itself.
    is_covered: AtomicBool,
    far: Vec<Dynamic>,
    /// Rows dropped.
    dropped: Count,
}

struct Dynamic {
    filter: Arc<dyn PhysicalExpr>,
    /// Batches that it still lets pass by, and how many the next time. Several threads may change them at once: which batches
    /// pass by is of no consequence.
    passing: AtomicU64,
    pause: AtomicU64,
}

impl RowFilter {
    /// None when nothing of the predicate comes while the query runs, or it needs columns that the scan does not read. `near`
    /// has the filters of joins that look up the scan's rows as they come.
    pub(super) fn of(
        predicate: &Arc<dyn PhysicalExpr>,
        near: &HashSet<u64>,
        roots: &BTreeSet<usize>,
        stream: &SchemaRef,
        dropped: Count,
    ) -> Result<Option<Self>> {
        let (mut fixed, mut near_ones, mut far) = (Vec::new(), Vec::new(), Vec::new());
        for part in split_conjunction(predicate) {
            if !collect_columns(part).iter().all(|column| roots.contains(&column.index())) {
                continue;
            }
            let filters = dynamic_filters(part);
            let is_near = |filter: &Arc<dyn PhysicalExpr>| filter.expression_id().is_some_and(|id| near.contains(&id));
            let of_stream = reassign_expr_columns(Arc::clone(part), stream)?;
            if filters.is_empty() {
                fixed.push(of_stream);
            } else {
                let ones = if filters.iter().any(is_near) { &mut near_ones } else { &mut far };
                ones.push(Dynamic { filter: of_stream, passing: AtomicU64::new(0), pause: AtomicU64::new(PAUSE) });
            }
        }
        let fixed = (!fixed.is_empty()).then(|| conjunction(fixed));
        Ok((!far.is_empty()).then(|| Self { fixed, near: near_ones, is_covered: AtomicBool::new(false), far, dropped }))
    }

    /// The rows of a batch that may be wanted.
    pub(super) fn apply(&self, batch: RecordBatch) -> Result<RecordBatch> {
        let near: Vec<&Dynamic> = self.near.iter().filter(|filter| filter.is_due()).collect();
        let skipped = near.is_empty() && self.is_covered.load(Ordering::Relaxed);
        let far: Vec<&Dynamic> = self.far.iter().filter(|filter| !skipped && filter.is_due()).collect();
        if near.is_empty() && far.is_empty() {
            return Ok(batch);
        }
        let rows = batch.num_rows();
        let mut left = match &self.fixed {
            Some(fixed) => match mask(fixed, &batch)? {
                Some(mask) => kept(&batch, &mask)?.unwrap_or(batch),
                None => batch,
            },
            None => batch,
        };
        if !near.is_empty() && left.num_rows() > 0 {
            let mut covers = false;
            for filter in near {
                let Some(mask) = mask(&filter.filter, &left)? else { continue };
                let kept = kept(&left, &mask)?;
                covers |= kept.is_some();
                filter.pass();
                left = kept.unwrap_or(left);
            }
            self.is_covered.store(covers, Ordering::Relaxed);
        }
        if !self.is_covered.load(Ordering::Relaxed) {
            for filter in far {
                if left.num_rows() == 0 {
                    break;
                }
                let Some(mask) = mask(&filter.filter, &left)? else { continue };
                match kept(&left, &mask)? {
                    Some(kept) => {
                        filter.pause.store(PAUSE, Ordering::Relaxed);
                        left = kept;
                    }
                    None => filter.pass(),
                }
            }
        }
        assert!(left.num_rows() <= rows, "filters left {} rows of {rows}", left.num_rows());
        self.dropped.add(rows - left.num_rows());
        Ok(left)
    }
}

impl Dynamic {
    fn is_due(&self) -> bool {
        let passing = self.passing.load(Ordering::Relaxed);
        if passing > 0 {
            self.passing.store(passing - 1, Ordering::Relaxed);
        }
        passing == 0
    }

    /// The next batches pass by.
    fn pass(&self) {
        let pause = self.pause.load(Ordering::Relaxed);
        assert!((PAUSE..=PAUSE_MAX).contains(&pause), "a filter rests for {pause} batches");
        self.passing.store(pause, Ordering::Relaxed);
        self.pause.store((pause * 2).min(PAUSE_MAX), Ordering::Relaxed);
    }
}

/// Which rows of a batch a filter leaves; none where it has not got its values yet.
fn mask(filter: &Arc<dyn PhysicalExpr>, batch: &RecordBatch) -> Result<Option<BooleanArray>> {
    let values = match filter.evaluate(batch)? {
        ColumnarValue::Scalar(ScalarValue::Boolean(Some(true))) => return Ok(None),
        values => values.into_array(batch.num_rows())?,
    };
    let mask = as_boolean_array(&values)?;
    Ok(Some(if mask.null_count() > 0 { prep_null_mask_filter(mask) } else { mask.clone() }))
}

/// The rows of a batch that a mask leaves; none where they are too many to copy them.
fn kept(batch: &RecordBatch, mask: &BooleanArray) -> Result<Option<RecordBatch>> {
    if mask.true_count() as f64 > batch.num_rows() as f64 * LEFT {
        return Ok(None);
    }
    filter_record_batch(batch, mask).map(Some).map_err(DataFusionError::from)
}

#[cfg(test)]
mod planted {
    use datafusion::physical_expr::expressions::lit;

    use super::*;

    #[test]
    #[should_panic(expected = "a filter rests for 0 batches")]
    fn a_filter_that_never_rests() {
        Dynamic { filter: lit(true), passing: AtomicU64::new(0), pause: AtomicU64::new(0) }.pass();
    }
}
