//! `forebay stat`: an object's version and size, and what each tier holds of it.

use forebay_client::Client;
use forebay_protocol::Held;
use forebay_types::{ForebayPath, format_bytes, segment_count};
use serde::Serialize;

use crate::cli::StatArgs;
use crate::commands::ls::time;
use crate::exit::{Outcome, Several};
use crate::output::Output;
use crate::tree::no_object;

#[derive(Serialize)]
struct Stat {
    path: String,
    bytes: u64,
    modified: String,
    version: String,
    segments: u32,
    dram_bytes: u64,
    disk_bytes: u64,
    cached_bytes: u64,
    kept: bool,
}

pub(crate) async fn run(client: &Client, args: StatArgs) -> Outcome {
    let mut output = Output::new(args.json);
    let mut several = Several::of(args.paths.len());
    for path in &args.paths {
        let outcome = show(client, path, &mut output).await;
        several.ended(outcome)?;
    }
    output.finish()?;
    several.finish()
}

async fn show(client: &Client, path: &ForebayPath, output: &mut Output) -> Outcome {
    let info = match client.open(path).await {
        Ok(info) => info,
        Err(error) => return Err(no_object(client, path, error).await.into()),
    };
    let held = sum(client.held(std::slice::from_ref(&info.version)).await?);
    let stat = Stat {
        path: path.to_string(),
        bytes: info.version.size,
        modified: time(info.modified_ms),
        version: info.version.tag.to_string(),
        segments: segment_count(info.version.size),
        dram_bytes: held.dram_bytes,
        disk_bytes: held.disk_bytes,
        cached_bytes: held.bytes,
        kept: held.keep,
    };
    if output.json {
        return output.record(&stat);
    }
    output.line(&stat.path)?;
    output.line(&format!("  size      {} ({} bytes)", format_bytes(stat.bytes), stat.bytes))?;
    output.line(&format!("  modified  {}", stat.modified))?;
    output.line(&format!("  version   {}", stat.version))?;
    output.line(&format!("  segments  {}", stat.segments))?;
    output.line(&format!(
        "  cached    {} ({} in DRAM, {} on disk{})",
        format_bytes(stat.cached_bytes),
        format_bytes(stat.dram_bytes),
        format_bytes(stat.disk_bytes),
        if stat.kept { ", kept" } else { "" }
    ))
}

/// What is held of several objects together; kept when all that is held of some is.
pub(crate) fn sum(held: Vec<Held>) -> Held {
    held.into_iter().fold(Held::default(), Held::and)
}
