//! `forebay rm`: deletes from shared storage, a folder only where it is asked for with `-r`, and a whole mount only with `--yes`.

use std::collections::BTreeSet;

use forebay_client::Client;
use forebay_types::{ErrorKind, ForebayPath, Key};
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::json;

use crate::cli::RmArgs;
use crate::exit::{Failure, Outcome, Several};
use crate::output::Output;
use crate::tree::{Tree, beside, unopened};

/// Deletes on their way at once.
const AT_ONCE: usize = 16;

pub(crate) async fn run(client: &Client, args: RmArgs) -> Outcome {
    if !args.yes
        && let Some(mount) = args.paths.iter().find(|path| args.recursive && path.key().as_str().is_empty())
    {
        return Err(Failure::Usage(format!(
            "{mount} is a whole mount, and nothing was deleted: --yes deletes every object below it from shared storage; `forebay mount rm {}` \
             takes the mount away and keeps them",
            mount.mount()
        )));
    }
    let mut output = Output::new(args.json);
    let mut several = Several::of(args.paths.len());
    for path in &args.paths {
        let outcome = delete(client, path, &args, &mut output).await;
        several.ended(outcome)?;
    }
    output.finish()?;
    several.finish()
}

async fn delete(client: &Client, path: &ForebayPath, args: &RmArgs, output: &mut Output) -> Outcome {
    let doomed = doomed(client, path, args).await?;
    let emptied = if args.recursive { emptied(client, path, &doomed)? } else { BTreeSet::new() };
    let mut deletes = stream::iter(doomed).map(|path| async move { client.delete(&path).await.map(|()| path) }).buffered(AT_ONCE);
    while let Some(path) = deletes.try_next().await? {
        if args.json {
            output.record(&json!({"deleted": path.to_string()}))?;
        }
    }
    for folder in &emptied {
        client.delete(folder).await?;
    }
    Ok(())
}

/// Folders that these leave empty: file systems keep those, where other stores have none.
fn emptied(client: &Client, path: &ForebayPath, doomed: &[ForebayPath]) -> Outcome<BTreeSet<ForebayPath>> {
    let view = client.view();
    if !view.mounts.iter().any(|mount| mount.name == *path.mount() && mount.url.starts_with("file://")) {
        return Ok(BTreeSet::new());
    }
    if !path.key().as_str().is_empty() {
        return Ok(BTreeSet::from([path.as_folder()?]));
    }
    let tops = doomed.iter().filter_map(|object| object.key().as_str().split_once('/'));
    tops.map(|(top, _)| Ok(beside(path, &Key::new(format!("{top}/"))?))).collect()
}

async fn doomed(client: &Client, path: &ForebayPath, args: &RmArgs) -> Outcome<Vec<ForebayPath>> {
    if !args.recursive {
        return match client.open(path).await {
            Ok(_) => Ok(vec![path.clone()]),
            Err(error) if args.force && error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(unopened(client, path, error, |folder, objects| {
                Failure::Usage(format!(
                    "{folder} is a folder of {objects} objects: `forebay rm -r {folder}` deletes all of them from shared storage"
                ))
            })
            .await),
        };
    }
    match Tree::of(client, path).await {
        Ok(tree) => Ok(tree.objects().iter().map(|info| beside(path, &info.version.key)).collect()),
        Err(error) if args.force && error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}
