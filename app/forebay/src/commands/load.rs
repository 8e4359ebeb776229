//! `forebay load`: everything below paths into the tiers now, or what a query of it would read, with its progress; `pin` does it as well.

use forebay_client::Client;
use forebay_sql::{Engine, EngineSettings};
use forebay_types::{ForebayPath, format_bytes};
use serde::Serialize;

use super::tree::Tree;
use crate::cli::LoadArgs;
use crate::exit::Outcome;
use crate::output::Output;
use crate::progress;

#[derive(Serialize)]
pub(crate) struct Loaded {
    path: String,
    objects: usize,
    bytes: u64,
    fetched_bytes: u64,
}

/// Brings everything below paths into the tiers.
pub(crate) async fn run(client: &Client, args: LoadArgs) -> Outcome {
    let mut output = Output::new(args.json);
    for path in &args.paths {
        let tree = Tree::of(client, path).await?;
        let loaded = match args.columns.is_empty() && args.condition.is_none() {
            true => load(client, path, &tree, false).await?,
            false => load_for(client, path, &tree, &args).await?,
        };
        loaded.print(&mut output)?;
    }
    output.finish()
}

/// Loads what a query would read of a tree, and shows how far it is.
async fn load_for(client: &Client, path: &ForebayPath, tree: &Tree, args: &LoadArgs) -> Outcome<Loaded> {
    let shown = tree.path(path).to_string();
    let engine = Engine::over_client(client.clone(), EngineSettings::default());
    let reads = engine.reads_of(&shown, &args.columns, args.condition.as_deref()).await?;
    let bytes: u64 = reads.iter().flat_map(|(_, ranges)| ranges).map(|range| range.end - range.start).sum();
    let (objects, bar) = (reads.len(), progress::bytes(&format!("load {shown}"), bytes));
    let counted = bar.clone();
    let loaded = client.load_ranges(reads, move |done| counted.set_position(done)).await;
    bar.finish_and_clear();
    Ok(Loaded { path: shown, objects, bytes, fetched_bytes: loaded?.bytes_fetched })
}

/// Loads a tree and shows how far it is.
pub(crate) async fn load(client: &Client, path: &ForebayPath, tree: &Tree, keep: bool) -> Outcome<Loaded> {
    let shown = tree.path(path).to_string();
    let bar = progress::bytes(&format!("load {shown}"), tree.bytes());
    let counted = bar.clone();
    let loaded = client.load(tree.versions(), keep, move |done| counted.set_position(done)).await;
    bar.finish_and_clear();
    Ok(Loaded { path: shown, objects: tree.objects().len(), bytes: tree.bytes(), fetched_bytes: loaded?.bytes_fetched })
}

impl Loaded {
    pub(crate) fn print(&self, output: &mut Output) -> Outcome {
        if output.json() {
            return output.record(self);
        }
        output.line(&format!(
            "{}: {} objects of {} in the tiers, {} of it fetched now",
            self.path,
            self.objects,
            format_bytes(self.bytes),
            format_bytes(self.fetched_bytes)
        ))
    }
}
