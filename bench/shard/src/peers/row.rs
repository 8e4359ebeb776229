//! A record as all peers store and return it, so that none is charged for another form.

use crate::workload::{ATTRIBUTES, Records};

/// One record as every system hands it over: its values one behind the other, and where each ends. Used again and again.
#[derive(Default, PartialEq, Eq, Debug)]
pub(crate) struct Row {
    pub(crate) bytes: Vec<u8>,
    pub(crate) ends: Vec<u32>,
}

/// Appends a record: the lengths of all its values, then their bytes.
pub(super) fn write(records: &Records, row: usize, out: &mut Vec<u8>) {
    let length = |attribute| u8::try_from(records.value(row, attribute).len()).expect("values of lineitem are short");
    out.extend((0..ATTRIBUTES.len()).map(length));
    out.extend_from_slice(records.row(row));
}

/// Bytes that the record at the start of `body` takes.
pub(super) fn length(body: &[u8]) -> usize {
    ATTRIBUTES.len() + body[..ATTRIBUTES.len()].iter().map(|&length| usize::from(length)).sum::<usize>()
}

impl Row {
    /// Takes the record at the start of `body`.
    pub(super) fn read(&mut self, body: &[u8]) {
        self.ends.clear();
        self.bytes.clear();
        let (lengths, values) = body.split_at(ATTRIBUTES.len());
        let mut end = 0;
        for &length in lengths {
            end += u32::from(length);
            self.ends.push(end);
        }
        self.bytes.extend_from_slice(&values[..end as usize]);
    }
}
