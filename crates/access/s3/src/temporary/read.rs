//! Reads of temporary data.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use forebay_client::{NodeErrorKind, NodeSnapshot, node_etag};
use forebay_types::{Attributes, Error, ErrorKind, ObjectInfo, ObjectVersion, VersionTag};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use http::Method;
use http::header::RANGE;

use super::{is_marker, path_of};
use crate::answer::{Answer, AnswerBody, Head};
use crate::context::Context;
use crate::dialect::{S3Error, S3Result, Times, check_conditions, parse_range, range_counts, resolve_range};
use crate::request::Request;
use crate::rights::Object;

/// The tag of a folder's marker.
const FOLDER: u128 = 0;
/// How often an object is looked at whose bytes are gone before the first of them were read.
const LOOKS_MAX: usize = 8;

/// An object that was looked at: all reads of it are of these bytes.
pub(crate) struct Opened {
    pub(crate) info: ObjectInfo,
    snapshot: Option<NodeSnapshot>,
}

impl Opened {
    /// A range of its bytes, as they come.
    pub(crate) fn read(&self, range: Range<u64>) -> S3Result<BoxStream<'static, Result<Bytes, Error>>> {
        match &self.snapshot {
            Some(snapshot) => Ok(snapshot.read(range)?.map_err(Error::from).boxed()),
            None => Ok(futures::stream::empty().boxed()),
        }
    }
}

/// Looks at an object; the marker of a folder that is there is an empty one.
pub(crate) async fn open(context: &Context, object: &Object) -> S3Result<Opened> {
    let (nodes, path) = (context.client.nodes(), path_of(object));
    let snapshot = match is_marker(object) {
        true => match nodes.stat(&path).await? {
            Some(stat) if stat.kind.is_container() => None,
            _ => return Err(S3Error::no_such_key()),
        },
        false => match nodes.snapshot(&path).await {
            Ok(snapshot) => Some(snapshot),
            // Folders are no objects, and nothing is below one.
            Err(error) if matches!(error.kind, NodeErrorKind::WrongType | NodeErrorKind::NotContainer) => {
                return Err(S3Error::no_such_key());
            }
            Err(error) => return Err(error.into()),
        },
    };
    let (size, tag) = snapshot.as_ref().map_or((0, FOLDER), |snapshot| (snapshot.len(), snapshot.tag()));
    Ok(Opened { info: info(context, object, size, tag), snapshot })
}

/// What clients are told of an object.
pub(super) fn info(context: &Context, object: &Object, size: u64, tag: u128) -> ObjectInfo {
    let version = ObjectVersion { mount: object.mount().id, key: object.key.clone(), tag: node_etag(tag), size };
    ObjectInfo { version, modified_ms: context.begun_ms }
}

/// Answers GET and HEAD of an object.
pub(crate) async fn get(context: &Arc<Context>, request: &Request, object: &Object) -> S3Result<Answer> {
    if request.target.query.has("partNumber") {
        return Err(S3Error::not_implemented("part numbers of temporary data"));
    }
    let asked = parse_range(request.header(RANGE.as_str()));
    let (mut looks, mut gone) = (0, None::<VersionTag>);
    loop {
        looks += 1;
        let opened = open(context, object).await?;
        check_conditions(request.headers(), &opened.info, Times::None)?;
        let (size, tag) = (opened.info.version.size, &opened.info.version.tag);
        let wanted = asked.clone()?.filter(|_| range_counts(request.headers(), &opened.info, Times::None));
        let range = wanted.map(|wanted| resolve_range(wanted, size)).transpose()?;
        let all = range.clone().unwrap_or(0..size);
        let body = match request.parts.method == Method::HEAD || all.is_empty() {
            true => AnswerBody::empty(),
            false => {
                // What is lost is to be an answer of its own, not one that breaks off.
                let mut rest = opened.read(all.clone())?;
                match rest.try_next().await {
                    // As of what was replaced since it was looked at: then there is another one. What is lost is so at each look.
                    Err(error) if error.kind() == ErrorKind::DataLost && looks < LOOKS_MAX && gone.as_ref() != Some(tag) => {
                        gone = Some(tag.clone());
                        continue;
                    }
                    first => AnswerBody::stream(first?.unwrap_or_default(), rest, Some(all.end - all.start)),
                }
            }
        };
        let query = &request.target.query;
        return Head { query, info: &opened.info, attributes: &Attributes::default(), range, checksums: false }.answer(body);
    }
}
