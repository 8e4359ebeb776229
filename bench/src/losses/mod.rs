//! Losses: a cluster of real processes under clients that ask TPC-H, first undisturbed, then with its processes killed and started
//! again. Every answer is compared with that of one process.

mod clients;
mod counts;
mod processes;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use forebay_bench_harness::{Bar, Figure};
use forebay_tpch::{QUERIES, prepare};
use forebay_types::{Error, Result, ResultExt};

use clients::{Clients, Query, alone};
use counts::Counts;
use processes::{Processes, Role};

/// Workers, each with an executor.
const WORKERS: usize = 3;
/// How long what was killed stays away.
const AWAY: Duration = Duration::from_secs(3);

/// For how long, and what.
#[derive(Args)]
pub struct LossesArgs {
    /// Minutes undisturbed.
    #[arg(long, default_value_t = 3.0)]
    minutes: f64,
    /// Minutes with losses; those of --minutes when not set.
    #[arg(long)]
    losses_minutes: Option<f64>,
    /// Clients at once.
    #[arg(long, default_value_t = 8)]
    clients: usize,
    /// Seconds from one loss to the next.
    #[arg(long, default_value_t = 30)]
    kill_every: u64,
    /// Folder with a folder of Parquet files a table; TPC-H of --scale is made when not set.
    #[arg(long)]
    data: Option<PathBuf>,
    /// Folder of .sql files, a query each; those of TPC-H when not set.
    #[arg(long)]
    queries: Option<PathBuf>,
    /// Scale factor of TPC-H.
    #[arg(long, default_value_t = 0.1)]
    scale: f64,
    /// The binary of forebay; the one beside this program when not set.
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Folder of the processes and their logs, which stays; a temporary one when not set.
    #[arg(long)]
    folder: Option<PathBuf>,
}

/// Runs it, prints the counts, and gives them as figures.
pub async fn losses(arguments: LossesArgs, json: bool) -> Result<Vec<Figure>> {
    let temporary = tempfile::tempdir()?;
    let home = arguments.folder.clone().unwrap_or_else(|| temporary.path().to_path_buf());
    std::fs::create_dir_all(&home)?;
    let data = match &arguments.data {
        Some(data) => data.canonicalize().context(|| data.display())?,
        None => prepare(&home, arguments.scale, |_, _| ()).await?.folder,
    };
    let ran = tokio::task::spawn_blocking(move || run(&arguments, &home, &data, json)).await;
    ran.map_err(|error| Error::internal(format!("the run ended early: {error}")))?
}

fn run(arguments: &LossesArgs, home: &Path, data: &Path, json: bool) -> Result<Vec<Figure>> {
    let beside = std::env::current_exe()?.with_file_name("forebay");
    let binary =
        arguments.binary.clone().unwrap_or(beside).canonicalize().map_err(|error| {
            Error::invalid(format!("there is no forebay to start ({error}): build it, or name it with --binary"))
        })?;
    let mut processes = Processes::start(&binary, home, WORKERS, data)?;
    for table in tables(data)? {
        let sql = format!("create external table {table} stored as parquet location '/lake/{table}/'");
        processes.ask(&["sql", "--scheduler", "off", &sql])?;
    }
    let queries = Arc::new(queries(arguments.queries.as_deref(), &processes)?);

    let clients = Clients::start("undisturbed", arguments.clients, &processes, &queries, &Arc::default());
    std::thread::sleep(minutes(arguments.minutes));
    let (undisturbed, usual) = clients.stop();
    print(&undisturbed, json);

    let clients = Clients::start("losses", arguments.clients, &processes, &queries, &Arc::new(usual));
    let period = minutes(arguments.losses_minutes.unwrap_or(arguments.minutes));
    let lost = lose(&mut processes, &clients, period, Duration::from_secs(arguments.kill_every));
    let (disturbed, _) = clients.stop();
    print(&disturbed, json);
    lost?;
    Ok(figures((&undisturbed, minutes(arguments.minutes)), (&disturbed, period)))
}

/// Of both phases, and how long they lasted.
fn figures((undisturbed, before): (&Counts, Duration), (disturbed, during): (&Counts, Duration)) -> Vec<Figure> {
    let a_minute = |counts: &Counts, period: Duration| counts.done as f64 / (period.as_secs_f64() / 60.0);
    let worst = (undisturbed.worst() + disturbed.worst()) as f64;
    vec![
        Figure::new("answers wrong or hung", worst, "queries", "none", 1.0, Bar::ValueAtMost(0.0)),
        Figure::alone("queries done, with losses", disturbed.ratio, "of all", Bar::ValueAtLeast(1.0))
            .beside("undisturbed", undisturbed.ratio),
        Figure::alone("queries done a minute, with losses", a_minute(disturbed, during), "queries", Bar::RatioAtLeast(0.4))
            .beside("undisturbed", a_minute(undisturbed, before)),
        Figure::new("kills amid queries", disturbed.kills_in_midst as f64, "kills", "none", 1.0, Bar::Nothing),
    ]
}

