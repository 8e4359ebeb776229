//! `forebay du`: bytes below paths, and how many of them each tier holds.

use forebay_client::Client;
use forebay_types::{ForebayPath, Key, format_bytes};
use serde::Serialize;

use super::show::stat::sum;
use crate::cli::DuArgs;
use crate::exit::Outcome;
use crate::output::Output;
use crate::tree::Tree;

#[derive(Serialize)]
struct Usage {
    path: String,
    objects: usize,
    bytes: u64,
    dram_bytes: u64,
    disk_bytes: u64,
    cached_bytes: u64,
}

pub(crate) async fn run(client: &Client, args: DuArgs) -> Outcome {
    let mut output = Output::new(args.json);
    let paths = if args.paths.is_empty() {
        let root = Key::new("")?;
        client.view().mounts.iter().map(|mount| ForebayPath::new(mount.name.clone(), root.clone())).collect()
    } else {
        args.paths
    };
    let mut rows = Vec::new();
    for path in &paths {
        let tree = Tree::of(client, path).await?;
        let held = sum(client.held(&tree.versions()).await?);
        let usage = Usage {
            path: tree.path(path).to_string(),
            objects: tree.objects().len(),
            bytes: tree.bytes(),
            dram_bytes: held.dram_bytes,
            disk_bytes: held.disk_bytes,
            cached_bytes: held.bytes,
        };
        if args.json {
            output.record(&usage)?;
        } else {
            // The tiers hold whole pages: more bytes than small objects have.
            let cached = u128::from(usage.cached_bytes.min(usage.bytes));
            let share = (cached * 100).checked_div(u128::from(usage.bytes)).unwrap_or(0);
            rows.push(vec![
                usage.path,
                usage.objects.to_string(),
                format_bytes(usage.bytes),
                format!("{} ({share} %)", format_bytes(usage.cached_bytes)),
                format_bytes(usage.dram_bytes),
                format_bytes(usage.disk_bytes),
            ]);
        }
    }
    if !args.json {
        output.table(&["path", "objects", "size", "cached", "in dram", "on disk"], &[1, 2, 3, 4, 5], &rows)?;
    }
    output.finish()
}
