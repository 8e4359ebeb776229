//! The first line of a CSV file, taken as the engine's reader takes it.

use std::io::{Cursor, Read};
use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::csv::reader::Format;
use datafusion::common::config::CsvOptions;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::error::Result;
use forebay_types::Error;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};

use super::lines::{Lines, too_wide};
use crate::error::{external, from_engine};
use crate::location::shown;

/// Bytes that are read of a file at first: most first lines are far shorter.
const FIRST_BYTES: u64 = 16 << 10;
/// How long a first line may be, compressed or not.
const MOST_BYTES: u64 = 4 << 20;
/// How many names it may have: the lines of many files are held at once.
const MOST_NAMES: usize = 1 << 16;

/// The names in a file's first line, none of a file without a line; and whether one of the values that were seen goes on after the end
/// of a line.
pub(super) async fn header(
    store: Arc<dyn ObjectStore>,
    options: Arc<CsvOptions>,
    file: ObjectMeta,
) -> Result<(Vec<String>, bool)> {
    let mut bytes = FIRST_BYTES.min(file.size);
    while bytes > 0 {
        let start = store.get_range(&file.location, 0..bytes).await?;
        let is_all = bytes == file.size;
        let found = names(start, is_all, &options).map_err(|error| {
            let name = shown(file.location.as_ref());
            external(from_engine(error).context(format!("the first line of {name} can't be read")))
        })?;
        match found {
            Some(found) => return Ok(found),
            None if is_all || bytes == MOST_BYTES => {
                return Err(external(Error::invalid(format!(
                    "the first line of {} is longer than {MOST_BYTES} bytes: it is to have the names of the columns, or say \
                     'format.has_header' 'false' with CREATE EXTERNAL TABLE .. OPTIONS",
                    shown(file.location.as_ref())
                ))));
            }
            None => bytes = (bytes * 16).min(file.size).min(MOST_BYTES),
        }
    }
    Ok((Vec::new(), false))
}

/// The same of what a file begins with; none when its first line may go on.
fn names(start: Bytes, is_all: bool, options: &CsvOptions) -> Result<Option<(Vec<String>, bool)>> {
    let mut plain = Vec::new();
    let compression = FileCompressionType::from(options.compression);
    let mut reader = compression.convert_read(Cursor::new(start))?.take(MOST_BYTES);
    // What is cut short ends with an error after all that it has.
    let ended = reader.read_to_end(&mut plain);
    if is_all {
        ended?;
    }
    let ends = |byte: &u8| *byte == b'\n' || *byte == b'\r' || Some(*byte) == options.terminator;
    let lines = plain.split(ends).filter(|line| line.first().is_some_and(|first| Some(*first) != options.comment));
    // The first line has ended where a second one begins.
    let is_whole = is_all || lines.take(2).count() == 2;
    if !is_whole {
        return Ok(None);
    }
    let mut lines = Lines::new(options);
    lines.push(&plain);
    if lines.is_wide {
        return Err(external(too_wide()));
    }
    let mut format =
        Format::default().with_header(true).with_delimiter(options.delimiter).with_quote(options.quote).with_truncated_rows(true);
    if let Some(escape) = options.escape {
        format = format.with_escape(escape);
    }
    if let Some(terminator) = options.terminator {
        format = format.with_terminator(terminator);
    }
    if let Some(comment) = options.comment {
        format = format.with_comment(comment);
    }
    // The engine reads no more of the line than where it ends: one in another encoding keeps nobody from the rows.
    let text = String::from_utf8_lossy(&plain);
    let (schema, _) = format.infer_schema(text.as_bytes(), Some(0))?;
    let count = schema.fields().len();
    if count > MOST_NAMES {
        return Err(external(Error::invalid(format!("it names {count} columns, and {MOST_NAMES} are the most"))));
    }
    Ok(Some((schema.fields().iter().map(|field| field.name().clone()).collect(), lines.breaks)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(start: &str, is_all: bool, options: &CsvOptions) -> Option<Vec<String>> {
        names(Bytes::copy_from_slice(start.as_bytes()), is_all, options).unwrap().map(|(names, _)| names)
    }

    #[test]
    fn a_first_line_is_read_as_far_as_it_goes() {
        let plain = CsvOptions::default();
        let both = Some(vec!["a".to_string(), "b, c".to_string()]);
        assert_eq!(of("a,\"b, c\"\r\n1,", false, &plain), both);
        assert_eq!(of("a,\"b, c\"", false, &plain), None, "it may go on");
        assert_eq!(of("a,\"b, c\"", true, &plain), both);
        let other = CsvOptions { delimiter: b';', comment: Some(b'#'), ..Default::default() };
        assert_eq!(of("#x;y;z\na;b, c\n1;2\n", false, &other), both);
        assert_eq!(of("#x;y;z\na;b, c", false, &other), None);
        let other = CsvOptions { terminator: Some(b'|'), ..Default::default() };
        assert_eq!(of("a,\"b, c\"|1,2|", false, &other), both);
        assert_eq!(of("\n", true, &plain), Some(Vec::new()));
        assert_eq!(of("\u{feff}a,\"b, c\"\n1,2\n", false, &plain), both);
        let (latin, _) = names(Bytes::from_static(b"a,gr\xf6\xdfe\n1,2\n"), false, &plain).unwrap().unwrap();
        assert_eq!((latin.len(), latin[0].as_str()), (2, "a"));
    }
}
