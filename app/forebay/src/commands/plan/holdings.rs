//! Reads who holds what now, where `forebay plan replicas` is to start from that.

use std::collections::BTreeMap;
use std::path::Path;

use forebay_placement::Holdings;
use forebay_types::{Error, Result};

use super::demand::{Demand, text};

/// Who holds what: `{"worker": ["segment id", ..], ..}`. Segments that aren't counted are left out: no plan has them.
pub(super) fn read(path: Option<&Path>, demand: &Demand, workers: u32) -> Result<Holdings> {
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
