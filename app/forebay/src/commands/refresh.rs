//! `forebay refresh`: has the next opens below paths ask shared storage again, whatever the mount's rule is.

use forebay_client::Client;
use serde_json::json;

use crate::cli::PathsArgs;
use crate::exit::Outcome;
use crate::output::Output;

pub(crate) async fn run(client: &Client, args: PathsArgs) -> Outcome {
    let mut output = Output::new(args.json);
    for path in &args.paths {
        client.refresh(path).await?;
        if args.json {
            output.record(&json!({"refreshed": path.to_string()}))?;
        }
    }
    output.finish()
}
