//! `forebay free`: lets go of cached bytes below paths; shared storage keeps its own.

use forebay_client::Client;
use forebay_types::format_bytes;
use serde::Serialize;

use crate::cli::PathsArgs;
use crate::exit::Outcome;
use crate::output::Output;
use crate::tree::Tree;

#[derive(Serialize)]
struct Freed {
    path: String,
    freed_bytes: u64,
}

pub(crate) async fn run(client: &Client, args: PathsArgs) -> Outcome {
    let mut output = Output::new(args.json);
    for path in &args.paths {
        let tree = Tree::of(client, path).await?;
        let freed_bytes = client.free(&tree.versions()).await?;
        let path = tree.path(path).to_string();
        if args.json {
            output.record(&Freed { path, freed_bytes })?;
        } else {
            output.line(&format!("{path}: {} freed", format_bytes(freed_bytes)))?;
        }
    }
    output.finish()
}
