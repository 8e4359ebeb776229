//! `forebay demo`: TPC-H through Forebay and through the alternatives, against an S3 server behind a slow link.
//!
//! Everything runs on this machine. The S3 server is a process of its own; Forebay runs in this one, as `forebay up`
//! would, on a data folder that is new each time.

mod chart;
mod cpu;
mod engines;
mod floor;
mod ingest;
mod passes;
mod report;
mod serve;
mod server;
mod stage;

use std::fs;
use std::os::unix::process::CommandExt;

use forebay_demo::{ACCESS_KEY, SECRET_KEY};
use forebay_types::{Error, ResultExt};

use crate::cli::DemoArgs;
use crate::exit::Outcome;
use crate::output::Output;
use crate::{program, progress};
pub(crate) use serve::serve;

/// Makes the data, runs everything, and leaves report.txt, report.svg and report.json in the demo's folder.
pub(crate) async fn run(args: DemoArgs) -> Outcome {
    let started = forebay_runtime::now();
    fs::create_dir_all(&args.folder).context(|| args.folder.display())?;
    let bar = progress::steps(&format!("make TPC-H, scale {}", args.scale), 0);
    let seen = bar.clone();
    let tables = forebay_tpch::prepare(&args.folder, args.scale, move |rows, total| {
        seen.set_length(total);
        seen.inc(rows);
    });
    let tables = tables.await;
    bar.finish_and_clear();
    let tables = tables?;
    let stage = stage::Stage::set(&args, &tables).await?;
    let report = passes::run(&args, &tables, &stage, started).await;
    stage.clear().await;
    let report = report?;

    let text = report.text(args.verbose);
    let json = report.json()?;
    for (name, content) in
        [("report.txt", report.text(true)), ("report.json", json.clone()), ("report.svg", chart::draw(&report))]
    {
        let file = args.folder.join(name);
        fs::write(&file, content).context(|| file.display())?;
    }
    let mut output = Output::new(args.json);
    if args.json {
        output.line(json.trim_end())?;
    } else {
        output.line(text.trim_end())?;
        output.line("")?;
        output.line(&format!(
            "{0}/report.txt, report.json and report.svg hold this. The demo took {1:.0} s.",
            args.folder.display(),
            started.elapsed().as_secs_f64()
        ))?;
    }
    output.finish()?;
    report.verdict().map_err(|what| Error::corrupt(what).into())
}

/// Starts this program anew with the credentials of the demo's S3 server, which every part of Forebay takes from the
/// environment; comes back when they are there already. Whatever else points AWS clients elsewhere is taken out.
pub(crate) fn with_credentials() -> Outcome {
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|found| found == value);
    let others = ["AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT", "AWS_CA_BUNDLE"];
    let proxies = ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"];
    let clean = others.iter().chain(&proxies).all(|name| std::env::var_os(name).is_none());
    if clean && is("AWS_ACCESS_KEY_ID", ACCESS_KEY) && is("AWS_SECRET_ACCESS_KEY", SECRET_KEY) && is("AWS_REGION", "us-east-1") {
        return Ok(());
    }
    let mut command = program::again_as_it_is()?;
    command.envs([("AWS_ACCESS_KEY_ID", ACCESS_KEY), ("AWS_SECRET_ACCESS_KEY", SECRET_KEY), ("AWS_REGION", "us-east-1")]);
    for name in others.iter().chain(&proxies) {
        command.env_remove(name);
    }
    Err(Error::from(command.exec()).context("can't start the demo").into())
}