/// What is killed at the same time.
fn victims(turn: usize) -> Vec<Role> {
    let (executor, worker) = (Role::Executor(turn / 3 % WORKERS), Role::Worker((turn / 3 + 1) % WORKERS));
    match turn % 3 {
        0 => vec![executor],
        1 => vec![worker],
        _ => vec![executor, worker],
    }
}

/// When coordinator and scheduler are killed, twice each, between the others.
fn of_the_two(period: Duration) -> [(Duration, Role); 4] {
    let at = |fifth: u32| period * fifth / 5;
    [(at(1), Role::Scheduler), (at(2), Role::Coordinator), (at(3), Role::Scheduler), (at(4), Role::Coordinator)]
}

/// All that is killed, by when.
fn plan(period: Duration, every: Duration) -> Vec<(Duration, Vec<Role>)> {
    let turns = (1..).map(|turn| every * turn).take_while(|at| *at < period);
    let mut plan: Vec<_> = turns.enumerate().map(|(turn, at)| (at, victims(turn))).collect();
    plan.extend(of_the_two(period).into_iter().map(|(at, role)| (at, vec![role])));
    plan.sort_by_key(|(at, _)| *at);
    plan
}

/// Kills what the plan says, and starts it again a little later.
fn lose(processes: &mut Processes, clients: &Clients, period: Duration, every: Duration) -> Result<()> {
    let began = Instant::now();
    for (at, roles) in plan(period, every.max(Duration::from_secs(1))) {
        std::thread::sleep(at.saturating_sub(began.elapsed()));
        for role in &roles {
            eprintln!("{:>6.1} s: kill -9 {role:?}, {} queries in flight", began.elapsed().as_secs_f64(), clients.in_flight());
            clients.note_kill();
            processes.kill(*role)?;
        }
        std::thread::sleep(AWAY);
        for role in roles {
            processes.restart(role)?;
        }
    }
    std::thread::sleep(period.saturating_sub(began.elapsed()));
    Ok(())
}

fn minutes(minutes: f64) -> Duration {
    Duration::from_secs_f64(minutes.max(0.0) * 60.0)
}

/// The folders with files, by name.
fn tables(data: &Path) -> Result<Vec<String>> {
    let mut tables = Vec::new();
    for entry in std::fs::read_dir(data).context(|| data.display())? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            tables.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    tables.sort();
    Ok(tables)
}

fn queries(folder: Option<&Path>, processes: &Processes) -> Result<Vec<Query>> {
    let named: Vec<(String, String)> = match folder {
        None => QUERIES.iter().enumerate().map(|(ix, sql)| (format!("q{}", ix + 1), (*sql).to_string())).collect(),
        Some(folder) => read(folder)?.into_iter().collect(),
    };
    let mut queries = Vec::new();
    for (name, sql) in named {
        let alone = alone(processes, &sql)?;
        queries.push(Query { name, sql, alone });
    }
    queries.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(queries)
}

fn read(folder: &Path) -> Result<HashMap<String, String>> {
    let mut all = HashMap::new();
    for entry in std::fs::read_dir(folder).context(|| folder.display())? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "sql") {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            all.insert(name, std::fs::read_to_string(&path).context(|| path.display())?);
        }
    }
    Ok(all)
}

#[expect(clippy::print_stdout, reason = "counts are the program's output")]
fn print(counts: &Counts, json: bool) {
    if json { println!("{}", serde_json::to_string(counts).expect("counts are plain")) } else { println!("{}", counts.text()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_lost_and_the_two_that_are_alone_twice() {
        let secs = Duration::from_secs;
        let plan = plan(secs(300), secs(30));
        let times = |role| plan.iter().filter(|(_, roles)| roles.contains(&role)).count();
        assert_eq!((times(Role::Scheduler), times(Role::Coordinator)), (2, 2));
        for ix in 0..WORKERS {
            assert!(times(Role::Executor(ix)) > 0 && times(Role::Worker(ix)) > 0, "{plan:?}");
        }
        assert!(plan.iter().any(|(_, roles)| roles.len() == 2) && plan.is_sorted_by_key(|(at, _)| *at));
    }
}
