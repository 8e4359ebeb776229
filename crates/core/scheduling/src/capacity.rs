//! How many tasks a bandwidth feeds.

/// How many parallel tasks shared storage can feed (MixApart, figure 1).
///
/// A task reads `task_bytes` in `task_secs`; `reuse` of its input (0 to 1) is in the cache already, so that only the
/// rest comes through `bandwidth_bytes_per_sec`. Tasks then start at bandwidth / ((1 - reuse) x bytes) a second, and
/// each of them runs for its duration. Everything in the cache feeds any number of tasks: infinity.
///
/// ```
/// use forebay_scheduling::sustained_tasks;
///
/// // The paper's example: tasks of 20 s over 64 MB, 80 % of it cached, behind 10 Gbit/s.
/// assert_eq!(sustained_tasks(0.8, 20.0, 64e6, 10e9 / 8.0).round(), 1953.0);
/// assert_eq!(sustained_tasks(0.0, 20.0, 64e6, 10e9 / 8.0).round(), 391.0);
/// ```
pub fn sustained_tasks(reuse: f64, task_secs: f64, task_bytes: f64, bandwidth_bytes_per_sec: f64) -> f64 {
    let fetched_bytes = (1.0 - reuse.clamp(0.0, 1.0)) * task_bytes;
    bandwidth_bytes_per_sec * task_secs / fetched_bytes
}
