use arrow_array::{Array, BooleanArray};
use arrow_select::filter::prep_null_mask_filter;
use forebay_types::{Error, Result};

/// Rows of a row group that have passed a filter, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    rows: Vec<u32>,
}

impl Selection {
    /// The rows where the mask is true; where it is null it is not.
    pub fn of(mask: &BooleanArray) -> Self {
        let mask = if mask.null_count() > 0 { &prep_null_mask_filter(mask) } else { mask };
        Self { rows: mask.values().set_indices_u32().collect() }
    }

    /// These rows.
    ///
    /// # Errors
    /// `Invalid` if they are not ascending.
    pub fn of_rows(rows: Vec<u32>) -> Result<Self> {
        if !rows.is_sorted() {
            return Err(Error::invalid("rows of a selection have to be ascending; sort them"));
        }
        Ok(Self { rows })
    }

    /// The rows.
    pub fn rows(&self) -> &[u32] {
        &self.rows
    }

    /// Whether no row has passed.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}
