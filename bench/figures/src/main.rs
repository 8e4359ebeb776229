//! `make figures`: rounds of the benches in turns, the record of them, and the pages that follow from it.
#![expect(clippy::print_stdout, reason = "what it did is its output")]

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;

use chrono::{SecondsFormat, Utc};
use clap::Parser;
use forebay_bench_figures::{Bench, Checkout, Machine, Measured, Programs, Record, Run, Table, gather, pages};
use forebay_types::{Error, Result};

/// Measures what the table `bench/figures.toml` names, and writes `bench/figures.json` and the pages that show it.
#[derive(Parser)]
#[command(name = "forebay-bench-figures", version)]
struct Arguments {
    /// Rounds of each bench; they take turns
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=99))]
    rounds: u16,
    /// Only this bench, or the bench of this figure; may be given more than once. All other figures keep theirs
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Without the benches that need the query engine, which takes long to compile
    #[arg(long)]
    light: bool,
    /// Say what there is to measure, and end
    #[arg(long, group = "instead")]
    list: bool,
    /// Print the record, and end
    #[arg(long, group = "instead")]
    json: bool,
    /// Only write the pages, from the record that is there
    #[arg(long, group = "instead")]
    readme: bool,
    /// Write nothing; end with 1 where a page differs from the record, or the record from its own rounds
    #[arg(long, group = "instead")]
    check: bool,
    /// The checkout; the one that this was compiled in unless given
    #[arg(long, value_name = "FOLDER")]
    root: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("forebay-bench-figures: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<bool> {
    let checkout = arguments.root.clone().map_or_else(Checkout::own, Checkout::at);
    let table = Table::read(&checkout.table())?;
    let record = Record::read(&checkout.record())?;
    if arguments.list {
        list(&table);
    } else if arguments.json {
        print!("{}", record.text());
    } else if arguments.readme {
        pages::write(&checkout, &record.follow(&table))?;
    } else if arguments.check {
        return check(&checkout, &table);
    } else {
        let benches = wanted(&table, arguments)?;
        return measure(&checkout, &table, record, &benches, usize::from(arguments.rounds));
    }
    Ok(true)
}

fn list(table: &Table) {
    for bench in &table.benches {
        println!("{}{}: {}", bench.name, if bench.engine { " (engine)" } else { "" }, bench.command());
        for figure in &bench.figures {
            let bar = figure.bar.as_ref().map_or_else(|| "no bar".to_owned(), ToString::to_string);
            println!("  {}: {} [{}; {bar}]", figure.name, figure.says, figure.unit);
        }
    }
}

fn check(checkout: &Checkout, table: &Table) -> Result<bool> {
    let differing = pages::differing(checkout, table)?;
    differing.iter().for_each(|what| println!("{what}"));
    println!("{}", if differing.is_empty() { "pages say what the record says" } else { "remedy: make figures-pages" });
    Ok(differing.is_empty())
}

fn wanted<'a>(table: &'a Table, arguments: &Arguments) -> Result<Vec<&'a Bench>> {
    let is_named = |bench: &Bench, name: &str| bench.name == name || bench.figures.iter().any(|figure| figure.name == name);
    if let Some(none) = arguments.only.iter().find(|name| !table.benches.iter().any(|bench| is_named(bench, name))) {
        return Err(Error::not_found(format!("no bench and no figure is named {none:?}; --list names them")));
    }
    let is_wanted = |bench: &&Bench| {
        let is_asked = arguments.only.is_empty() || arguments.only.iter().any(|name| is_named(bench, name));
        is_asked && !(arguments.light && bench.engine)
    };
    Ok(table.benches.iter().filter(is_wanted).collect())
}

/// Whether no bench failed; a bar that is missed is a figure like any other.
fn measure(checkout: &Checkout, table: &Table, mut record: Record, benches: &[&Bench], rounds: usize) -> Result<bool> {
    let programs = Programs::build(&checkout.root, benches);
    let began = Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true);
    let (commit, changed) = checkout.commit();
    let machine = Machine::here()?;
    let mut measured = Measured::default();
    for round in 1..=rounds {
        gather(&checkout.root, benches, &programs, round, &mut measured, |start| println!("round {round}: {start}"))?;
        let (machine, starts) = (machine.clone(), measured.starts.clone());
        let run = Run { commit: commit.clone(), changed, rounds: round, machine, starts };
        // After each round, so that a run that is broken off leaves what it has.
        record = record.with_run(table, &began, run, &measured.points);
        pages::write(checkout, &record)?;
    }
    let failed: BTreeSet<_> = measured.starts.iter().filter(|start| start.error.is_some()).map(|start| &start.bench).collect();
    failed.iter().for_each(|bench| eprintln!("{bench} failed; its rows say so"));
    Ok(record.figures.iter().all(|entry| entry.error.is_none() || !measured.points.contains_key(&entry.name)))
}
