//! Foretells the byte ranges that DataFusion's Parquet reader will ask for, by taking the same steps as it does.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::RowGroupAccess;
use datafusion::datasource::physical_plan::{FileScanConfig, ParquetSource};
use datafusion::error::Result;
use datafusion::parquet::arrow::arrow_reader::RowSelection;
use datafusion::parquet::file::metadata::ParquetMetaData;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::utils::collect_columns;

use crate::hot::Cells;
use crate::scans::{Extent, Footer, Reading};

/// The byte ranges that the reader will ask for, or may, a list a row group: the chunks of the columns that it needs, of the row
/// groups (and pages) that the predicate leaves over, without those of which decoded columns are read.
pub(crate) fn row_groups(
    config: &FileScanConfig,
    source: &ParquetSource,
    file: &PartitionedFile,
    footer: &Footer,
    cells: Option<&Cells>,
    extent: Extent,
) -> Result<Vec<Vec<Range<u64>>>> {
    let Reading { physical, predicate, projection, access } = Reading::of(config, source, file, footer)?;
    let metadata = &footer.0;
    let descriptor = metadata.file_metadata().schema_descr();
    let mut roots = BTreeSet::new();
    let filtered = predicate.filter(|_| source.table_parquet_options().global.pushdown_filters);
    if let Some(predicate) = &filtered {
        roots.extend(collect_columns(predicate).iter().map(Column::index));
    }
    // Which pages of the other columns follow is known only when those of the predicate have been read.
    if filtered.is_none() || extent == Extent::Whole {
        match projection {
            Some(projection) => projection.expr_iter().for_each(|expr| needed(&expr, &physical, extent, &mut roots)),
            None => roots.extend(0..physical.fields().len()),
        }
    }
    let leaves: Vec<usize> =
        (0..descriptor.num_columns()).filter(|leaf| roots.contains(&descriptor.get_column_root_idx(*leaf))).collect();
    let decoded = cells.and_then(|cells| Some((cells, cells.parquet(&file.object_meta)?)));
    let is_decoded = |group| decoded.as_ref().is_some_and(|(cells, source)| cells.had(source, group, &leaves));
    Ok(access
        .row_group_indexes()
        .into_iter()
        .filter(|group| !is_decoded(*group))
        .map(|group| match &access.inner()[group] {
            RowGroupAccess::Selection(rows) if footer.has_pages() => pages(metadata, group, &leaves, rows),
            _ => chunks(metadata, group, &leaves),
        })
        .collect())
}

/// The file's columns that an expression needs. Of nested ones only those that are taken whole: the reader may take less
/// of the others, which counts where all of it is wanted.
fn needed(expr: &Arc<dyn PhysicalExpr>, physical: &SchemaRef, extent: Extent, roots: &mut BTreeSet<usize>) {
    let whole = extent == Extent::Whole || expr.downcast_ref::<Column>().is_some();
    for column in collect_columns(expr) {
        let Some(field) = physical.fields().get(column.index()) else { continue };
        if whole || !field.data_type().is_nested() {
            roots.insert(column.index());
        }
    }
}

fn chunks(metadata: &ParquetMetaData, group: usize, leaves: &[usize]) -> Vec<Range<u64>> {
    let group = metadata.row_group(group);
    leaves
        .iter()
        .map(|leaf| {
            let (start, len) = group.column(*leaf).byte_range();
            start..start + len
        })
        .collect()
}

fn pages(metadata: &ParquetMetaData, group: usize, leaves: &[usize], rows: &RowSelection) -> Vec<Range<u64>> {
    let Some(index) = metadata.offset_index().and_then(|index| index.get(group)) else {
        return chunks(metadata, group, leaves);
    };
    let mut ranges = Vec::new();
    for leaf in leaves {
        let locations = &index[*leaf].page_locations;
        let (start, _) = metadata.row_group(group).column(*leaf).byte_range();
        if let Some(first) = locations.first().map(|page| page.offset as u64)
            && first != start
        {
            ranges.push(start..first);
        }
        ranges.extend(rows.scan_ranges(locations));
    }
    ranges
}
