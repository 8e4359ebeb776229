//! What a scan will read of table files, told before it runs.

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::Schema;
use datafusion::common::ScalarValue;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::error::Result;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::utils::{Guarantee, LiteralGuarantee};
use forebay_table::{BloomInfo, Table};
use object_store::ObjectStore;

use super::metadata::Tables;
use super::pruning::may_have;
use super::source::TableSource;
use super::statistics::leaf;
use crate::error::external;
use crate::scans::Extent;

/// Byte ranges of a file, a list a row group.
type RowGroups = Vec<Vec<Range<u64>>>;

/// Row groups of which one may be expected to have a row with a key that is looked for; with more, hardly any has.
const ROW_GROUPS_A_ROW: u128 = 8;
/// Rows for each byte of a bloom filter up to which it may be expected to rule out its row group. A value takes 1.3 bytes of it: with
/// more rows each value comes so often that every row group most likely has it.
const ROWS_A_BLOOM_BYTE: u64 = 8;

/// A scan of table files, for who brings what it reads.
pub(crate) struct TableInput<'a> {
    source: &'a TableSource,
    tables: Tables,
}

impl<'a> TableInput<'a> {
    /// None for a scan of other files.
    pub(crate) fn of(scan: &'a FileScanConfig, runtime: &RuntimeEnv) -> Option<Self> {
        let source = scan.file_source().downcast_ref::<TableSource>()?;
        Some(Self { source, tables: Tables::cached(runtime.cache_manager.get_file_metadata_cache()) })
    }

    /// The least and the largest value that a column may have in each row group of a file; none where they are not known.
    pub(crate) fn bounds(&self, file: &PartitionedFile, column: &str) -> Option<Vec<(ScalarValue, ScalarValue)>> {
        let table = self.tables.known(&file.object_meta)?.table;
        let known = table.statistics(leaf(&table, &self.source.wanted().schema, column)?).ok()?;
        let of = |bounds: &ArrayRef, row_group| ScalarValue::try_from_array(bounds, row_group).ok();
        (0..table.row_groups()).map(|row_group| of(&known.min, row_group).zip(of(&known.max, row_group))).collect()
    }

    /// What will be read of a file; nothing of one whose metadata is not known yet.
    pub(crate) fn known(&self, file: &PartitionedFile) -> Result<RowGroups> {
        match self.tables.known(&file.object_meta) {
            Some(opened) => self.row_groups(file, &opened.table),
            None => Ok(Vec::new()),
        }
    }

    /// The same, for which the metadata is read where it is not known.
    pub(crate) async fn read(&self, store: &Arc<dyn ObjectStore>, file: &PartitionedFile, extent: Extent) -> Result<RowGroups> {
        let table = self.tables.open(store, &file.object_meta).await?.table;
        match extent {
            Extent::Likely => self.row_groups(file, &table),
            Extent::Whole => self.whole(store, file, &table).await,
        }
    }

    /// The bloom filters of what is looked for, and all cells of the row groups that may have it.
    async fn whole(&self, store: &Arc<dyn ObjectStore>, file: &PartitionedFile, table: &Table) -> Result<RowGroups> {
        let wanted = self.source.wanted();
        let (reading, keys) = (wanted.of(table, file.range.as_ref())?, wanted.keys(table)?);
        let mut blooms = Vec::new();
        for &row_group in &reading.row_groups {
            blooms.extend(keys.iter().filter_map(|keys| keys.bloom(table, row_group)).map(BloomInfo::range));
        }
        let mut row_groups = vec![blooms];
        let location = &file.object_meta.location;
        for row_group in may_have(store, location, table, &keys, reading.row_groups.clone()).await? {
            for projection in reading.projections() {
                row_groups.push(table.plan(row_group, projection).map_err(external)?.ranges());
            }
        }
        Ok(row_groups)
    }

    /// The cells of the columns that the filter and the query need, of the row groups that the filter leaves over: as the reader
    /// asks for them. Where no row passes it leaves the query's columns alone, which only the filter's can tell: so where a key is
    /// looked for that a row group hardly has, these are all. Of a row group that a bloom filter will most likely rule out it is the
    /// filter alone: one of few values would hardly do so.
    fn row_groups(&self, file: &PartitionedFile, table: &Table) -> Result<RowGroups> {
        let wanted = self.source.wanted();
        let reading = wanted.of(table, file.range.as_ref())?;
        let sought = if let Some(filter) = &wanted.filter { Sought::by(filter, &wanted.schema, table)? } else { Vec::new() };
        let keys = wanted.keys(table)?;
        let mut row_groups = Vec::with_capacity(reading.row_groups.len());
        for &row_group in &reading.row_groups {
            let rows = table.row_group_rows(row_group);
            let mut blooms = keys.iter().filter_map(|keys| keys.bloom(table, row_group)).map(BloomInfo::range);
            if let Some(bloom) = blooms.find(|bloom| (bloom.end - bloom.start) * ROWS_A_BLOOM_BYTE >= rows as u64) {
                row_groups.push(vec![bloom]);
                continue;
            }
            let mut ranges: Vec<Range<u64>> = Vec::new();
            let is_rare = sought.iter().any(|sought| sought.is_rare(row_group, rows));
            for projection in reading.projections().take(if is_rare { 1 } else { usize::MAX }) {
                let plan = table.plan(row_group, projection).map_err(external)?;
                for range in plan.ranges() {
                    if !ranges.contains(&range) {
                        ranges.push(range);
                    }
                }
            }
            row_groups.push(ranges);
        }
        Ok(row_groups)
    }
}

/// A column of whole numbers that is to have one of some values: a key that is looked for.
struct Sought {
    values: u128,
    /// From how many numbers those of each row group are; none where nothing is known of them.
    among: Vec<Option<u128>>,
}

impl Sought {
    /// Those without which no row passes a filter.
    fn by(filter: &Arc<dyn PhysicalExpr>, schema: &Schema, table: &Table) -> Result<Vec<Self>> {
        let mut all = Vec::new();
        for named in LiteralGuarantee::analyze(filter) {
            let Some(leaf) = leaf(table, schema, &named.column.name).filter(|_| named.guarantee == Guarantee::In) else {
                continue;
            };
            let known = table.statistics(leaf).map_err(external)?;
            let mut among = Vec::with_capacity(table.row_groups());
            for row_group in 0..table.row_groups() {
                let least = whole(&ScalarValue::try_from_array(&known.min, row_group)?);
                let most = whole(&ScalarValue::try_from_array(&known.max, row_group)?);
                among.push(least.zip(most).map(|(least, most)| most.abs_diff(least) + 1));
            }
            all.push(Self { values: named.literals.len() as u128, among });
        }
        Ok(all)
    }

    /// Whether a row group of so many rows most likely has none of the values, its numbers being spread evenly.
    fn is_rare(&self, row_group: usize, rows: usize) -> bool {
        self.among[row_group].is_some_and(|among| self.values * rows as u128 * ROW_GROUPS_A_ROW < among)
    }
}

fn whole(value: &ScalarValue) -> Option<i128> {
    match value {
        ScalarValue::Int8(value) => value.map(i128::from),
        ScalarValue::Int16(value) => value.map(i128::from),
        ScalarValue::Int32(value) => value.map(i128::from),
        ScalarValue::Int64(value) => value.map(i128::from),
        ScalarValue::UInt8(value) => value.map(i128::from),
        ScalarValue::UInt16(value) => value.map(i128::from),
        ScalarValue::UInt32(value) => value.map(i128::from),
        ScalarValue::UInt64(value) => value.map(i128::from),
        _ => None,
    }
}
