//! Jobs with and without data that is brought ahead, at each reuse, as rows and as a picture.

use std::fmt::Write;

use forebay_chart::{Chart, Line};
use serde::Serialize;

use super::{MixApartOutcome, MixApartSettings, mixapart};

/// A run and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MixApartRow {
    /// Share of the tasks whose input was cached when their job arrived.
    pub reuse: f64,
    /// Size of all workers' memory, as a share of the working set; none where it has no bounds.
    pub tier: Option<f64>,
    /// Whether input was brought ahead of the tasks.
    pub data_scheduler: bool,
    /// Tasks that would run at once, on average, if their input were always there.
    pub offered_tasks: f64,
    /// What was measured.
    #[serde(flatten)]
    pub outcome: MixApartOutcome,
}

/// A run for each reuse and each way, under `load` of the tasks that slots and bandwidth sustain at that reuse.
pub fn mixapart_rows(settings: &MixApartSettings, reuse: &[f64], ways: &[bool], load: f64) -> Vec<MixApartRow> {
    let runs = reuse.iter().flat_map(|reuse| ways.iter().map(|way| (*reuse, *way)));
    runs.map(|(reuse, brings_ahead)| {
        let settings = MixApartSettings { reuse, brings_ahead, ..settings.clone() };
        let settings = MixApartSettings { offered_tasks: load * settings.sustained_tasks(), ..settings };
        let offered_tasks = settings.offered_tasks;
        MixApartRow { reuse, tier: None, data_scheduler: brings_ahead, offered_tasks, outcome: mixapart(&settings) }
    })
    .collect()
}

/// The same over a working set, a run for each size of the workers' memory and each way, under `load` of what slots and bandwidth sustain
/// with nothing cached.
pub fn mixapart_tier_rows(settings: &MixApartSettings, tiers: &[f64], ways: &[bool], load: f64) -> Vec<MixApartRow> {
    let offered_tasks = load * MixApartSettings { reuse: 0.0, ..settings.clone() }.sustained_tasks();
    let runs = tiers.iter().flat_map(|tier| ways.iter().map(|way| (*tier, *way)));
    runs.map(|(tier, brings_ahead)| {
        let outcome = mixapart(&MixApartSettings { tier, brings_ahead, offered_tasks, ..settings.clone() });
        MixApartRow { reuse: outcome.cached, tier: Some(tier), data_scheduler: brings_ahead, offered_tasks, outcome }
    })
    .collect()
}

/// The rows with a line of titles.
pub fn mixapart_csv(rows: &[MixApartRow]) -> String {
    let mut csv = String::from(
        "reuse,tier,data_scheduler,offered_tasks,arrived,done,computing,waiting,link,local,job_secs,\
         from_disk,brought_ahead,evicted_unread,evicted,misrouted,rate_off,copies\n",
    );
    for MixApartRow { reuse, tier, data_scheduler, offered_tasks, outcome } in rows {
        let MixApartOutcome { arrived, done, computing, waiting, link, local, job_secs, .. } = outcome;
        let MixApartOutcome { from_disk, brought_ahead, evicted_unread, evicted, misrouted, rate_off, copies, .. } = outcome;
        let tier = tier.map(|tier| tier.to_string()).unwrap_or_default();
        let _ = writeln!(
            csv,
            "{reuse},{tier},{data_scheduler},{offered_tasks},{arrived},{done},{computing},{waiting},{link},{local},{job_secs},\
             {from_disk},{brought_ahead},{evicted_unread},{evicted},{misrouted},{rate_off},{copies}"
        );
    }
    csv
}

/// The mean time of a job by reuse, a line a way.
pub fn mixapart_chart(settings: &MixApartSettings, rows: &[MixApartRow]) -> Chart {
    let lines = [(true, "input brought ahead"), (false, "fetched by tasks")].into_iter().filter_map(|(way, name)| {
        let points: Vec<(f64, f64)> =
            rows.iter().filter(|row| row.data_scheduler == way).map(|row| (row.reuse, row.outcome.job_secs)).collect();
        (!points.is_empty()).then(|| Line { name: name.into(), points, dashed: false })
    });
    Chart {
        title: format!("Mean time of a job: {} workers of {} slots", settings.workers, settings.slots),
        x: "share of the input that is cached".into(),
        y: "seconds".into(),
        from_zero: true,
        lines: lines.collect(),
    }
}
