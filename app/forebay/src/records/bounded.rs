//! Text with delimiters, read no further than what its records may take in memory.

use std::io::{Error, ErrorKind, Read, Result};

use forebay_types::format_bytes;

/// Records that are in memory together.
pub(super) const ROWS_TOGETHER: usize = 256;
/// Bytes that so many records have at most.
const TOGETHER_BYTES_MAX: usize = 64 << 20;
/// Fields of a record at most.
const FIELDS_MAX: usize = 16_384;

/// A reader that fails at records which are too large.
pub(super) struct Bounded<R> {
    inner: R,
    delimiter: u8,
    field: Field,
    fields: usize,
    rows: usize,
    bytes: usize,
    most: usize,
}

/// Where in a field the reader is.
#[derive(Clone, Copy, PartialEq)]
enum Field {
    Start,
    Plain,
    Quoted,
    /// Behind a quote that ends the field, or begins one that stands for itself.
    Quote,
}

impl<R: Read> Bounded<R> {
    pub(super) fn new(inner: R, delimiter: u8) -> Self {
        Self { inner, delimiter, field: Field::Start, fields: 1, rows: 0, bytes: 0, most: TOGETHER_BYTES_MAX }
    }

    fn see(&mut self, byte: u8) -> Result<()> {
        self.bytes += 1;
        self.field = match (self.field, byte) {
            (Field::Start | Field::Quote, b'"') => Field::Quoted,
            (Field::Quoted, b'"') => Field::Quote,
            (Field::Quoted, _) => Field::Quoted,
            (_, b'\n' | b'\r') => {
                // An empty line is no record.
                self.rows += usize::from(self.field != Field::Start || self.fields > 1);
                self.fields = 1;
                Field::Start
            }
            (_, byte) if byte == self.delimiter => {
                self.fields += 1;
                Field::Start
            }
            _ => Field::Plain,
        };
        if self.rows > ROWS_TOGETHER {
            (self.rows, self.bytes) = (0, 0);
        }
        if self.fields > FIELDS_MAX {
            return Err(Error::new(ErrorKind::InvalidData, format!("a record has more than {FIELDS_MAX} fields")));
        }
        if self.bytes > self.most {
            let message = format!("{ROWS_TOGETHER} records have more than {}", format_bytes(self.most as u64));
            return Err(Error::new(ErrorKind::InvalidData, message));
        }
        Ok(())
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, to: &mut [u8]) -> Result<usize> {
        let length = self.inner.read(to)?;
        to[..length].iter().try_for_each(|&byte| self.see(byte))?;
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: impl Read) -> Result<u64> {
        std::io::copy(&mut Bounded { most: 1 << 17, ..Bounded::new(text, b',') }, &mut std::io::sink())
    }

    #[test]
    fn files_of_any_length_are_read_whose_records_are_short() {
        let line = "1,plain \"text\" with quotes,\"quoted, with a \"\"\nline\"\r\n";
        let text = line.repeat(50_000);
        assert_eq!(read(text.as_bytes()).unwrap(), text.len() as u64);
    }

    #[test]
    fn records_without_an_end_are_refused() {
        for start in ["a,b\n1,", "a,b\n1,\"", "a,b\n1,\"x\"\""] {
            let error = read(start.as_bytes().chain(std::io::repeat(b'x'))).unwrap_err();
            assert!(error.to_string().contains("128 KiB"), "{start}: {error}");
        }
        let lines = read("a,b\n1,\"".as_bytes().chain(std::io::repeat(b'\n'))).unwrap_err();
        assert!(lines.to_string().contains("128 KiB"), "lines of one field: {lines}");
        let apart = format!("{}{}", "x".repeat(1 << 12), "\n".repeat(2 * ROWS_TOGETHER)).repeat(40);
        assert!(read(apart.as_bytes()).is_err(), "empty lines between them make them no more");
        let fields = read(std::io::repeat(b',')).unwrap_err();
        assert!(fields.to_string().contains("fields"), "{fields}");
    }
}
