use std::time::Duration;

use bytes::{Bytes, BytesMut};
use forebay_client::{CreateOptions, NodeErrorKind, NodeResult, NodeType, Nodes, PutCondition};
use forebay_types::ObjectInfo;
use futures::TryStreamExt;

use super::read::open;
use super::{is_marker, path_of};
use crate::body::Pieces;
use crate::context::{Context, Object};
use crate::error::{S3Error, S3Result};

/// Objects up to this size are key-values, larger ones files.
const VALUE_BYTES_MAX: usize = 32 << 20;
/// What a gateway that died has left of an upload goes after this time.
const DRAFT_LEASE: Duration = Duration::from_secs(3600);

/// Writes an object, and the folders on the way to it. Up to 32 MiB it replaces what was there at once, whole; larger ones take
/// the place of another object in two steps, between which there is none.
pub(crate) async fn write(
    context: &Context,
    object: &Object,
    mut pieces: Pieces,
    condition: PutCondition,
) -> S3Result<ObjectInfo> {
    if !matches!(condition, PutCondition::Any) {
        return Err(S3Error::not_implemented("conditions on writes of temporary data"));
    }
    let (nodes, path) = (context.client.nodes(), path_of(object));
    let mut first = BytesMut::new();
    let mut next = None;
    while let Some(piece) = pieces.try_next().await.map_err(|_| S3Error::incomplete_body())? {
        if first.len() + piece.len() > VALUE_BYTES_MAX {
            next = Some(piece);
            break;
        }
        first.extend_from_slice(&piece);
    }
    match (is_marker(object), next) {
        (true, None) if first.is_empty() => make_folders(&nodes, &format!("{path}/-")).await?,
        (true, _) => return Err(S3Error::invalid_request("A key that ends with / is a folder's, which has no bytes.")),
        (false, None) => put(&nodes, &path, first.freeze()).await?,
        (false, Some(next)) => put_large(&nodes, &path, [first.freeze(), next], pieces).await?,
    }
    Ok(open(context, object).await?.info)
}

/// Deletes an object. One that is not there is no error, nor is a folder that something is in.
pub(crate) async fn delete(context: &Context, object: &Object) -> S3Result<()> {
    let (nodes, path) = (context.client.nodes(), path_of(object));
    match nodes.stat(&path).await? {
        Some(stat) if stat.kind.is_container() == is_marker(object) => match nodes.delete(&path, false).await {
            Err(error) if !matches!(error.kind, NodeErrorKind::NotFound | NodeErrorKind::NotEmpty) => Err(error.into()),
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

/// Makes the folders on the way to a path that are not there.
async fn make_folders(nodes: &Nodes, path: &str) -> NodeResult<()> {
    let slashes = path.match_indices('/').map(|(at, _)| at).skip(2);
    for at in slashes {
        match nodes.create(&path[..at], CreateOptions::new(NodeType::Directory)).await {
            Err(error) if error.kind != NodeErrorKind::Exists => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

async fn put(nodes: &Nodes, path: &str, value: Bytes) -> S3Result<()> {
    let failed = match nodes.put(path, value.clone()).await {
        Ok(()) => return Ok(()),
        Err(error) => error,
    };
    match failed.kind {
        NodeErrorKind::NotFound => make_folders(nodes, path).await?,
        // A large object was there.
        NodeErrorKind::WrongType => remove_file(nodes, path).await?,
        _ => return Err(failed.into()),
    }
    Ok(nodes.put(path, value).await?)
}

/// Writes a file beside its place, which nobody sees before it is whole.
async fn put_large(nodes: &Nodes, path: &str, first: [Bytes; 2], rest: Pieces) -> S3Result<()> {
    make_folders(nodes, path).await?;
    let folder = path.rsplit_once('/').map_or(path, |(folder, _)| folder);
    let draft = format!("{folder}/.upload-{:032x}", rand::random::<u128>());
    let written = async {
        nodes.create(&draft, CreateOptions { enumerable: false, ..CreateOptions::new(NodeType::File) }).await?;
        nodes.lease(&draft, Some(DRAFT_LEASE)).await?;
        fill(nodes, &draft, first, rest).await?;
        remove_file(nodes, path).await?;
        nodes.lease(&draft, None).await?;
        nodes.rename(&draft, path).await?;
        Ok(())
    };
    let written = written.await;
    if written.is_err()
        && let Err(error) = nodes.delete(&draft, false).await
        && error.kind != NodeErrorKind::NotFound
    {
        tracing::debug!(%error, "what was uploaded of an object stays for an hour");
    }
    written
}

async fn fill(nodes: &Nodes, draft: &str, first: [Bytes; 2], mut rest: Pieces) -> S3Result<()> {
    let mut writer = nodes.writer(draft).await?;
    for piece in first {
        writer.write_bytes(piece).await?;
    }
    while let Some(piece) = rest.try_next().await.map_err(|_| S3Error::incomplete_body())? {
        writer.write_bytes(piece).await?;
    }
    writer.finish().await?;
    Ok(())
}

/// Makes room for an object: takes away the one that is there. A folder stays, and is in the way.
async fn remove_file(nodes: &Nodes, path: &str) -> NodeResult<()> {
    match nodes.stat(path).await? {
        Some(stat) if !stat.kind.is_container() => match nodes.delete(path, false).await {
            Err(error) if error.kind != NodeErrorKind::NotFound => Err(error),
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}
