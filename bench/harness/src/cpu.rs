//! CPU time and memory that processes took.

use std::time::Duration;

use cpu_time::ProcessTime;
/// CPU time of the calling thread: other load on the machine doesn't count.
pub use cpu_time::ThreadTime;
use forebay_types::{Error, Result, ResultExt};

/// A tick of the system's clock of processes.
const TICK: Duration = Duration::from_millis(10);

/// Of another process, threads that have ended among it; to two hundredths of a second.
pub fn of_process(id: u32) -> Result<Duration> {
    let path = format!("/proc/{id}/stat");
    let text = std::fs::read_to_string(&path).context(|| path.clone())?;
    // The command before may have spaces and parentheses of its own; what follows begins with the third field.
    let after = text.rsplit_once(')').map_or("", |(_, after)| after);
    let ticks: Vec<u32> = after.split_whitespace().skip(11).take(2).filter_map(|field| field.parse().ok()).collect();
    match ticks[..] {
        [user, system] => Ok(TICK * (user + system)),
        _ => Err(Error::internal(format!("{path}: no times in {text:?}"))),
    }
}

/// Of this process, exactly.
pub fn own() -> Duration {
    ProcessTime::now().as_duration()
}

/// Of another process' threads that live; exactly.
pub fn of_live_threads(id: u32) -> Result<Duration> {
    let folder = format!("/proc/{id}/task");
    let mut nanos = 0;
    for task in std::fs::read_dir(&folder).context(|| folder.clone())? {
        // A thread may have ended since it was listed.
        let Ok(text) = std::fs::read_to_string(task?.path().join("schedstat")) else { continue };
        let first = text.split(' ').next().and_then(|first| first.parse::<u64>().ok());
        nanos += first.ok_or_else(|| Error::internal(format!("{folder}: no time in {text:?}")))?;
    }
    Ok(Duration::from_nanos(nanos))
}

/// Bytes of a process by their name in its status: `VmRSS:` in memory now, `VmHWM:` at most, `RssAnon:` of it what no file stands behind.
pub fn status_bytes(process: u32, field: &str) -> Result<u64> {
    let path = format!("/proc/{process}/status");
    let text = std::fs::read_to_string(&path).context(|| path.clone())?;
    let line = text.lines().find(|line| line.starts_with(field));
    let kib = line.and_then(|line| line.split_ascii_whitespace().nth(1)?.parse::<u64>().ok());
    Ok(kib.ok_or_else(|| Error::internal(format!("{path} tells no {field}")))? * 1024)
}

/// The same of this process.
pub fn own_bytes(field: &str) -> u64 {
    status_bytes(std::process::id(), field).expect("Linux says it")
}
