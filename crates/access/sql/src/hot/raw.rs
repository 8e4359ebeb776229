//! DataFusion's Parquet reader, driven by hand for a whole file or for some of its row groups.

use std::collections::VecDeque;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::ParquetAccessPlan;
use datafusion::error::Result;
use datafusion_datasource::morsel::{MorselPlanner, Morselizer};
use futures::stream::{self, BoxStream, StreamExt};

/// The engine's own reader of Parquet.
#[derive(Clone)]
pub(super) struct Raw(Arc<dyn Morselizer>);

impl Raw {
    pub(super) fn new(morselizer: Box<dyn Morselizer>) -> Self {
        Self(Arc::from(morselizer))
    }

    /// All of a file that the reader's own pruning leaves over.
    pub(super) async fn read(&self, file: PartitionedFile) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let mut planners: VecDeque<Box<dyn MorselPlanner>> = VecDeque::from([self.0.plan_file(file)?]);
        let mut streams = Vec::new();
        while let Some(planner) = planners.pop_front() {
            let Some(mut plan) = planner.plan()? else { continue };
            streams.extend(plan.take_morsels().into_iter().map(|morsel| morsel.into_stream()));
            // What a planner makes comes before what waits behind it.
            let pending = if let Some(pending) = plan.take_pending_planner() { Some(pending.await?) } else { None };
            for next in plan.take_ready_planners().into_iter().chain(pending).rev().collect::<Vec<_>>() {
                planners.push_front(next);
            }
        }
        Ok(stream::iter(streams).flatten().boxed())
    }

    /// Some row groups of a file that has `count` of them.
    pub(super) async fn row_groups(
        &self,
        file: &PartitionedFile,
        wanted: &[usize],
        count: usize,
    ) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let mut access = ParquetAccessPlan::new_none(count);
        wanted.iter().for_each(|row_group| access.scan(*row_group));
        let mut file = file.clone();
        file.range = None;
        file.extensions.insert(access);
        self.read(file).await
    }
}
