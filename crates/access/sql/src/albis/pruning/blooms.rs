//! Leaves out the row groups that have none of the values that are looked for, by the bloom filters of their columns.

use std::sync::Arc;

use datafusion::arrow::array::Array;
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::utils::{Guarantee, LiteralGuarantee};
use forebay_table::{BloomInfo, Table, key_hashes};
use object_store::ObjectStore;
use object_store::path::Path;

use crate::albis::rows::is_number;
use crate::albis::statistics::leaf;
use crate::error::external;
use crate::location::shown;

/// Values beyond which a filter hardly leaves anything out: of as many that are not there, one in four row groups has one that passes.
const VALUES_MAX: usize = 32;
/// Filters that are read at once.
const AT_ONCE: usize = 32;

/// A column with bloom filters that is to have one of some values.
pub(in crate::albis) struct Keys {
    leaf: usize,
    hashes: Vec<u64>,
}

impl Keys {
    /// Where the filter is that tells of a row group.
    pub(in crate::albis) fn bloom<'a>(&self, table: &'a Table, row_group: usize) -> Option<&'a BloomInfo> {
        table.bloom(row_group, self.leaf)
    }
}

/// What a predicate looks for by `=` and `IN` in columns that have bloom filters: no row meets it that has none of the values.
pub(in crate::albis) fn keys(predicate: &Arc<dyn PhysicalExpr>, schema: &Schema, table: &Table) -> Vec<Keys> {
    let mut all = Vec::new();
    for named in LiteralGuarantee::analyze(predicate) {
        let is_number = schema.field_with_name(&named.column.name).is_ok_and(is_number);
        if named.guarantee != Guarantee::In || named.literals.len() > VALUES_MAX || is_number {
            continue;
        }
        let Some(leaf) = leaf(table, schema, &named.column.name) else { continue };
        if (0..table.row_groups()).any(|row_group| table.bloom(row_group, leaf).is_some())
            && let Some(hashes) = hashes(named.literals, table.schema().leaves()[leaf].data_type())
        {
            all.push(Keys { leaf, hashes });
        }
    }
    all
}

/// The hashes of values of a column's type; none where one of them is of another, or null.
fn hashes(values: impl IntoIterator<Item = ScalarValue>, data_type: &DataType) -> Option<Vec<u64>> {
    let values = ScalarValue::iter_to_array(values).ok()?;
    if values.data_type() != data_type || values.null_count() > 0 {
        return None;
    }
    key_hashes(&values)
}

/// The row groups among `candidates` that may have one of the values of each key.
pub(in crate::albis) async fn may_have(
    store: &Arc<dyn ObjectStore>,
    location: &Path,
    table: &Table,
    keys: &[Keys],
    candidates: Vec<usize>,
) -> Result<Vec<usize>> {
    let mut left = candidates;
    for key in keys {
        let mut kept = Vec::with_capacity(left.len());
        for some in left.chunks(AT_ONCE) {
            let ranges = some.iter().filter_map(|&row_group| key.bloom(table, row_group)).map(BloomInfo::range);
            let ranges = ranges.collect::<Vec<_>>();
            let bytes = if ranges.is_empty() { Vec::new() } else { store.get_ranges(location, &ranges).await? };
            let mut bytes = bytes.into_iter();
            for &row_group in some {
                let may = match key.bloom(table, row_group) {
                    Some(info) => {
                        let bloom = info.open(bytes.next().unwrap_or_default());
                        let bloom = bloom.map_err(|error| external(error.context(format!("'{}'", shown(location.as_ref())))))?;
                        key.hashes.iter().any(|hash| bloom.may_have(*hash))
                    }
                    None => true,
                };
                if may {
                    kept.push(row_group);
                }
            }
        }
        left = kept;
    }
    Ok(left)
}
