//! `forebay simulate mixapart`: what bringing input ahead of tasks wins, reuse by reuse.

use forebay_scheduling::Policy;
use forebay_simulation::{
    MixApartReplay, MixApartRow, MixApartSettings, mixapart_chart, mixapart_csv, mixapart_jobs, mixapart_replays, mixapart_rows,
    mixapart_tier_rows,
};

use super::{recorded, write};
use crate::cli::{DataScheduler, JobOrder, MixApartArgs};
use crate::exit::{Failure, Outcome};
use crate::output::list;

/// Segments of a working set at most.
const SEGMENTS_MAX: u32 = 1_000_000;
/// So many tasks' input has to fit into a worker's memory.
const INPUTS_MIN: u64 = 4;

/// Runs a cluster under a steady load, once for each reuse and with or without the data scheduler.
pub(crate) fn run(args: &MixApartArgs) -> Outcome {
    let settings = settings(args)?;
    let ways: &[bool] = match args.data_scheduler {
        DataScheduler::On => &[true],
        DataScheduler::Off => &[false],
        DataScheduler::Both => &[true, false],
    };
    if let Some(file) = &args.trace {
        let jobs = mixapart_jobs(&recorded(file)?, &settings.task_secs);
        return show_replays(args, &mixapart_replays(&settings, &jobs, ways));
    }
    let has_set = settings.working_set > 0;
    let rows = match has_set {
        true => mixapart_tier_rows(&settings, &args.tier, ways, args.load),
        false => mixapart_rows(&settings, &args.reuse, ways, args.load),
    };
    write(args.csv.as_deref(), || mixapart_csv(&rows))?;
    write(args.plot.as_deref(), || mixapart_chart(&settings, &rows).svg())?;
    if has_set {
        return show_tiers(args, &rows);
    }
    let titles =
        ["reuse", "data scheduler", "tasks offered", "computing", "job time", "slots waited", "link used", "local", "rates off"];
    list(args.json, &rows, &titles, &[0, 2, 3, 4, 5, 6, 7, 8], line)
}

/// Runs over a working set, a row a size and way.
fn show_tiers(args: &MixApartArgs, rows: &[MixApartRow]) -> Outcome {
    let titles = [
        "memory",
        "data scheduler",
        "job time",
        "cached",
        "from disk",
        "link used",
        "brought ahead",
        "unread when evicted",
        "evicted",
        "misrouted",
        "rates off",
        "copies",
    ];
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    list(args.json, rows, &titles, &[0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], |row| {
        let outcome = &row.outcome;
        vec![
            format!("{}x", row.tier.unwrap_or_default()),
            if row.data_scheduler { "on" } else { "off" }.into(),
            format!("{:.1} s", outcome.job_secs),
            percent(outcome.cached),
            percent(outcome.from_disk),
            percent(outcome.link),
            outcome.brought_ahead.to_string(),
            format!("{:.2} %", outcome.evicted_unread * 100.0),
            outcome.evicted.to_string(),
            outcome.misrouted.to_string(),
            percent(outcome.rate_off),
            format!("{:.2}", outcome.copies),
        ]
    })
}

/// A trace's jobs, a row a way.
fn show_replays(args: &MixApartArgs, rows: &[MixApartReplay]) -> Outcome {
    let titles = ["data scheduler", "jobs", "tasks", "reuse", "job time", "in all", "link used", "local"];
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    list(args.json, rows, &titles, &[1, 2, 3, 4, 5, 6, 7], |row| {
        vec![
            if row.data_scheduler { "on" } else { "off" }.into(),
            row.jobs.to_string(),
            row.tasks.to_string(),
            percent(row.reuse),
            format!("{:.1} s", row.job_secs),
            format!("{:.1} s", row.secs),
            percent(row.link),
            percent(row.local),
        ]
    })
}

