//! CPU time of this process and its cores, from which the demo works out what no system could beat.

use std::fs;

/// Clock ticks of a second in /proc, the same on every Linux.
const TICKS_PER_SEC: f64 = 100.0;

/// CPU seconds that this process has used, in user and system mode, to 10 ms.
pub(crate) fn of_this_process() -> f64 {
    fs::read_to_string("/proc/self/stat").ok().and_then(|stat| ticks(&stat)).unwrap_or(0) as f64 / TICKS_PER_SEC
}

/// Cores that this process may use.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// User and system time of a line of /proc/PID/stat. The second field, in parentheses, may hold anything.
fn ticks(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_behind_any_name() {
        assert_eq!(ticks("7 (a) b) S 1 2 3 4 5 6 7 8 9 10 300 40 0 0"), Some(340));
        assert!(of_this_process() >= 0.0);
    }
}
