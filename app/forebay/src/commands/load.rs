//! `forebay load`: everything below paths into the tiers now, with its progress; `pin` does it as well.

use forebay_client::Client;
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
        let loaded = load(client, path, &tree, false).await?;
        loaded.print(&mut output)?;
    }
    output.finish()
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
