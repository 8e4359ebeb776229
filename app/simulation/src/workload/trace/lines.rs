//! Lines of a text of any length, one at a time, each no longer than a line is.

use std::io::{BufRead, Read};

use forebay_types::{Error, Result};

/// Longest line in bytes, its end included.
const LINE_BYTES_MAX: u64 = 64 << 10;

/// A text that is read line by line.
pub(super) struct Lines<R> {
    from: R,
    number: u64,
    line: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(from: R) -> Self {
        Self { from, number: 0, line: Vec::new() }
    }

    /// The next line with its number, from 1 on, without the space around it; `Invalid` in its place where it is no text or too
    /// long. None at the end.
    pub(super) fn take_line(&mut self) -> Result<Option<(u64, Result<&str>)>> {
        if self.read_some()? == 0 {
            return Ok(None);
        }
        self.number += 1;
        if !self.is_whole() {
            while self.read_some()? > 0 && !self.is_whole() {}
            let long = Error::invalid(format!("it is longer than {LINE_BYTES_MAX} bytes"));
            return Ok(Some((self.number, Err(long))));
        }
        let text = std::str::from_utf8(&self.line).map(str::trim).map_err(|_| Error::invalid("it isn't UTF-8"));
        Ok(Some((self.number, text)))
    }

    /// A line, or as much of it as may be.
    fn read_some(&mut self) -> Result<usize> {
        self.line.clear();
        Ok(self.from.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut self.line)?)
    }

    /// Whether what was read ends a line; the last one of a text may have no end.
    fn is_whole(&self) -> bool {
        self.line.ends_with(b"\n") || (self.line.len() as u64) < LINE_BYTES_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_too_long_or_no_text_is_told_and_the_next_one_read() {
        let mut text = vec![b'a'; 3 * LINE_BYTES_MAX as usize];
        text.extend_from_slice(b"\n\xff\nshort \r\n\nlast");
        let mut lines = Lines::new(&text[..]);
        let mut found = Vec::new();
        while let Some((number, line)) = lines.take_line().unwrap() {
            found.push((number, line.map(str::to_string).map_err(|error| error.message().to_string())));
        }
        let long = format!("it is longer than {LINE_BYTES_MAX} bytes");
        let of = |line: &str| Ok(line.to_string());
        assert_eq!(
            found,
            [(1, Err(long)), (2, Err("it isn't UTF-8".to_string())), (3, of("short")), (4, of("")), (5, of("last"))]
        );
    }
}