fn settings(args: &MixApartArgs) -> Outcome<MixApartSettings> {
    if let Some(reuse) = args.reuse.iter().find(|reuse| !(0.0..=1.0).contains(*reuse)) {
        return Err(Failure::Usage(format!("a reuse of {reuse} is out of range: use shares from 0 to 1, as in 0.2,0.8")));
    }
    if !(args.load > 0.0 && args.load <= 2.0) {
        return Err(Failure::Usage(format!("a load of {} is out of range: use a share above 0, as in 0.7", args.load)));
    }
    let longest = args.task.iter().max().copied().unwrap_or_default();
    if args.task.iter().any(|task| task.as_millis() == 0) || args.task_bytes.0 == 0 {
        return Err(Failure::Usage("a task takes 1ms at least and reads something: give --task and --task-bytes".into()));
    }
    if args.task_bytes.0 > forebay_types::SEGMENT_BYTES {
        return Err(Failure::Usage(format!(
            "a task reads one segment at most here: give --task-bytes of 64MiB or less, not {}",
            args.task_bytes
        )));
    }
    if args.duration < 8 * longest {
        return Err(Failure::Usage("a run is eight tasks long at least, to tell anything: give a longer --duration".into()));
    }
    if !(0.0..1.0).contains(&args.spread) {
        return Err(Failure::Usage(format!(
            "a spread of {} is out of range: use a share from 0 to below 1, as in 0.3",
            args.spread
        )));
    }
    let settings = MixApartSettings {
        workers: args.workers,
        slots: args.slots,
        bandwidth_bytes_per_sec: args.bandwidth.bytes_per_sec() as f64,
        task_bytes: args.task_bytes.0,
        task_secs: args.task.iter().map(std::time::Duration::as_secs_f64).collect(),
        job_tasks_max: args.job_tasks,
        policy: match args.policy {
            JobOrder::Fifo => Policy::Fifo,
            JobOrder::Fair => Policy::Fair,
        },
        secs: args.duration.as_secs_f64(),
        spread: args.spread,
        seed: args.seed,
        ..MixApartSettings::default()
    };
    match args.working_set {
        Some(bytes) => with_set(args, bytes.0, settings),
        None => Ok(settings),
    }
}

/// The same over a working set in tiers with bounds.
fn with_set(args: &MixApartArgs, bytes: u64, settings: MixApartSettings) -> Outcome<MixApartSettings> {
    let segments = bytes.div_ceil(settings.task_bytes);
    let Some(working_set) = u32::try_from(segments).ok().filter(|segments| (1..=SEGMENTS_MAX).contains(segments)) else {
        return Err(Failure::Usage(format!(
            "a working set of {segments} tasks' input is out of range: give a --working-set of 1 to {SEGMENTS_MAX} times --task-bytes"
        )));
    };
    let is_share = |share: f64| (0.0..=100.0).contains(&share);
    if !is_share(args.disk_tier) || !args.tier.iter().all(|tier| is_share(*tier)) {
        return Err(Failure::Usage("a --tier or --disk-tier is a share of the working set, up to 100, as in 1.2,1.0,0.8".into()));
    }
    let disk_bytes_per_sec = args.disk_bandwidth.bytes_per_sec() as f64;
    let settings = MixApartSettings { working_set, disk_tier: args.disk_tier, disk_bytes_per_sec, ..settings };
    for tier in &args.tier {
        let memory = MixApartSettings { tier: *tier, ..settings.clone() }.worker_bytes().map_or(0, |(memory, _)| memory);
        if memory < INPUTS_MIN * settings.task_bytes {
            return Err(Failure::Usage(format!(
                "{tier}x of the working set is {memory} bytes a worker, and {INPUTS_MIN} tasks' input has to fit: use fewer --workers or a larger --working-set"
            )));
        }
    }
    Ok(settings)
}

fn line(row: &MixApartRow) -> Vec<String> {
    let (outcome, percent) = (&row.outcome, |share: f64| format!("{:.1} %", share * 100.0));
    vec![
        row.reuse.to_string(),
        if row.data_scheduler { "on" } else { "off" }.into(),
        format!("{:.0}", row.offered_tasks),
        format!("{:.0}", outcome.computing),
        format!("{:.1} s", outcome.job_secs),
        percent(outcome.waiting),
        percent(outcome.link),
        percent(outcome.local),
        percent(outcome.rate_off),
    ]
}
