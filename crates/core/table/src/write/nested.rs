//! Columns of lists, maps and structs below them, taken apart level by level.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;

use super::values::Starts;

/// One level of a column: where its values begin, unless there is one for each, and the arrays of these, cut to what the level has.
pub(super) struct Level {
    pub starts: Option<Starts>,
    pub below: Vec<ArrayRef>,
}

impl Level {
    /// None for values that have no others below them.
    pub fn of(array: &ArrayRef) -> Option<Self> {
        let list = |starts: Starts, values: &dyn Array| {
            let span = starts.span();
            Self { starts: Some(starts), below: vec![values.slice(span.start, span.len())] }
        };
        Some(match array.data_type() {
            DataType::List(_) => {
                let lists = array.as_list::<i32>();
                list(Starts::Narrow(lists.offsets().clone()), lists.values())
            }
            DataType::LargeList(_) => {
                let lists = array.as_list::<i64>();
                list(Starts::Wide(lists.offsets().clone()), lists.values())
            }
            DataType::Map(..) => {
                let maps = array.as_map();
                list(Starts::Narrow(maps.offsets().clone()), maps.entries())
            }
            DataType::Struct(_) => Self { starts: None, below: array.as_struct().columns().to_vec() },
            _ => return None,
        })
    }
}
