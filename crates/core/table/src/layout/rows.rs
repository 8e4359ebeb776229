//! The offsets of values in a row, in the two layouts that there are: packed, and aligned.

use crate::schema::Kind;

/// Where a column's value stands in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Bytes from the row's start.
    pub offset: usize,
    pub kind: Kind,
}

/// The shape of a group's rows: bitmap, row size, fixed area, then what the pointers of the fixed area point to.
#[derive(Clone, Debug)]
pub(crate) struct RowLayout {
    /// In the order of the group's leaves; column `i` has bit `i` of the bitmap.
    pub places: Vec<Place>,
    /// Where the row's size stands, if it does.
    pub size_at: Option<usize>,
    /// Bytes up to the variable area.
    pub fixed_bytes: usize,
    /// What a row's bytes are a multiple of.
    pub align: usize,
    /// Whether rows have a variable area.
    pub variable: bool,
}

impl RowLayout {
    /// Schema order, nothing padded, the row's size always there (lecture on Albis: 34 bytes for {int, double, byte[],
    /// char, float[]}).
    pub fn packed(kinds: &[Kind]) -> Self {
        let size_at = kinds.len().div_ceil(8);
        let mut at = size_at + 4;
        let places = kinds.iter().map(|&kind| place(kind, &mut at)).collect();
        let variable = kinds.iter().any(|kind| kind.is_variable());
        Self { places, size_at: Some(size_at), fixed_bytes: at, align: 1, variable }.checked()
    }

    /// Wide values first and all of them aligned; the row's size only where rows differ in it.
    pub fn aligned(kinds: &[Kind]) -> Self {
        let variable = kinds.iter().any(|kind| kind.is_variable());
        let bitmap = kinds.len().div_ceil(8);
        let size_at = variable.then(|| bitmap.next_multiple_of(4));
        let mut at = size_at.map_or(bitmap, |at| at + 4).next_multiple_of(8);
        let mut order = (0..kinds.len()).collect::<Vec<_>>();
        // Sorting is stable: columns of one alignment keep the order of the schema.
        order.sort_by_key(|&column| std::cmp::Reverse(alignment(kinds[column])));
        let mut places = vec![Place { offset: 0, kind: Kind::Nothing }; kinds.len()];
        for column in order {
            places[column] = place(kinds[column], &mut at);
        }
        let is_aligned = |place: &Place| place.offset.is_multiple_of(alignment(place.kind).max(1));
        debug_assert!(places.iter().all(is_aligned), "wide values are aligned");
        Self { places, size_at, fixed_bytes: at.next_multiple_of(8), align: 8, variable }.checked()
    }

    /// Bitmap, size and values take all of the fixed area but its padding, which holds as long as no two of them overlap.
    fn checked(self) -> Self {
        let values: usize = self.places.iter().map(|place| place.kind.row_width()).sum();
        let taken = self.places.len().div_ceil(8) + self.size_at.map_or(0, |_| 4) + values;
        assert!(taken <= self.fixed_bytes, "{taken} bytes have their place in the first {} of a row", self.fixed_bytes);
        let ends = |place: &Place| place.offset + place.kind.row_width() <= self.fixed_bytes;
        debug_assert!(self.places.iter().all(ends), "no value is behind the fixed area");
        self
    }

    /// Bytes of every row, where all have the same.
    pub fn stride(&self) -> Option<usize> {
        (!self.variable).then_some(self.fixed_bytes)
    }
}

fn place(kind: Kind, at: &mut usize) -> Place {
    let offset = *at;
    *at += kind.row_width();
    Place { offset, kind }
}

fn alignment(kind: Kind) -> usize {
    let width = kind.row_width();
    if width == 0 { 0 } else { 1 << width.trailing_zeros().min(3) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Item;

    const FLOATS: Kind = Kind::List { wide: false, item: Item { width: 4, nullable: false } };

    #[test]
    fn the_lectures_example_has_34_bytes_before_the_variable_area() {
        let kinds = [Kind::Fixed(4), Kind::Fixed(8), Kind::Bytes { wide: false }, Kind::Fixed(1), FLOATS];
        let rows = RowLayout::packed(&kinds);
        assert_eq!(rows.fixed_bytes, 34);
        assert_eq!(rows.size_at, Some(1));
        assert_eq!(rows.places.iter().map(|place| place.offset).collect::<Vec<_>>(), [5, 9, 17, 25, 26]);
    }

    fn two_numbers(second: usize, fixed_bytes: usize) {
        let number = |offset| Place { offset, kind: Kind::Fixed(8) };
        let places = vec![number(1), number(second)];
        let _ = RowLayout { places, size_at: None, fixed_bytes, align: 1, variable: false }.checked();
    }

    #[test]
    #[should_panic(expected = "17 bytes have their place in the first 12")]
    fn values_that_overlap_are_caught() {
        two_numbers(4, 12);
    }

    #[test]
    #[should_panic(expected = "no value is behind the fixed area")]
    fn a_value_behind_the_fixed_area_is_caught() {
        two_numbers(12, 17);
    }

    #[test]
    fn aligned_rows_put_wide_columns_first_and_leave_the_size_out() {
        let rows = RowLayout::aligned(&[Kind::Fixed(4), Kind::Fixed(8), Kind::Bit, Kind::Fixed(16)]);
        assert_eq!(rows.size_at, None);
        assert_eq!(rows.places.iter().map(|place| place.offset).collect::<Vec<_>>(), [32, 8, 36, 16]);
        assert_eq!(rows.stride(), Some(40));
    }
}
