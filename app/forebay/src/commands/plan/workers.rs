//! Reads the workers of `forebay plan replicas`, equal ones by their number or each as a file describes it.

use std::collections::HashMap;
use std::path::Path;

use forebay_placement::WorkerRoom;
use forebay_types::{ByteSize, Error, Result};
use serde::Deserialize;

use super::demand::text;
use crate::cli::PlanReplicasArgs;
use crate::exit::{Failure, Outcome};

/// Workers of a plan at most.
const WORKERS_MAX: usize = 100_000;

/// A worker as the file of `--workers-file` has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Described {
    /// Accesses that it serves a second, in any unit that is the same for all.
    speed: Option<f64>,
    /// Accesses a window, exactly.
    capacity: Option<u64>,
    /// Bytes of its storage.
    bytes: Option<ByteSize>,
    /// What fails together has the same name.
    domain: Option<String>,
}

/// The workers that the command line names.
pub(super) fn read(args: &PlanReplicasArgs) -> Outcome<Vec<WorkerRoom>> {
    if !(args.storage_share > 0.0 && args.storage_share <= 1.0) {
        let share = args.storage_share;
        return Err(Failure::Usage(format!("--storage-share {share}: use a share above 0 and up to 1, as in 0.8")));
    }
    let mut workers = match (&args.workers_file, args.workers) {
        (Some(path), _) => described(path)?,
        (None, workers) => {
            let bytes = args.worker_bytes.map_or(u64::MAX, |bytes| bytes.0);
            let equal = WorkerRoom::equal(workers.unwrap_or(1)).into_iter();
            equal.map(|room| WorkerRoom { capacity: args.capacity, bytes, ..room }).collect()
        }
    };
    for worker in workers.iter_mut().filter(|worker| worker.bytes < u64::MAX) {
        worker.bytes = (worker.bytes as f64 * args.storage_share) as u64;
    }
    Ok(workers)
}

fn described(path: &Path) -> Result<Vec<WorkerRoom>> {
    let name = path.display();
    let all: Vec<Described> = serde_json::from_str(&text(path)?).map_err(|error| {
        let form = r#"[{"speed": 1, "bytes": "64GiB", "domain": "rack-1", "capacity": 100}, ..]"#;
        Error::invalid(format!("{name} isn't of the form {form}: {error}"))
    })?;
    if all.is_empty() || all.len() > WORKERS_MAX {
        return Err(Error::invalid(format!("{name} has {} workers: a plan is for 1 to {WORKERS_MAX}", all.len())));
    }
    let mut domains: HashMap<String, u32> = HashMap::new();
    let mut workers = Vec::with_capacity(all.len());
    for (number, Described { speed, capacity, bytes, domain }) in all.into_iter().enumerate() {
        let speed = speed.unwrap_or(1.0);
        if !(speed.is_finite() && speed >= 0.0) {
            return Err(Error::invalid(format!("{name}: worker {number} has the speed {speed}: use a number from 0")));
        }
        // Who names none is a domain of its own.
        let next = domains.len() as u32;
        let domain = *domains.entry(domain.unwrap_or_else(|| format!("\0{number}"))).or_insert(next);
        let bytes = bytes.map_or(u64::MAX, |bytes| bytes.0);
        workers.push(WorkerRoom { capacity, speed, bytes, host: domain, domain });
    }
    Ok(workers)
}
