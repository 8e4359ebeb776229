//! What changes temporary data, for whoever has the proof that it may.

#![expect(clippy::disallowed_methods, reason = "this is the door")]

use bytes::{Bytes, BytesMut};
use forebay_client::{
    CreateOptions, NODE_VALUE_BYTES_MAX, NodeCondition, NodeDraft, NodeErrorKind, NodeType, Nodes, PutCondition, node_tag,
    value_tag,
};
use forebay_types::{ObjectInfo, VersionTag};
use futures::TryStreamExt;
use http::StatusCode;

use super::read::{info, open};
use super::{is_marker, path_of};
use crate::body::Pieces;
use crate::context::Context;
use crate::dialect::{S3Error, S3Result};
use crate::rights::Writable;

enum Content {
    Value(Bytes),
    /// Its beginning, and all that comes.
    File([Bytes; 2], Pieces),
}

/// Writes an object, and the folders on the way to it. It replaces what was there at once, whole; with a condition it does so only
/// if that is true at that moment, and no other writer comes between.
pub(crate) async fn write(
    context: &Context,
    object: &Writable,
    mut pieces: Pieces,
    bytes: u64,
    condition: PutCondition,
) -> S3Result<ObjectInfo> {
    let (nodes, path) = (context.client.nodes(), path_of(object));
    let condition = match allowed(context, object, condition).await {
        Ok(condition) => condition,
        Err(error) => {
            // Taken in all the same: clients that still send when the connection closes lose the answer.
            while pieces.try_next().await.map_err(|_| S3Error::incomplete_body())?.is_some() {}
            return Err(error);
        }
    };
    let _held = context.room.take(bytes.min(NODE_VALUE_BYTES_MAX as u64)).await?;
    let mut first = BytesMut::new();
    let mut next = None;
    while let Some(piece) = pieces.try_next().await.map_err(|_| S3Error::incomplete_body())? {
        if first.len() + piece.len() > NODE_VALUE_BYTES_MAX {
            next = Some(piece);
            break;
        }
        first.extend_from_slice(&piece);
    }
    let first = first.freeze();
    let content = match (is_marker(object), next) {
        (true, None) if first.is_empty() => {
            make_folder(&nodes, &path, condition).await?;
            return Ok(open(context, object).await?.info);
        }
        (true, _) => return Err(S3Error::invalid_request("A key that ends with / is a folder's, which has no bytes.")),
        (false, None) => Content::Value(first),
        (false, Some(next)) => Content::File([first, next], pieces),
    };
    // What a small value's ETag will be is known, whoever writes next: it goes to its place at once.
    if let (Content::Value(value), NodeCondition::Any) = (&content, condition)
        && let Some(tag) = value_tag(value)
        && put(&nodes, &path, value).await?
    {
        return Ok(info(context, object, value.len() as u64, tag));
    }
    put_beside(context, object, content, condition).await
}

/// The condition as nodes have it, unless it is not true already: then nothing is written for it.
async fn allowed(context: &Context, object: &Writable, condition: PutCondition) -> S3Result<NodeCondition> {
    match condition {
        PutCondition::Any => Ok(NodeCondition::Any),
        PutCondition::Absent => match open(context, object).await {
            Ok(_) => Err(S3Error::precondition_failed()),
            Err(error) if error.status == StatusCode::NOT_FOUND => Ok(NodeCondition::Absent),
            Err(error) => Err(error),
        },
        PutCondition::Version(etag) => match (open(context, object).await?.info.version.tag == etag, node_tag(&etag)) {
            (true, Some(tag)) => Ok(NodeCondition::Tag(tag)),
            _ => Err(S3Error::precondition_failed()),
        },
    }
}

