//! `forebay load`: everything below paths into the tiers now, or what a query of it would read, with its progress; `pin` does it as well.

use forebay_client::Client;
use forebay_types::{ForebayPath, format_bytes};
use serde::Serialize;

use crate::cli::LoadArgs;
use crate::exit::{Outcome, Several};
use crate::loading::Loading;
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
    let mut several = Several::of(args.paths.len());
    for path in &args.paths {
        let outcome = one(client, path, &args, &mut output).await;
        several.ended(outcome)?;
    }
    output.finish()?;
    several.finish()
}

async fn one(client: &Client, path: &ForebayPath, args: &LoadArgs, output: &mut Output) -> Outcome {
    // The process is its user's own.
    let loading = Loading::of(client, path, &args.columns, args.condition.as_deref(), usize::MAX).await?;
    load(loading).await?.print(output)
}

/// Loads, and shows how far it is.
pub(crate) async fn load(loading: Loading) -> Outcome<Loaded> {
    let (path, objects, bytes) = (loading.path().to_string(), loading.objects(), loading.bytes());
    let bar = progress::bytes(&format!("load {path}"), bytes);
    let counted = bar.clone();
    let loaded = loading.run(move |done| counted.set_position(done)).await;
    bar.finish_and_clear();
    Ok(Loaded { path, objects, bytes, fetched_bytes: loaded?.bytes_fetched })
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
