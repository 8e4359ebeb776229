//! The reads of a trace, gathered into queries.

use std::collections::HashMap;

use forebay_types::{Error, Result};

use crate::workload::{Access, Micros, Query};

/// Segments of a trace at most: as many as a run may have.
const SEGMENTS_MAX: usize = 1_000_000;
/// Reads of a segment, by all queries together, at most: a GB or so.
const READS_MAX: usize = 10_000_000;
const SECOND: Micros = 1_000_000;

/// What was read so far.
#[derive(Default)]
pub(super) struct Gathered {
    queries: Vec<Query>,
    of_operation: HashMap<u64, usize>,
    known: HashMap<String, u32>,
    paths: Vec<String>,
    bytes: Vec<u64>,
    reads: usize,
}

impl Gathered {
    /// A read. `Invalid` when there are more than a run may have.
    pub(super) fn add(&mut self, access: &Access) -> Result<()> {
        let mut segments = access.segments().map(|index| self.segment(access, index)).collect::<Result<Vec<_>>>()?;
        let times = if access.operation.is_some() { 1 } else { access.times as usize };
        self.reads += segments.len() * times;
        if self.reads > READS_MAX {
            return Err(Error::invalid(format!(
                "the trace has more than {READS_MAX} reads of segments: take a part of it, or record fewer objects (--one-in)"
            )));
        }
        let Some(operation) = access.operation else {
            let query = Query { at: access.at_us, client: 0, segments };
            self.queries.extend(std::iter::repeat_n(query, times));
            return Ok(());
        };
        let next = self.queries.len();
        let number = *self.of_operation.entry(operation).or_insert(next);
        if number == next {
            self.queries.push(Query { at: access.at_us, client: 0, segments: Vec::new() });
        }
        let query = &mut self.queries[number];
        query.at = query.at.min(access.at_us);
        query.segments.append(&mut segments);
        Ok(())
    }

    /// The number of an object's segment, which is called by the object's path and, but for the first, its place there.
    fn segment(&mut self, access: &Access, index: u32) -> Result<u32> {
        let named;
        let name = match index {
            0 => &access.path,
            _ => {
                named = format!("{}#{index}", access.path);
                &named
            }
        };
        let bytes = access.end_within(index);
        if let Some(segment) = self.known.get(name) {
            let largest = &mut self.bytes[*segment as usize];
            *largest = bytes.max(*largest);
            return Ok(*segment);
        }
        if self.paths.len() == SEGMENTS_MAX {
            return Err(Error::invalid(format!(
                "the trace has more than {SEGMENTS_MAX} segments: take a part of it, or record fewer objects (--one-in)"
            )));
        }
        let segment = self.paths.len() as u32;
        self.known.insert(name.clone(), segment);
        self.paths.push(name.clone());
        self.bytes.push(bytes);
        Ok(segment)
    }

    /// Queries from the time of the first on, and path and bytes of each segment.
    pub(super) fn finish(self) -> Result<(Vec<Query>, Vec<String>, Vec<u64>)> {
        let Self { mut queries, paths, bytes, .. } = self;
        queries.sort_by_key(|query| query.at);
        let Some(origin) = queries.first().map(|query| query.at) else {
            return Err(Error::invalid("the trace has no reads: there is nothing to simulate"));
        };
        let in_seconds = queries.iter().all(|query| query.at % SECOND == 0);
        for (number, query) in queries.iter_mut().enumerate() {
            (query.at, query.client) = (query.at - origin, number);
            query.segments.sort_unstable();
            query.segments.dedup();
        }
        if in_seconds {
            spread(&mut queries);
        }
        Ok((queries, paths, bytes))
    }
}

/// Spreads the queries of each time over the second that begins with it.
fn spread(queries: &mut [Query]) {
    for of_second in queries.chunk_by_mut(|one, next| one.at == next.at) {
        let count = of_second.len() as u64;
        for (place, query) in (0..).zip(of_second) {
            query.at += place * SECOND / count;
        }
    }
}
