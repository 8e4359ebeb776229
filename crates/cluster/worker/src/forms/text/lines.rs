//! Where rows begin and end.

use std::ops::Range;

use forebay_types::CsvLines;

/// Where the rows of a chunk lie in `window`, the file's bytes from the one before the chunk's first on (from the first on for
/// the file's first chunk). A chunk's rows are the lines that begin in it, wherever they end. None when the window ends too
/// early for its last row. The engine cuts ranges of text files in the same way.
pub(in crate::forms) fn rows(window: &[u8], chunk: &Range<u64>, size: u64, line_end: u8) -> Option<Range<usize>> {
    let lead = usize::from(chunk.start > 0);
    let len = lead + (chunk.end - chunk.start) as usize;
    let within = window.get(..len)?;
    let is_end = |byte: &u8| *byte == line_end;
    let first = if lead == 0 { 0 } else { within.iter().position(is_end).map_or(len, |at| at + 1) };
    if first >= len {
        return Some(len..len);
    }
    let reaches = chunk.start - lead as u64 + window.len() as u64;
    let last = match window[len - 1..].iter().position(is_end) {
        _ if chunk.end >= size => len,
        Some(at) => len + at,
        None if reaches >= size => window.len(),
        None => return None,
    };
    Some(first..last)
}

/// Whether each line is a row of CSV, so that a file may be cut at any of them: no value goes on in the next line, and quotes
/// stand only around whole values. Had the first line begun within a quoted value, quotes would be where they can't be, or
/// lines would end within them.
pub(in crate::forms) fn lines_are_rows(lines: &[u8], csv: &CsvLines) -> bool {
    enum At {
        Line,
        Value,
        Unquoted,
        Quoted,
        Closed,
        Comment,
    }
    if !lines.contains(&csv.quote) {
        return true;
    }
    let ends = |byte: u8| csv.terminator.map_or(byte == b'\n' || byte == b'\r', |end| byte == end);
    let cut = csv.terminator.unwrap_or(b'\n');
    let mut at = At::Line;
    let mut bytes = lines.iter().copied();
    while let Some(byte) = bytes.next() {
        at = match at {
            At::Comment if ends(byte) => At::Line,
            At::Comment => At::Comment,
            At::Line if Some(byte) == csv.comment => At::Comment,
            At::Quoted if byte == csv.quote => At::Closed,
            At::Quoted if byte == cut => return false,
            At::Quoted => {
                if Some(byte) == csv.escape && bytes.next().is_none_or(|next| next == cut) {
                    return false;
                }
                At::Quoted
            }
            At::Line | At::Value | At::Closed if byte == csv.quote => At::Quoted,
            _ if byte == csv.delimiter => At::Value,
            _ if ends(byte) => At::Line,
            At::Closed => return false,
            At::Unquoted if byte == csv.quote => return false,
            At::Line | At::Value | At::Unquoted => At::Unquoted,
        };
    }
    !matches!(at, At::Quoted)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CSV: CsvLines = CsvLines {
        header: false,
        delimiter: b',',
        quote: b'"',
        escape: None,
        comment: None,
        terminator: None,
        truncated_rows: false,
    };

    /// The lines that begin in a chunk, found byte by byte.
    fn brute(file: &[u8], chunk: &Range<u64>) -> Vec<u8> {
        let mut rows = Vec::new();
        let mut begins = 0;
        for (at, byte) in file.iter().enumerate() {
            if chunk.contains(&(begins as u64)) {
                rows.push(*byte);
            }
            if *byte == b'\n' {
                begins = at + 1;
            }
        }
        rows
    }

    proptest! {
        #[test]
        fn each_row_lies_in_one_chunk_whatever_its_size(
            lines in prop::collection::vec("[a,]{0,9}", 0..20),
            ends in any::<bool>(),
            chunk_bytes in 1u64..30,
            beyond in 0u64..40,
        ) {
            let mut file = lines.join("\n").into_bytes();
            if ends {
                file.push(b'\n');
            }
            let size = file.len() as u64;
            let mut all = Vec::new();
            for start in (0..size).step_by(chunk_bytes as usize) {
                let chunk = start..(start + chunk_bytes).min(size);
                let (from, to) = (start.saturating_sub(1), (chunk.end + beyond).min(size));
                let window = &file[from as usize..to as usize];
                let found = rows(window, &chunk, size, b'\n');
                let expected = brute(&file, &chunk);
                // A short window says so, and never something wrong.
                prop_assert!(found.is_some() || beyond < 10, "a window with all of the row");
                let whole = rows(&file[from as usize..], &chunk, size, b'\n').expect("all of the file");
                prop_assert_eq!(&file[from as usize..][whole], &expected[..]);
                if let Some(found) = found {
                    prop_assert_eq!(&window[found], &expected[..]);
                }
                all.extend(expected);
            }
            prop_assert_eq!(all, file);
        }
    }

    #[test]
    fn values_of_several_lines_are_found_from_either_side() {
        let file = b"1,\"a\n2,b\n3,\"\"c\"\n4,d\n";
        assert!(!lines_are_rows(file, &CSV));
        for line in 1..file.len() {
            if file[line - 1] == b'\n' {
                let outside = &file[line..] == b"4,d\n";
                assert_eq!(lines_are_rows(&file[line..], &CSV), outside, "from byte {line}");
            }
        }
    }

    #[test]
    fn quotes_around_whole_values_are_well() {
        for rows in ["1,\"a,\"\"b\",\"\"\r\n\"\",2\n", "1,\"a\"", "", "a,b\n\n"] {
            assert!(lines_are_rows(rows.as_bytes(), &CSV), "{rows}");
        }
        for wrong in ["5\" wide,1\n", "\"a\"b,1\n", "1,\"a", "1, \"a\"\n"] {
            assert!(!lines_are_rows(wrong.as_bytes(), &CSV), "{wrong}");
        }
        let escaped = CsvLines { escape: Some(b'\\'), comment: Some(b'#'), ..CSV };
        assert!(lines_are_rows(b"#it's \"\n1,\"a\\\"b\"\n", &escaped));
        assert!(!lines_are_rows(b"1,\"a\\\"\n", &escaped));
        let ended = CsvLines { terminator: Some(b';'), ..CSV };
        assert!(lines_are_rows(b"1,\"a\nb\";2,c\n;", &ended));
        assert!(!lines_are_rows(b"1,\"a;b\";", &ended));
    }
}
