//! Where lines of a CSV file end, as who reads them sees it: not within quotes. The engine, when it looks for types, cuts what comes at
//! ends of lines that it finds from behind, and there it does not know what is within quotes; and it cuts files for several readers at
//! ends of lines wherever they are.

use std::future::ready;
use std::mem::take;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use datafusion::common::config::CsvOptions;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::error::Result;
use forebay_types::Error;
use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};

use crate::error::external;
use crate::paths::members::plain;

/// Bytes of a line after which it is handed on as it is: its end is not waited for in a whole file.
const LINE_BYTES_MAX: usize = 16 << 20;
/// Values that a line may have: who looks for types holds some hundred bytes for each, and a file can be all separators.
const VALUES_MAX: usize = 1 << 18;
/// What files that say their encoding begin with.
const MARK: &[u8] = b"\xef\xbb\xbf";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    LineStart,
    ValueStart,
    /// In a value without quotes.
    Plain,
    Quoted,
    /// Behind the sign that says that the next one is of the value.
    Escaped,
    /// Behind a quote that ends the value, if no other one follows.
    Closed,
    Comment,
}

/// Cuts what comes into whole lines.
#[derive(Debug)]
pub(super) struct Lines {
    delimiter: u8,
    quote: u8,
    escape: Option<u8>,
    comment: Option<u8>,
    terminator: Option<u8>,
    /// What of the mark is still to come, if the file begins with it.
    mark: &'static [u8],
    place: Place,
    begun: Vec<u8>,
    /// Separators of this line.
    values: usize,
    /// Whether a line has more than [`VALUES_MAX`] of them.
    pub(super) is_wide: bool,
    /// Whether a value goes on after the end of a line.
    pub(super) breaks: bool,
}

impl Lines {
    pub(super) fn new(options: &CsvOptions) -> Self {
        let CsvOptions { delimiter, quote, escape, comment, terminator, .. } = *options;
        let (mark, place, begun, values) = (MARK, Place::LineStart, Vec::new(), 0);
        Self { delimiter, quote, escape, comment, terminator, mark, place, begun, values, is_wide: false, breaks: false }
    }

    /// Whether the engine cuts there, if it is not within quotes.
    fn is_end(&self, byte: u8) -> bool {
        byte == self.terminator.unwrap_or(b'\n')
    }

    fn behind(&self, byte: u8) -> Place {
        let outside = || match byte {
            byte if self.is_end(byte) || (byte == b'\r' && self.terminator.is_none()) => Place::LineStart,
            byte if byte == self.delimiter => Place::ValueStart,
            _ => Place::Plain,
        };
        match self.place {
            Place::LineStart if Some(byte) == self.comment => Place::Comment,
            Place::LineStart | Place::ValueStart if byte == self.quote => Place::Quoted,
            Place::LineStart | Place::ValueStart | Place::Plain => outside(),
            // Both may be one sign, which then ends the value.
            Place::Quoted if byte == self.quote => Place::Closed,
            Place::Quoted if Some(byte) == self.escape => Place::Escaped,
            Place::Quoted | Place::Escaped => Place::Quoted,
            Place::Closed if byte == self.quote => Place::Quoted,
            Place::Closed => outside(),
            Place::Comment if byte == b'\n' => Place::LineStart,
            Place::Comment => Place::Comment,
        }
    }

    /// Takes more of the file; gives the whole lines that there are by now, if there are any.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Option<Bytes> {
        let mut end = 0;
        for (at, byte) in bytes.iter().enumerate() {
            if self.mark.first() == Some(byte) {
                self.mark = &self.mark[1..];
                continue;
            }
            self.mark = &[];
            let is_end = self.is_end(*byte);
            match self.place {
                Place::Quoted | Place::Escaped if is_end => self.breaks = true,
                _ if is_end => end = at + 1,
                _ => {}
            }
            self.place = self.behind(*byte);
            match self.place {
                Place::LineStart => self.values = 0,
                Place::ValueStart => self.values += 1,
                _ => {}
            }
            self.is_wide |= self.values > VALUES_MAX;
        }
        if end == 0 && self.begun.len() + bytes.len() > LINE_BYTES_MAX {
            end = bytes.len();
        }
        let (whole, rest) = bytes.split_at(end);
        let mut lines = take(&mut self.begun);
        lines.extend_from_slice(whole);
        if end == 0 {
            lines.extend_from_slice(rest);
            self.begun = lines;
            return None;
        }
        self.begun.extend_from_slice(rest);
        Some(lines.into())
    }

    /// What came behind the last end of a line.
    fn rest(&mut self) -> Option<Bytes> {
        let rest = take(&mut self.begun);
        (!rest.is_empty()).then(|| rest.into())
    }
}