/// Deletes an object. One that is not there is no error, nor is a folder that something is in. With an ETag only what has it.
pub(crate) async fn delete(context: &Context, object: &Writable, etag: Option<VersionTag>) -> S3Result<()> {
    let (nodes, path) = (context.client.nodes(), path_of(object));
    let Some(stat) = nodes.stat(&path).await? else { return Ok(()) };
    if stat.kind.is_container() != is_marker(object) {
        return Ok(());
    }
    let deleted = match etag {
        Some(etag) if is_marker(object) && open(context, object).await?.info.version.tag != etag => {
            return Err(S3Error::precondition_failed());
        }
        Some(etag) if !is_marker(object) => {
            let tag = node_tag(&etag).ok_or_else(S3Error::precondition_failed)?;
            nodes.delete_if(&path, NodeCondition::Tag(tag)).await
        }
        _ => nodes.delete(&path, false).await,
    };
    match deleted {
        Err(error) if error.kind == NodeErrorKind::Exists => Err(S3Error::precondition_failed()),
        Err(error) if !matches!(error.kind, NodeErrorKind::NotFound | NodeErrorKind::NotEmpty) => Err(error.into()),
        _ => Ok(()),
    }
}

/// Makes a folder, and those on the way to it.
async fn make_folder(nodes: &Nodes, path: &str, condition: NodeCondition) -> S3Result<()> {
    match condition {
        NodeCondition::Any => Ok(nodes.make_folders(&format!("{path}/-")).await?),
        NodeCondition::Absent => {
            nodes.make_folders(path).await?;
            match nodes.create(path, CreateOptions::new(NodeType::Directory)).await {
                Err(error) if error.kind == NodeErrorKind::Exists => Err(S3Error::precondition_failed()),
                made => Ok(made?),
            }
        }
        // It is there, as all folders are.
        NodeCondition::Tag(_) => Ok(()),
    }
}

/// Puts a value, unless there is a file.
async fn put(nodes: &Nodes, path: &str, value: &Bytes) -> S3Result<bool> {
    let put = match nodes.put(path, value.clone()).await {
        Err(error) if error.kind == NodeErrorKind::NotFound => {
            nodes.make_folders(path).await?;
            nodes.put(path, value.clone()).await
        }
        put => put,
    };
    match put {
        Err(error) if error.kind == NodeErrorKind::WrongType => Ok(false),
        put => Ok(put.map(|()| true)?),
    }
}

/// Writes an object beside its place, where nobody sees it, and has it take that place when it is whole.
async fn put_beside(context: &Context, object: &Writable, content: Content, condition: NodeCondition) -> S3Result<ObjectInfo> {
    let (nodes, path) = (context.client.nodes(), path_of(object));
    // With an ETag they are there, or nothing that could have it.
    if !matches!(condition, NodeCondition::Tag(_)) {
        nodes.make_folders(&path).await?;
    }
    let kind = if matches!(content, Content::Value(_)) { NodeType::KeyValue } else { NodeType::File };
    let mut draft = nodes.draft(&path, kind).await?;
    let written = async {
        match content {
            Content::Value(value) => draft.write(value).await?,
            Content::File(first, rest) => fill(&mut draft, first, rest).await?,
        }
        let (bytes, tag) = draft.finish().await?;
        match draft.take_place(condition).await {
            Err(error) if error.kind == NodeErrorKind::Exists => Err(S3Error::precondition_failed()),
            // Its worker is gone: nobody knows whether it did so before.
            Err(error) if error.kind == NodeErrorKind::DataLost => Err(S3Error::slow_down()),
            placed => Ok(placed.map(|()| info(context, object, bytes, tag))?),
        }
    };
    let written = written.await;
    if written.is_err() {
        draft.discard().await;
    }
    written
}

async fn fill(draft: &mut NodeDraft, first: [Bytes; 2], mut rest: Pieces) -> S3Result<()> {
    for piece in first {
        draft.write(piece).await?;
    }
    while let Some(piece) = rest.try_next().await.map_err(|_| S3Error::incomplete_body())? {
        draft.write(piece).await?;
    }
    Ok(())
}
