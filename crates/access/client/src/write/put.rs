//! Writes of one message.

use bytes::Bytes;
use forebay_protocol::{DataReply, DataRequest, PutCondition};
use forebay_types::{Error, ErrorKind, ForebayPath, Mount, ObjectInfo, Result, RouteKey};

use super::Writes;
use crate::connect::{Failure, Link, ask, ask_for, deadline_for, misfit};

/// What is written in one message; more goes in parts.
pub(super) const ONE_MESSAGE_BYTES: usize = 8 << 20;
/// Workers tried for one write at most.
const TRIES: usize = 3;

impl Writes {
    /// Writes an object of at most [`ONE_MESSAGE_BYTES`] through one worker.
    pub(crate) async fn put_whole(&self, path: &ForebayPath, payload: Vec<Bytes>, condition: PutCondition) -> Result<ObjectInfo> {
        let mount = self.writable(path).await?;
        let bytes = payload.iter().map(Bytes::len).sum::<usize>() as u64;
        let deadline = deadline_for(self.routes.connections.read_deadline(), bytes);
        let request = DataRequest::Put { mount: mount.id, key: path.key().clone(), condition: condition.clone() };
        let once = |link: Link| {
            let (request, payload) = (&request, payload.clone());
            async move {
                match ask_for(&link, request, payload, deadline).await?.0 {
                    DataReply::Info(info) => Ok(info),
                    _ => Err(misfit(&link, "put")),
                }
            }
        };
        // With a condition a second attempt can't undo what someone else wrote after the first.
        self.write_at(path, &mount, condition != PutCondition::Any, once).await
    }

    /// Deletes an object; one that is not there is no error.
    pub(crate) async fn delete(&self, path: &ForebayPath) -> Result<()> {
        let mount = self.writable(path).await?;
        let request = DataRequest::Delete { mount: mount.id, key: path.key().clone() };
        let deadline = self.routes.connections.read_deadline();
        let once = |link: Link| {
            let request = &request;
            async move {
                match ask(&link, request, deadline).await? {
                    DataReply::Done => Ok(()),
                    _ => Err(misfit(&link, "delete")),
                }
            }
        };
        self.write_at(path, &mount, false, once).await
    }

    /// Tries a write at the workers of a path: at the next one as long as none was asked, or when repeating is `safe`.
    async fn write_at<T, Fut>(&self, path: &ForebayPath, mount: &Mount, safe: bool, once: impl Fn(Link) -> Fut) -> Result<T>
    where
        Fut: Future<Output = Result<T, Failure>>,
    {
        let known = self.routes.view.known_arc();
        let mut unreached = Error::retry("the cluster has no worker");
        let mut lost = None;
        for worker in self.routes.failures.order(RouteKey::of(mount.id, path.key(), 0), &known.workers).into_iter().take(TRIES) {
            let Some(info) = known.worker(worker) else { continue };
            let outcome = match self.routes.connections.link(info).await {
                Ok(link) => match self.routes.is_there(&link).await {
                    Ok(()) => self.routes.unless_lost(info, once(link)).await.unwrap_or_else(|| {
                        Err(Failure::Lost(Error::retry(format!("worker {worker} was lost before it answered"))))
                    }),
                    Err(failure) => Err(failure),
                },
                Err(error) => Err(Failure::Unreached(error)),
            };
            match outcome {
                Ok(done) => return Ok(done),
                Err(Failure::Answered(error)) if lost.is_some() && error.kind() == ErrorKind::Conflict => {
                    return Err(error
                        .context(format!("{path}: a first attempt was lost and may be what is there now, look at the object")));
                }
                Err(Failure::Answered(error)) => return Err(error),
                Err(Failure::Unreached(error)) => {
                    self.routes.lost(worker);
                    unreached = error;
                }
                Err(Failure::Lost(error)) => {
                    self.routes.lost(worker);
                    if !safe {
                        return Err(unknown(path, &error));
                    }
                    lost = Some(error);
                }
            }
        }
        Err(match lost {
            Some(error) => unknown(path, &error),
            None => Error::retry(format!("{path}: no worker can be reached, nothing was written ({unreached})")),
        })
    }
}

/// The error of a write whose worker was lost.
pub(super) fn unknown(path: &ForebayPath, error: &Error) -> Error {
    Error::retry(format!("{path}: whether it was written is unknown, look at the object before trying again ({error})"))
}
