//! `forebay pin`: data that must stay in the tiers, for paths that are there; lists and lifts pins as well.

use forebay_client::Client;
use forebay_protocol::AdminRequest;
use forebay_types::ForebayPath;
use serde_json::json;

use super::load::load;
use super::status;
use crate::cli::PinArgs;
use crate::exit::{Failure, Outcome};
use crate::loading::Loading;
use crate::output::Output;
use crate::tree::Tree;

pub(crate) async fn run(client: &Client, args: PinArgs) -> Outcome {
    let mut output = Output::new(args.json);
    if args.paths.is_empty() {
        list(client, &mut output).await?;
    }
    for path in &args.paths {
        if args.remove {
            client.unpin(&pinned_path(client, path).await).await?;
            output_pin(&mut output, path, false)?;
            continue;
        }
        // What isn't there can't be pinned: a slip of the pen should not be kept for ever.
        let tree = Tree::of(client, path).await?;
        let path = tree.path(path);
        let was_pinned = pins(client).await?.contains(&path);
        client.control(AdminRequest::PinAdd { path: path.clone() }).await?;
        if args.no_load {
            output_pin(&mut output, &path, true)?;
            continue;
        }
        match load(Loading::all(client, &path, &tree, true)).await {
            Ok(loaded) => loaded.print(&mut output)?,
            Err(failure) => return Err(without_data(client, &path, was_pinned, failure).await),
        }
    }
    output.finish()
}

/// What is left of a pin whose data could not be brought: as before, there is none unless there was one.
async fn without_data(client: &Client, path: &ForebayPath, was_pinned: bool, failure: Failure) -> Failure {
    let Failure::Failed(error) = failure else { return failure };
    let lifted = !was_pinned && (client.unpin(path).await.is_ok() || pins(client).await.is_ok_and(|pins| !pins.contains(path)));
    let left = match lifted {
        true => format!("{path} is not pinned, since it could not be loaded (`--no-load` pins it all the same)"),
        false => format!("{path} stays pinned, but could not be loaded (`forebay pin --remove {path}` lifts the pin)"),
    };
    Failure::Failed(error.context(left))
}

/// The pin that `path` means: the one at exactly this path, else the one at the folder of this name.
async fn pinned_path(client: &Client, path: &ForebayPath) -> ForebayPath {
    let Ok(folder) = path.as_folder() else { return path.clone() };
    match pins(client).await {
        Ok(pins) if !pins.contains(path) && pins.contains(&folder) => folder,
        _ => path.clone(),
    }
}

async fn pins(client: &Client) -> Outcome<Vec<ForebayPath>> {
    Ok(status::ask(client).await?.pins)
}

async fn list(client: &Client, output: &mut Output) -> Outcome {
    for path in pins(client).await? {
        output_pin(output, &path, true)?;
    }
    Ok(())
}

fn output_pin(output: &mut Output, path: &ForebayPath, pinned: bool) -> Outcome {
    if output.json {
        return output.record(&json!({"path": path.to_string(), "pinned": pinned}));
    }
    if pinned { output.line(&path.to_string()) } else { Ok(()) }
}
