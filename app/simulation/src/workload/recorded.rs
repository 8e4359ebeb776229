//! A log of real accesses as a workload, stretched to the utilisation that a scenario wants.

mod gathered;

use std::collections::HashMap;
use std::io::BufRead;

use forebay_types::{Error, Result};

use self::gathered::Gathered;
use crate::workload::{Access, AccessKind, Micros, Query, accesses};

/// Accesses as they were recorded, each to a segment of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// The queries in the order of time.
    pub queries: Vec<Query>,
    /// The path of each segment.
    pub paths: Vec<String>,
    /// The most that was read of each segment at once.
    pub bytes: Vec<u64>,
}

impl Recorded {
    /// Reads a trace, or a log as [`Self::parse`] does: what it is, its first byte says.
    pub fn read(mut from: impl BufRead) -> Result<Self> {
        let first = from.fill_buf()?.iter().find(|byte| !byte.is_ascii_whitespace()).copied();
        if first == Some(b'{') {
            return Self::of(accesses(from));
        }
        let mut text = String::new();
        from.read_to_string(&mut text)?;
        Self::parse(&text)
    }

    /// Of the reads of a trace, those of one operation are one query, at the time of the first; an access whose operation isn't known is
    /// a query by itself. Where no time is finer than a second, queries of a second are spread over it.
    pub fn of(accesses: impl Iterator<Item = Result<Access>>) -> Result<Self> {
        let mut gathered = Gathered::default();
        for access in accesses {
            let access = access?;
            if access.op == AccessKind::Read {
                gathered.add(&access)?;
            }
        }
        let (queries, paths, bytes) = gathered.finish()?;
        Ok(Self { queries, paths, bytes })
    }

    /// Reads a log: lines `timestamp,path,bytes`, with or without a line of titles. A timestamp is a number of seconds (with
    /// decimals) from any origin. Each path is one segment; lines of one timestamp are one query. `Invalid` names the line that can't be
    /// understood.
    pub fn parse(text: &str) -> Result<Self> {
        let mut rows = Vec::new();
        let mut known: HashMap<&str, u32> = HashMap::new();
        let (mut paths, mut bytes) = (Vec::new(), Vec::new());
        for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let Some((secs, path, size)) = row(line) else {
                if at == 0 && line.trim_start().starts_with(|c: char| c.is_ascii_alphabetic()) {
                    continue;
                }
                return Err(Error::invalid(format!(
                    "line {} is no access: write timestamp,path,bytes as in 12.5,lake/a.parquet,1048576",
                    at + 1
                )));
            };
            let segment = *known.entry(path).or_insert_with(|| {
                paths.push(path.to_string());
                bytes.push(0);
                paths.len() as u32 - 1
            });
            let largest = &mut bytes[segment as usize];
            *largest = size.max(*largest);
            rows.push((secs, segment));
        }
        rows.sort_by(|a, b| a.0.total_cmp(&b.0));
        let Some(&(origin, _)) = rows.first() else {
            return Err(Error::invalid("the log has no access: write lines timestamp,path,bytes"));
        };
        let mut queries: Vec<Query> = Vec::new();
        for (secs, segment) in rows {
            let at = ((secs - origin) * 1e6) as Micros;
            let number = queries.len();
            match queries.last_mut() {
                Some(query) if query.at == at => {
                    if !query.segments.contains(&segment) {
                        query.segments.push(segment);
                    }
                }
                _ => queries.push(Query { at, client: number, segments: vec![segment] }),
            }
        }
        Ok(Self { queries, paths, bytes })
    }

    /// The queries again and again, with the time between them multiplied by `stretch`.
    pub(crate) fn repeated(&self, stretch: f64) -> impl Iterator<Item = Query> {
        let length = ((self.length() as f64 * stretch) as Micros).max(1);
        let rounds = (0..).map(move |round: u64| round * length);
        rounds.flat_map(move |start| {
            let at = move |query: &Query| start + (query.at as f64 * stretch) as Micros;
            self.queries.iter().map(move |query| Query { at: at(query), ..query.clone() })
        })
    }

    /// Accesses a query, on average.
    pub fn mean_accesses(&self) -> f64 {
        self.queries.iter().map(|query| query.segments.len()).sum::<usize>() as f64 / self.queries.len() as f64
    }

    /// Time from the first to the last access.
    pub fn length(&self) -> Micros {
        self.queries.last().map_or(0, |query| query.at)
    }
}

/// Timestamp, path and bytes of a line; a path may hold commas when it is quoted.
fn row(line: &str) -> Option<(f64, &str, u64)> {
    let (secs, rest) = line.trim().split_once(',')?;
    let (path, bytes) = rest.rsplit_once(',')?;
    let secs = secs.trim().parse::<f64>().ok().filter(|secs| secs.is_finite())?;
    let path = path.trim().trim_matches('"');
    (!path.is_empty()).then_some((secs, path, bytes.trim().parse().ok()?))
}
