//! Reads by row number, for who knows which few rows it wants and needs no scan.

use arrow_array::{RecordBatch, UInt32Array};
use arrow_select::concat::concat_batches;
use arrow_select::take::take_record_batch;
use forebay_types::{Error, Result};

use super::Table;
#[cfg(doc)]
use super::plan::Plan;
use super::selection::Selection;
use super::source::Source;
use crate::schema::Projection;

/// Rows by their number in the table, in the order asked for; a row may be asked for twice. As with [`Plan::read_trusted`] no
/// checksum is compared: it would read whole cells for the sake of a few rows.
/// `Invalid` for a row that is not there, or more than 2^32 of them; `Corrupt` with the place; the source's errors.
pub fn take(table: &Table, source: &impl Source, projection: &Projection, rows: &[u64]) -> Result<RecordBatch> {
    let asked = u32::try_from(rows.len()).map_err(|_| Error::invalid("too many rows at once; ask in parts"))?;
    let mut order = (0..asked).collect::<Vec<_>>();
    order.sort_unstable_by_key(|&at| rows[at as usize]);
    let mut batches = Vec::new();
    let mut rest = order.as_slice();
    let mut first = 0;
    for row_group in 0..table.row_groups() {
        if rest.is_empty() {
            break;
        }
        let end = first + table.row_group_rows(row_group) as u64;
        let (here, after) = rest.split_at(rest.partition_point(|&at| rows[at as usize] < end));
        if !here.is_empty() {
            let picked = here.iter().map(|&at| (rows[at as usize] - first) as u32).collect();
            batches.push(table.plan(row_group, projection)?.read_trusted(source)?.gather(&Selection::of_rows(picked)?)?);
        }
        (rest, first) = (after, end);
    }
    if let Some(&at) = rest.first() {
        return Err(Error::invalid(format!("row {} of a table that has {}", rows[at as usize], table.rows())));
    }
    let odd = |error| Error::invalid(format!("the rows do not fit into one batch: {error}; ask in parts"));
    let sorted = concat_batches(projection.schema(), &batches).map_err(odd)?;
    assert_eq!(sorted.num_rows(), rows.len(), "each row that was asked for was taken");
    if order.is_sorted() {
        return Ok(sorted);
    }
    let mut back = vec![0; rows.len()];
    order.iter().zip(0..).for_each(|(&at, place)| back[at as usize] = place);
    take_record_batch(&sorted, &UInt32Array::from(back)).map_err(odd)
}
