//! `forebay load`: everything below paths into the tiers now, or what a query of it would read, with its progress; `pin` does it as well.

use forebay_client::Client;
use forebay_types::{ForebayPath, ObjectVersion, format_bytes};
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
    /// What came first, and had to go for what came last.
    gone_bytes: u64,
}

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
    let (path, objects, bytes) = (loading.path.to_string(), loading.objects(), loading.bytes);
    let (client, versions) = (loading.client.clone(), loading.whole().to_vec());
    let bar = progress::bytes(&format!("load {path}"), bytes);
    let counted = bar.clone();
    let loaded = loading.run(move |done| counted.set_position(done)).await;
    bar.finish_and_clear();
    let fetched_bytes = loaded?.bytes_fetched;
    Ok(Loaded { path, objects, bytes, fetched_bytes, gone_bytes: gone(&client, &versions).await })
}

/// Bytes of these versions that no tier holds; none where workers don't say.
async fn gone(client: &Client, versions: &[ObjectVersion]) -> u64 {
    let Ok(held) = client.held(versions).await else { return 0 };
    let each = versions.iter().zip(held).map(|(version, held)| version.size.saturating_sub(held.bytes));
    each.fold(0, u64::saturating_add)
}

impl Loaded {
    pub(crate) fn print(&self, output: &mut Output) -> Outcome {
        if output.json { output.record(self) } else { output.line(&self.said()) }
    }

    fn said(&self) -> String {
        let (path, objects, fetched) = (&self.path, self.objects, format_bytes(self.fetched_bytes));
        let bytes = format_bytes(self.bytes);
        match self.gone_bytes {
            0 => format!("{path}: {objects} objects of {bytes} in the tiers, {fetched} of it fetched now"),
            gone => format!(
                "{path}: {objects} objects of {bytes} brought, {fetched} of it fetched now; {} of it is gone again, for the tiers have no room for all: \
                 load less, or give them more",
                format_bytes(gone)
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_had_to_go_again_is_not_said_to_be_there() {
        let said = |gone_bytes| {
            Loaded { path: "/lake/".to_string(), objects: 2, bytes: 58 << 20, fetched_bytes: 53 << 20, gone_bytes }.said()
        };
        assert_eq!(said(0), "/lake/: 2 objects of 58.0 MiB in the tiers, 53.0 MiB of it fetched now");
        assert!(said(43 << 20).contains("43.0 MiB of it is gone again") && !said(1).contains("in the tiers,"));
    }
}
