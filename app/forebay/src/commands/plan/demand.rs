//! What a plan is asked for, read from a file of counts or an access log, with segments numbered in the order of their ids; and who
//! holds what now, where it is to start from that.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::io::Read;
use std::path::Path;

use forebay_placement::{Holdings, SegmentDemand};
use forebay_types::{Error, Result};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;

use super::{log, natural};
use crate::cli::PlanReplicasArgs;

/// Accesses of a window that can be counted: whole numbers that JSON's readers keep.
const ACCESSES_MAX: u64 = 1 << 53;
/// Segments of a plan at most.
const SEGMENTS_MAX: usize = 16 << 20;

/// What is asked of the plan, by segment in natural order of their ids.
pub(super) struct Demand {
    /// The ids, by number.
    pub(super) ids: Vec<String>,
    /// What is asked for, by number.
    pub(super) segments: Vec<SegmentDemand>,
    numbers: HashMap<String, u32>,
}

impl Demand {
    /// From the file that the command line names.
    pub(super) fn read(args: &PlanReplicasArgs) -> Result<Self> {
        let counted = match (&args.counts, &args.from_log) {
            (Some(path), _) => counts(path, args.segment_bytes.0)?,
            (None, Some(path)) => log::counts(path, &text(path)?, args.window)?,
            (None, None) => unreachable!("the command line asks for one of them"),
        };
        Self::of(counted, args)
    }

    /// From (id, count, bytes) in any order. Segments of a folder are read together.
    fn of(mut counted: Vec<(String, u64, u64)>, args: &PlanReplicasArgs) -> Result<Self> {
        if counted.len() > SEGMENTS_MAX {
            return Err(Error::invalid(format!("{} segments are more than the {SEGMENTS_MAX} of a plan", counted.len())));
        }
        let sum = counted.iter().try_fold(0u64, |sum, (_, count, _)| sum.checked_add(*count));
        if sum.is_none_or(|sum| sum > ACCESSES_MAX) {
            return Err(Error::invalid(format!("the counts sum up to more than {ACCESSES_MAX}: scale them down")));
        }
        counted.sort_by(|one, other| natural::compare(&one.0, &other.0));
        let mut folders: HashMap<String, u32> = HashMap::new();
        // Little's law: accesses in flight are their rate times the time that each takes.
        let in_flight = args.service.as_secs_f64() / args.window.as_secs_f64().max(f64::MIN_POSITIVE);
        let mut demand = Self { ids: Vec::new(), segments: Vec::new(), numbers: HashMap::new() };
        for (order, (id, count, bytes)) in (0..).zip(counted) {
            let next = folders.len() as u32;
            let folder = id.rsplit_once('/').map_or("", |(folder, _)| folder);
            let dataset = match folders.get(folder) {
                Some(dataset) => *dataset,
                None => *folders.entry(folder.to_string()).or_insert(next),
            };
            let concurrent = count as f64 * in_flight;
            demand.segments.push(SegmentDemand {
                count,
                bytes,
                minimum: if count > 0 { args.minimum } else { 0 },
                dataset,
                order,
                concurrent_peak: concurrent,
                concurrent_mean: concurrent,
            });
            demand.numbers.insert(id.clone(), order);
            demand.ids.push(id);
        }
        Ok(demand)
    }

    /// Accesses of a window in all.
    pub(super) fn accesses(&self) -> u64 {
        self.segments.iter().map(|segment| segment.count).sum()
    }

    /// The number of a segment, if it is counted.
    pub(super) fn number(&self, id: &str) -> Option<u32> {
        self.numbers.get(id).copied()
    }
}

/// The text of a file, or of the standard input for `-`.
pub(super) fn text(path: &Path) -> Result<String> {
    let name = path.display();
    let bytes = if path == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(path)
    };
    let bytes = bytes.map_err(|error| Error::from(error).context(format!("can't read {name}")))?;
    String::from_utf8(bytes).map_err(|_| Error::invalid(format!("{name} isn't UTF-8")))
}

/// `{"segment id": count, ..}` as (id, count, bytes).
fn counts(path: &Path, bytes: u64) -> Result<Vec<(String, u64, u64)>> {
    let name = path.display();
    let Entries(entries) = serde_json::from_str(&text(path)?)
        .map_err(|error| Error::invalid(format!("{name} isn't of the form {{\"segment id\": count, ..}}: {error}")))?;
    let mut counted = Vec::with_capacity(entries.len());
    let mut seen = std::collections::HashSet::new();
    for (id, value) in entries {
        let wrong = |what: &str| Error::invalid(format!("{name}: the count of {id:?} is {value}, {what}: use a number from 0"));
        let count = match &value {
            Value::Number(number) => match (number.as_u64(), number.as_f64()) {
                (Some(count), _) => count,
                (None, Some(count)) if count < 0.0 => return Err(wrong("which is negative")),
                // Aged counts have fractions.
                (None, Some(count)) if count <= ACCESSES_MAX as f64 => count.round() as u64,
                _ => return Err(wrong("which is too large")),
            },
            _ => return Err(wrong("which isn't a number")),
        };
        if !seen.insert(id.clone()) {
            return Err(Error::invalid(format!("{name}: {id:?} is there twice: give each segment one count")));
        }
        counted.push((id, count, bytes));
    }
    Ok(counted)
}

/// The entries of an object as they stand, also those that come twice.
struct Entries(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Entries;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of counts by segment id")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Entries, M::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

/// Who holds what: `{"worker": ["segment id", ..], ..}`. Segments that aren't counted are left out: no plan has them.
pub(super) fn holdings(path: Option<&Path>, demand: &Demand, workers: u32) -> Result<Holdings> {
    let Some(path) = path else { return Ok(Holdings::none()) };
    let name = path.display();
    let held: BTreeMap<String, Vec<String>> = serde_json::from_str(&text(path)?)
        .map_err(|error| Error::invalid(format!("{name} isn't of the form {{\"worker\": [\"segment id\", ..], ..}}: {error}")))?;
    let mut pairs = Vec::new();
    for (worker, segments) in &held {
        let number = worker.parse::<u32>().ok().filter(|number| *number < workers && number.to_string() == *worker);
        let Some(number) = number else {
            return Err(Error::invalid(format!("{name}: there is no worker {worker:?}: they are \"0\" to \"{}\"", workers - 1)));
        };
        pairs.extend(segments.iter().filter_map(|segment| demand.number(segment)).map(|segment| (segment, number)));
    }
    Ok(Holdings::from_pairs(demand.segments.len(), pairs))
}