/// The lines of a file, some at a time. Says in `breaks` when a value of them goes on after the end of a line.
pub(super) async fn lines<'a>(
    store: &Arc<dyn ObjectStore>,
    file: &ObjectMeta,
    options: &CsvOptions,
    breaks: &'a AtomicBool,
) -> Result<BoxStream<'a, Result<Bytes>>> {
    let stored = store.get(&file.location).await?.into_stream();
    let plain = plain(FileCompressionType::from(options.compression), stored);
    let mut lines = Lines::new(options);
    let parts = plain.map_ok(Some).chain(stream::once(ready(Ok(None))));
    let cut = parts.try_filter_map(move |part| {
        let whole = if let Some(bytes) = part { lines.push(&bytes) } else { lines.rest() };
        if lines.breaks {
            breaks.store(true, Ordering::Relaxed);
        }
        if lines.is_wide {
            return ready(Err(external(too_wide())));
        }
        ready(Ok(whole))
    });
    Ok(cut.boxed())
}

pub(super) fn too_wide() -> Error {
    Error::invalid(format!("a line has more than {VALUES_MAX} values"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of a text that comes in parts of so many bytes, and whether a value breaks.
    fn cut(text: &str, part: usize, options: &CsvOptions) -> (Vec<String>, bool) {
        let mut lines = Lines::new(options);
        let mut found: Vec<Bytes> = text.as_bytes().chunks(part).filter_map(|bytes| lines.push(bytes)).collect();
        found.extend(lines.rest());
        (found.iter().map(|bytes| String::from_utf8(bytes.to_vec()).unwrap()).collect(), lines.breaks)
    }

    #[test]
    fn lines_end_outside_of_quotes() {
        let plain = CsvOptions::default();
        let text = "a,b\n1,\"x\ny\"\n2,\"q\"\"\n\"\n3,5\" pipe\n4,C:\\\n5,\"\"\n6";
        let lines = ["a,b\n", "1,\"x\ny\"\n", "2,\"q\"\"\n\"\n", "3,5\" pipe\n", "4,C:\\\n", "5,\"\"\n", "6"];
        assert_eq!(cut(text, 1, &plain), (lines.map(str::to_string).to_vec(), true));
        let mut end = 0;
        let ends = lines.map(|line| {
            end += line.len();
            end
        });
        for part in 2..text.len() {
            let (found, breaks) = cut(text, part, &plain);
            assert!(breaks && found.concat() == text, "{part}: {found:?}");
            let mut end = 0;
            for lines in &found {
                end += lines.len();
                assert!(ends.contains(&end), "{part}: {found:?}");
            }
        }
        assert!(!cut("a,b\r\n1,\"x,y\"\r\n# \"\r\n2,\"z", 3, &CsvOptions { comment: Some(b'#'), ..Default::default() }).1);
        let same = CsvOptions { escape: Some(b'"'), ..Default::default() };
        let lines = ["1,\"x\"\n", "2,\"y\"\"z\"\n"];
        assert_eq!(cut(&lines.concat(), 1, &same), (lines.map(str::to_string).to_vec(), false));
        let lines = ["\u{feff}\"a\nb\",c\n", "1,2\n"];
        assert_eq!(cut(&lines.concat(), 1, &plain), (lines.map(str::to_string).to_vec(), true));
        let other = CsvOptions { quote: b'\'', escape: Some(b'\\'), delimiter: b';', ..Default::default() };
        assert_eq!(cut("1;'it\\'s\n'\n2;\"\n", 1, &other), (vec!["1;'it\\'s\n'\n".to_string(), "2;\"\n".to_string()], true));
    }

    #[test]
    fn a_line_of_separators_alone_is_found_before_it_is_held_as_values() {
        let wide = |line: &[u8], lines_of: usize, options: &CsvOptions| {
            let mut lines = Lines::new(options);
            (0..lines_of).for_each(|_| drop(lines.push(line)));
            lines.is_wide
        };
        let (plain, other) = (CsvOptions::default(), CsvOptions { terminator: Some(b'|'), ..Default::default() });
        assert!(wide(b",", VALUES_MAX + 1, &plain) && !wide(b",", VALUES_MAX, &plain));
        assert!(!wide(b",,\n", VALUES_MAX, &plain) && !wide(b",,|", VALUES_MAX, &other) && wide(b",,\n", VALUES_MAX, &other));
    }
}
