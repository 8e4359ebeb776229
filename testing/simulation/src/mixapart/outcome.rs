use serde::Serialize;

/// What a run measured after its first quarter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct MixApartOutcome {
    /// Tasks that arrived.
    pub arrived: u64,
    /// Tasks that were done.
    pub done: u64,
    /// Tasks that computed at once, on average.
    pub computing: f64,
    /// Share of the slots' time in which a task held one and waited for its input.
    pub waiting: f64,
    /// Share of the bandwidth that was used.
    pub link: f64,
    /// Share of the tasks that ran where most of their input was or was arriving.
    pub local: f64,
    /// Mean time from a job's arrival to the end of its last task, in seconds, of jobs that ended.
    pub job_secs: f64,
}
