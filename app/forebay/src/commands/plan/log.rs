//! Counts accesses by segment from a trace or a log, aged by windows as the coordinator ages them.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use chrono::DateTime;
use forebay_placement::{Popularity, Usage, Windows};
use forebay_simulation::{AccessKind, accesses};
use forebay_types::{Error, Result, ResultExt, SEGMENT_BYTES, SegmentId, segment_bytes, segment_count};

/// Segments of one object that a log's line may count.
const INDEX_MAX: u64 = 1 << 17;

/// Counts the reads of a trace, or the access log of a path: CSV of timestamp, path and bytes, with or without a line of titles, in any
/// order.
///
/// Gives (id, count, bytes) of each segment. An object is as large as the largest access to it; where that is more than a
/// segment, its segments are called `path#index`, and an access counts for those that its bytes reach into. The window of
/// the last access counts in full, every earlier one half of the next.
pub(super) fn counts(path: &Path, text: &str, window: Duration) -> Result<Vec<(String, u64, u64)>> {
    let windows = Windows::new(u64::try_from(window.as_millis()).unwrap_or(u64::MAX));
    let accesses = match text.trim_start().starts_with('{') {
        true => read_trace(text).context(|| path.display().to_string())?,
        false => read(path, text)?,
    };
    let mut objects: HashMap<&str, (u32, u64)> = HashMap::new();
    for access in &accesses {
        let next = objects.len() as u32;
        let object = objects.entry(&access.path).or_insert((next, 0));
        object.1 = object.1.max(access.start + access.bytes);
    }
    let last = accesses.iter().map(|access| windows.of(access.time_ms)).max().unwrap_or(0);
    let mut popularity = Popularity::new(last);
    let id = |object: u32, index: u32| SegmentId(u128::from(object) << 32 | u128::from(index));
    for access in &accesses {
        let (object, _) = objects[access.path.as_str()];
        let first = (access.start / SEGMENT_BYTES) as u32;
        for index in first..segment_count(access.start + access.bytes).max(first + 1) {
            popularity.add(windows.of(access.time_ms), id(object, index), Usage { accesses: access.times, ..Usage::default() });
        }
    }
    let segments = objects.into_iter().flat_map(|(path, (object, size))| {
        (0..segment_count(size).max(1)).map(move |index| {
            let name = if size > SEGMENT_BYTES { format!("{path}#{index}") } else { path.to_string() };
            (name, object, index, segment_bytes(size, index))
        })
    });
    Ok(segments.map(|(name, object, index, bytes)| (name, popularity.count(id(object, index)), bytes)).collect())
}

struct Access {
    time_ms: u64,
    path: String,
    start: u64,
    bytes: u64,
    times: f64,
}

/// The reads of a trace.
fn read_trace(text: &str) -> Result<Vec<Access>> {
    let mut reads = Vec::new();
    for access in accesses(text.as_bytes()) {
        let access = access?;
        if access.op != AccessKind::Read {
            continue;
        }
        let forebay_simulation::Access { path, start, bytes, .. } = access;
        if (start + bytes) / SEGMENT_BYTES >= INDEX_MAX {
            return Err(Error::invalid(format!("{bytes} bytes from {start} on of {path:?} can't be")));
        }
        reads.push(Access { time_ms: access.at_us / 1_000, path, start, bytes, times: f64::from(access.times) });
    }
    if reads.is_empty() { Err(Error::invalid("the trace has no reads: there is nothing to plan for")) } else { Ok(reads) }
}

fn read(path: &Path, text: &str) -> Result<Vec<Access>> {
    let name = path.display();
    let mut accesses = Vec::new();
    let mut reader =
        csv::ReaderBuilder::new().has_headers(false).flexible(true).trim(csv::Trim::All).from_reader(text.as_bytes());
    for (line, record) in (1..).zip(reader.records()) {
        let record = record.map_err(|error| Error::invalid(format!("{name}: {error}")))?;
        let wrong = |what: String| Error::invalid(format!("{name}: line {line}: {what}"));
        let [time, path, bytes] = [0, 1, 2].map(|field| record.get(field));
        let (Some(time), Some(path), Some(bytes)) = (time, path, bytes) else {
            return Err(wrong(format!("{} fields: write timestamp,path,bytes", record.len())));
        };
        let time_ms = match time_ms(time) {
            Some(time_ms) => time_ms,
            // Titles.
            None if line == 1 && bytes.parse::<u64>().is_err() => continue,
            None => return Err(wrong(format!("{time:?} is no time: write seconds since 1970, or 2026-01-31T12:00:00Z"))),
        };
        let bytes = bytes.parse().map_err(|_| wrong(format!("{bytes:?} are no bytes: write a whole number from 0")))?;
        if path.is_empty() || bytes / SEGMENT_BYTES >= INDEX_MAX {
            return Err(wrong(format!("{bytes} bytes of {path:?} can't be")));
        }
        accesses.push(Access { time_ms, path: path.to_string(), start: 0, bytes, times: 1.0 });
    }
    if accesses.is_empty() {
        return Err(Error::invalid(format!("{name} has no accesses: write lines of timestamp,path,bytes")));
    }
    Ok(accesses)
}

/// Seconds or milliseconds since 1970, or RFC 3339.
fn time_ms(text: &str) -> Option<u64> {
    if let Ok(number) = text.parse::<f64>() {
        // Seconds would be past the year 5000.
        let ms = if number >= 1e11 { number } else { number * 1e3 };
        return (0.0..1e18).contains(&ms).then_some(ms as u64);
    }
    u64::try_from(DateTime::parse_from_rfc3339(text).ok()?.timestamp_millis()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        assert_eq!(time_ms("1.5"), Some(1500));
        assert_eq!(time_ms("1769860800"), Some(1_769_860_800_000));
        assert_eq!(time_ms("1769860800123"), Some(1_769_860_800_123));
        assert_eq!(time_ms("2026-01-31T12:00:00Z"), Some(1_769_860_800_000));
        for wrong in ["", "-1", "noon", "nan", "1969-12-31T23:59:59Z"] {
            assert_eq!(time_ms(wrong), None, "{wrong}");
        }
    }
}
