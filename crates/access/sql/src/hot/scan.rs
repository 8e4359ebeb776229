//! What one Parquet file's scan wants of decoded columns, and which scans these can't answer.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileScanConfig, FileSource, ParquetSource};
use datafusion::error::Result;
use datafusion::parquet::basic::Type;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::projection::Projector;
use datafusion::physical_expr::utils::{collect_columns, reassign_expr_columns, split_conjunction};
use datafusion::physical_plan::metrics::Count;

use crate::hot::far::{self, Costs, Wanted};
use crate::hot::filter::RowFilter;
use crate::scans::{Footer, Reading};

/// What a scan needs of one file: which row groups, which columns, and what becomes of them.
pub(super) struct FileScan {
    pub(super) row_groups: Vec<usize>,
    pub(super) row_groups_in_file: usize,
    /// The leaves to read, ascending, each with the field that a batch has of it.
    pub(super) leaves: Vec<usize>,
    pub(super) stream: SchemaRef,
    rows: Vec<usize>,
    filter: Option<RowFilter>,
    /// The parts of the predicate that are on columns of the scan, and whether there is none at all.
    parts: Vec<Arc<dyn PhysicalExpr>>,
    wants_all: bool,
    costs: Costs,
    projector: Projector,
    output: SchemaRef,
}

impl FileScan {
    /// None for what decoded columns can't answer: nested columns, none at all, types that depend on options.
    pub(super) fn of(
        config: &FileScanConfig,
        source: &ParquetSource,
        file: &PartitionedFile,
        footer: &Footer,
        near: &HashSet<u64>,
        dropped: Count,
    ) -> Result<Option<Self>> {
        let reading = Reading::of(config, source, file, footer)?;
        let Some(projection) = reading.projection.clone() else { return Ok(None) };
        let roots: BTreeSet<usize> =
            projection.expr_iter().flat_map(|expr| collect_columns(&expr)).map(|column| column.index()).collect();
        let descriptor = footer.0.file_metadata().schema_descr();
        let mut leaves = Vec::with_capacity(roots.len());
        for root in &roots {
            let of_root = (0..descriptor.num_columns()).filter(|leaf| descriptor.get_column_root_idx(*leaf) == *root);
            let of_root: Vec<_> = of_root.collect();
            let nested = reading.physical.fields().get(*root).is_none_or(|field| field.data_type().is_nested());
            match of_root[..] {
                [leaf] if !nested && descriptor.column(leaf).physical_type() != Type::INT96 => leaves.push(leaf),
                _ => return Ok(None),
            }
        }
        if leaves.is_empty() {
            return Ok(None);
        }
        let fields: Vec<Arc<Field>> = roots.iter().map(|root| Arc::clone(&reading.physical.fields()[*root])).collect();
        let stream = Arc::new(Schema::new_with_metadata(fields, reading.physical.metadata().clone()));
        let filter = match &reading.predicate {
            Some(predicate) => RowFilter::of(predicate, near, &roots, &stream, dropped)?,
            None => None,
        };
        let mut parts = Vec::new();
        for part in reading.predicate.iter().flat_map(split_conjunction) {
            if collect_columns(part).iter().all(|column| roots.contains(&column.index())) {
                parts.push(reassign_expr_columns(Arc::clone(part), &stream)?);
            }
        }
        let projection = projection.try_map_exprs(|expr| reassign_expr_columns(expr, &stream))?;
        let projector = projection.make_projector(&stream)?;
        let table = source.table_schema().table_schema();
        let output = source.projection().map(|projection| projection.project_schema(table)).transpose()?;
        let Some(output) = output.map(Arc::new) else { return Ok(None) };
        assert_eq!(
            (leaves.len(), stream.fields().len()),
            (roots.len(), roots.len()),
            "each column of the stream is one of the file's"
        );
        let row_groups = reading.access.row_group_indexes();
        let rows = footer.0.row_groups().iter().map(|group| usize::try_from(group.num_rows()).unwrap_or(0)).collect();
        Ok(Some(Self {
            row_groups,
            row_groups_in_file: footer.0.num_row_groups(),
            leaves,
            stream,
            rows,
            filter,
            parts,
            wants_all: reading.predicate.is_none(),
            costs: Costs::new(&footer.0, &reading.access),
            projector,
            output,
        }))
    }

    /// Rows of a row group.
    pub(super) fn rows(&self, row_group: usize) -> usize {
        self.rows.get(row_group).copied().unwrap_or(0)
    }

    /// Bytes that the file has of what the scan reads of row groups, and their rows.
    pub(super) fn whole(&self, row_groups: &[usize]) -> (u64, u64) {
        let each = row_groups.iter().map(|row_group| self.costs.whole(*row_group, &self.leaves));
        each.fold((0, 0), |(bytes, rows), (more, of)| (bytes.saturating_add(more), rows.saturating_add(of)))
    }

    /// What a worker of another host is to select of a row group, by what is known now; `limit` is the scan's.
    pub(super) fn wanted(&self, row_group: usize, limit: Option<usize>) -> Wanted {
        let tests = far::steps(&self.parts, &self.stream);
        // Rows that a filter above drops do not count.
        let limit = limit.filter(|_| self.wants_all).map(|limit| limit as u64);
        let costs = self.costs.of(row_group, (self.leaves.as_slice(), self.stream.as_ref()), &tests, limit);
        Wanted { part: row_group, columns: self.leaves.clone(), tests, limit, costs }
    }

    /// What the scan gives for a batch of its columns, as the engine's own reader does it.
    pub(super) fn output(&self, batch: RecordBatch) -> Result<RecordBatch> {
        let batch = if let Some(filter) = &self.filter { filter.apply(batch)? } else { batch };
        let projected = self.projector.project_batch(&batch)?;
        if self.projector.output_schema() == &self.output {
            return Ok(projected);
        }
        let (_, arrays, rows) = projected.into_parts();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.output), arrays, &options)?)
    }
}
