//! Temporary nodes.

mod batch;
mod bytes;

use std::io::Write;

use forebay_client::{
    Client, CreateOptions, Location, NodeEntry, NodeError, NodeErrorKind, NodeType, NodeUsage, Nodes, StorageClass,
};
use forebay_types::{ByteSize, Error};
use futures::TryStreamExt;
use serde::Serialize;

use crate::cli::{NodeCommand, NodeLsArgs, NodeMkdirArgs, NodeQuotaArgs, NodeRmArgs, NodeStatArgs};
use crate::exit::{Failure, Outcome};
use crate::output::Output;

/// A node, as JSON has it.
#[derive(Default, Serialize)]
struct Shown<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(rename = "type")]
    kind: &'a str,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    storage_class: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<&'a str>,
    /// Bytes of the files and values in a container, and what they may have.
    #[serde(skip_serializing_if = "Option::is_none")]
    used: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    quota: Option<u64>,
}

pub(crate) async fn run(client: &Client, command: NodeCommand) -> Outcome {
    let nodes = client.nodes();
    match command {
        NodeCommand::Put(args) => bytes::put(&nodes, args).await,
        NodeCommand::Append(args) => bytes::append(&nodes, args).await,
        NodeCommand::Get(args) => bytes::get(&nodes, &args.path).await,
        NodeCommand::Bag(args) => bytes::bag(&nodes, &args.path).await,
        NodeCommand::Ls(args) => ls(&nodes, args).await,
        NodeCommand::Rm(args) => rm(&nodes, args).await,
        NodeCommand::Mkdir(args) => mkdir(&nodes, args).await,
        NodeCommand::Stat(args) => stat(&nodes, args).await,
        NodeCommand::Quota(args) => quota(&nodes, args).await,
        NodeCommand::Mv(args) => nodes.rename(&args.from, &args.to).await.map_err(failed),
        NodeCommand::Batch(args) => batch::run(&nodes, args).await,
    }
}

async fn ls(nodes: &Nodes, args: NodeLsArgs) -> Outcome {
    let mut output = Output::new(args.json);
    let mut pages = std::pin::pin!(nodes.enumerate(&args.path));
    while let Some(page) = pages.try_next().await.map_err(failed)? {
        for NodeEntry { name, kind, bytes } in page {
            let line = match (args.json, args.long) {
                (true, _) => json(&Shown { name: Some(&name), kind: kind.as_str(), bytes, ..Shown::default() })?,
                (false, true) => format!("{:<10} {bytes:>14} {name}", kind.as_str()),
                (false, false) => name,
            };
            output.name(&line)?;
        }
    }
    output.finish()
}

async fn rm(nodes: &Nodes, args: NodeRmArgs) -> Outcome {
    for path in &args.paths {
        nodes.delete(path, args.recursive).await.map_err(failed)?;
    }
    Ok(())
}

async fn mkdir(nodes: &Nodes, args: NodeMkdirArgs) -> Outcome {
    let kind: NodeType = args.kind.parse().map_err(failed)?;
    let class = class(args.storage_class.as_deref())?;
    let location = location(args.location.as_deref())?;
    if args.parents {
        for (end, _) in args.path.match_indices('/').skip(2) {
            match nodes.create(&args.path[..end], CreateOptions::new(NodeType::Directory)).await {
                Err(error) if error.kind == NodeErrorKind::Exists => {}
                made => made.map_err(failed)?,
            }
        }
    }
    match nodes.create(&args.path, CreateOptions { kind, enumerable: true, class, location }).await {
        // A lease is renewed by saying it again: of what is made so, and of no file that has the name.
        Err(error) if error.kind == NodeErrorKind::Exists && (args.lease.is_some() || args.parents) => {
            let there = nodes.stat(&args.path).await.map_err(failed)?;
            if there.is_none_or(|there| there.kind != kind) {
                return Err(failed(error));
            }
        }
        made => made.map_err(failed)?,
    }
    if let Some(quota) = args.quota {
        nodes.set_quota(&args.path, Some(quota.0)).await.map_err(failed)?;
    }
    if let Some(ttl) = args.lease { nodes.lease(&args.path, Some(ttl)).await.map_err(failed) } else { Ok(()) }
}

async fn stat(nodes: &Nodes, args: NodeStatArgs) -> Outcome {
    let path = &args.path;
    let stat = nodes.stat(path).await.map_err(failed)?;
    let stat = stat.ok_or_else(|| Error::not_found(format!("{path}: there is no such node: see `forebay node ls`")))?;
    let (kind, bytes, class) = (stat.kind.as_str(), stat.bytes, stat.class.as_str());
    let location = (!stat.location.is_anywhere()).then(|| stat.location.as_str());
    let usage = if stat.kind.is_container() { usage_of(nodes, path).await? } else { None };
    let (used, quota) = (usage.map(|usage| usage.bytes), usage.and_then(|usage| usage.quota));
    let line = if args.json {
        json(&Shown { name: None, kind, bytes, storage_class: Some(class), location, used, quota })?
    } else {
        let location = location.map(|location| format!(", at {location}")).unwrap_or_default();
        let quota = quota.map(|quota| format!(", {} bytes of a quota of {}", used.unwrap_or_default(), ByteSize(quota)));
        format!("{kind}, {bytes} bytes, {class}{location}{}", quota.unwrap_or_default())
    };
    writeln!(std::io::stdout(), "{line}").map_err(Failure::of_stdout)
}

/// What is in a container, unless its worker is lost, or of a version that does not say it: its name tells the rest.
async fn usage_of(nodes: &Nodes, path: &str) -> Outcome<Option<NodeUsage>> {
    match nodes.usage(path).await {
        Err(error) if matches!(error.kind, NodeErrorKind::Retry | NodeErrorKind::DataLost) => Ok(None),
        usage => usage.map(Some).map_err(failed),
    }
}

async fn quota(nodes: &Nodes, args: NodeQuotaArgs) -> Outcome {
    if let Some(size) = args.size {
        return nodes.set_quota(&args.path, size.0.map(|size| size.0)).await.map_err(failed);
    }
    let NodeUsage { bytes, quota } = nodes.usage(&args.path).await.map_err(failed)?;
    let line = match (args.json, quota) {
        (true, _) => serde_json::json!({ "quota": quota, "used": bytes }).to_string(),
        (false, Some(quota)) => format!("{bytes} bytes of a quota of {}", ByteSize(quota)),
        (false, None) => format!("{bytes} bytes, without a quota"),
    };
    writeln!(std::io::stdout(), "{line}").map_err(Failure::of_stdout)
}

/// What `--storage-class` says.
fn class(text: Option<&str>) -> Outcome<Option<StorageClass>> {
    text.map(|text| text.parse().map_err(failed)).transpose()
}

/// What `--location` says.
fn location(text: Option<&str>) -> Outcome<Option<Location>> {
    text.map(|text| text.parse().map_err(failed)).transpose()
}

fn json(shown: &Shown<'_>) -> Outcome<String> {
    serde_json::to_string(shown).map_err(|error| Failure::Failed(Error::internal(error.to_string())))
}

fn failed(error: NodeError) -> Failure {
    Failure::Failed(error.into())
}
