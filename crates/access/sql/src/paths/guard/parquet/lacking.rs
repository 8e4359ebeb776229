//! What nulls take of columns that a file lacks: another file of its folder says how wide a value is, and this one how many there are.

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::parquet::schema::types::Type;

use crate::paths::widths::width;

/// Bytes of a row of what is asked for and a file lacks, fields of structs as well, and the widest of these columns.
pub(super) fn lacking<'a>(asked: &'a [FieldRef], file: &Type) -> (u64, &'a str) {
    let (mut row, mut widest) = (0_u64, (0_u64, ""));
    for field in asked {
        let bytes = lacking_of(field.data_type(), child(file, field.name()));
        row = row.saturating_add(bytes);
        if bytes > widest.0 {
            widest = (bytes, field.name().as_str());
        }
    }
    (row, widest.1)
}

fn lacking_of(kind: &DataType, file: Option<&Type>) -> u64 {
    match (kind, file) {
        (_, None) => width(kind),
        (DataType::Struct(fields), Some(file)) if file.is_group() => {
            let of = |field: &FieldRef| lacking_of(field.data_type(), child(file, field.name()));
            fields.iter().fold(0, |sum: u64, field| sum.saturating_add(of(field)))
        }
        _ => 0,
    }
}

fn child<'a>(group: &'a Type, name: &str) -> Option<&'a Type> {
    group.get_fields().iter().find(|field| field.name() == name).map(|field| field.as_ref())
}
