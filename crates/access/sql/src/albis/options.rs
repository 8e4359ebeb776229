//! Reads the options of `COPY` and `CREATE EXTERNAL TABLE` that say how a table file is cut into groups of columns and rows, and
//! which columns have bloom filters.

use forebay_table::{Blooms, Grouping, Layout, Options};
use forebay_types::{Error, Result};

/// How a table file is cut, from the options of `COPY` and `CREATE EXTERNAL TABLE`.
pub(super) fn parse<'a>(options: impl IntoIterator<Item = (&'a String, &'a String)>) -> Result<Options> {
    let mut out = Options::default();
    let mut layout = Layout::Aligned;
    for (key, value) in options {
        match key.strip_prefix("format.").unwrap_or(key).to_ascii_lowercase().as_str() {
            "groups" => out.grouping = groups(value)?,
            "bloom_filters" => out.blooms = blooms(value)?,
            "row_group_rows" => {
                let rows = value.trim().replace('_', "");
                out.row_group_rows = rows
                    .parse()
                    .map_err(|_| Error::invalid(format!("row_group_rows '{value}': write a number such as 65536")))?;
            }
            "layout" => {
                layout = match value.to_ascii_lowercase().as_str() {
                    "aligned" => Layout::Aligned,
                    "packed" => Layout::Packed,
                    _ => return Err(Error::invalid(format!("layout '{value}': write 'aligned' or 'packed'"))),
                }
            }
            other => {
                return Err(Error::invalid(format!(
                    "a table file has no option '{other}': there are groups ('id,ts; *'), row_group_rows, layout and \
                     bloom_filters"
                )));
            }
        }
    }
    out.grouping = out.grouping.layout(layout);
    Ok(out)
}

/// Columns with commas between them, or all that bloom filters pay for.
fn blooms(text: &str) -> Result<Blooms> {
    if text.trim() == "*" {
        return Ok(Blooms::WherePays);
    }
    let columns = text.split(',').map(|column| column.trim().to_string()).collect::<Vec<_>>();
    if columns.iter().any(|column| column.is_empty() || column == "*") {
        let message = "write columns as in 'id,email', or '*' for all in which values are many and bounds tell little";
        return Err(Error::invalid(format!("bloom_filters '{text}': {message}")));
    }
    Ok(Blooms::Of(columns))
}

/// Column groups as they are written: columns with commas between them, groups with semicolons.
fn groups(text: &str) -> Result<Grouping> {
    let mut out = Grouping::columns();
    for group in text.split(';').map(str::trim).filter(|group| !group.is_empty()) {
        let columns = group.split(',').map(str::trim).collect::<Vec<_>>();
        if columns.iter().any(|column| column.is_empty()) {
            return Err(Error::invalid(format!("column group '{group}': a name is missing; write groups as in 'id,ts; *'")));
        }
        out = out.group(columns);
    }
    Ok(out)
}
