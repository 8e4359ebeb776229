//! CPU time and memory that processes took.

use std::time::Duration;

use forebay_types::{Error, Result, ResultExt};

/// Of this process' threads, which live as long as a benchmark does.
pub fn own() -> Result<Duration> {
    of("self")
}

/// Of another process' threads.
pub fn of_process(id: u32) -> Result<Duration> {
    of(&id.to_string())
}

fn of(process: &str) -> Result<Duration> {
    let folder = format!("/proc/{process}/task");
    let mut nanos = 0;
    for task in std::fs::read_dir(&folder).context(|| folder.clone())? {
        // A thread may have ended since it was listed.
        let Ok(text) = std::fs::read_to_string(task?.path().join("schedstat")) else { continue };
        let first = text.split(' ').next().and_then(|first| first.parse::<u64>().ok());
        nanos += first.ok_or_else(|| Error::internal(format!("{folder}: no time in {text:?}")))?;
    }
    Ok(Duration::from_nanos(nanos))
}

/// Memory that another process has, in bytes.
pub fn resident_bytes(id: u32) -> Result<u64> {
    let path = format!("/proc/{id}/statm");
    let text = std::fs::read_to_string(&path).context(|| path.clone())?;
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    Ok(pages.ok_or_else(|| Error::internal(format!("{path}: no number in {text:?}")))? * 4096)
}
