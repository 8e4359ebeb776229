//! An object that is written in parts.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use forebay_protocol::{DataReply, DataRequest, DraftCall, PutCondition};
use forebay_types::{Error, ErrorKind, ForebayPath, MountId, ObjectInfo, OperationId, Result, RouteKey, WorkerId};

use super::Writes;
use super::drafts::Draft;
use super::put::unknown;
use crate::connect::{Failure, Link, ask, ask_for, deadline_for, misfit};
use crate::route::Routes;

/// Bytes on their way to an object, cut where the upload wants it.
#[derive(Default)]
pub(crate) struct PartBuffer {
    pieces: VecDeque<Bytes>,
    bytes: usize,
}

impl PartBuffer {
    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    pub(crate) fn push(&mut self, piece: Bytes) {
        if !piece.is_empty() {
            self.bytes += piece.len();
            self.pieces.push_back(piece);
        }
    }

    /// The first `bytes` bytes, or all when there are fewer.
    pub(crate) fn take(&mut self, bytes: usize) -> Vec<Bytes> {
        let mut taken = Vec::new();
        let mut wanted = bytes.min(self.bytes);
        self.bytes -= wanted;
        while wanted > 0 {
            let piece = self.pieces.front_mut().expect("the length counts the pieces");
            let part = piece.split_to(wanted.min(piece.len()));
            wanted -= part.len();
            taken.push(part);
            if piece.is_empty() {
                self.pieces.pop_front();
            }
        }
        assert_eq!(self.bytes == 0, self.pieces.is_empty(), "{} bytes are in {} pieces", self.bytes, self.pieces.len());
        debug_assert_eq!(self.pieces.iter().map(Bytes::len).sum::<usize>(), self.bytes, "the length counts the pieces");
        taken
    }
}

/// An object that is being written in parts, through one worker: an upload lives and ends with its connection.
pub(crate) struct PartUpload {
    routes: Arc<Routes>,
    path: ForebayPath,
    link: Link,
    upload: u64,
    /// Every part but the last has exactly so many bytes.
    pub(crate) part_bytes: usize,
}

/// How long giving an upload up may take.
const ABORT_DEADLINE: Duration = Duration::from_secs(10);

impl PartUpload {
    /// Begins at the worker of the path, or at the next that can be reached.
    pub(crate) async fn begin(writes: &Writes, path: &ForebayPath) -> Result<Self> {
        let mount = writes.writable(path).await?;
        let request = DataRequest::PutBegin { mount: mount.id, key: path.key().clone() };
        Self::begin_by(writes, path, mount.id, &request, None).await
    }

    /// Begins a draft of an operation, at the worker of the path or the next one, of those at which such are open.
    pub(crate) async fn begin_draft(
        writes: &Writes,
        path: &ForebayPath,
        operation: OperationId,
        open_at: &[WorkerId],
    ) -> Result<Self> {
        let mount = writes.writable(path).await?;
        let call = DraftCall::Begin { mount: mount.id, key: path.key().clone() };
        let request = DataRequest::Drafts { operation, call };
        Self::begin_by(writes, path, mount.id, &request, Some(open_at)).await
    }

    async fn begin_by(
        writes: &Writes,
        path: &ForebayPath,
        mount: MountId,
        request: &DataRequest,
        open_at: Option<&[WorkerId]>,
    ) -> Result<Self> {
        let deadline = writes.routes.connections.read_deadline();
        let begun = writes.routes.at_home_singly(RouteKey::of(mount, path.key(), 0), |link| async move {
            // One that has begun anew since has forgotten that they are open: the next one may know.
            let next = |worker: WorkerId| Failure::Answered(Error::retry(format!("no drafts are open at worker {worker}")));
            if open_at.is_some_and(|open_at| !open_at.contains(&link.worker)) {
                return Err(next(link.worker));
            }
            writes.routes.is_there(&link).await?;
            match ask(&link, request, deadline).await {
                Ok(DataReply::Upload { upload, part_bytes }) => Ok((link, upload, part_bytes)),
                Ok(_) => Err(misfit(&link, "begin of a put")),
                Err(Failure::Answered(error)) if open_at.is_some() && error.kind() == ErrorKind::NotFound => {
                    Err(next(link.worker))
                }
                Err(failure) => Err(failure),
            }
        });
        let (link, upload, part_bytes) = begun.await.map_err(|error| error.into_error().context(path))?;
        match usize::try_from(part_bytes) {
            Ok(part_bytes) if part_bytes > 0 => {
                Ok(Self { routes: Arc::clone(&writes.routes), path: path.clone(), link, upload, part_bytes })
            }
            _ => Err(Error::internal(format!("{path}: the worker wants parts of {part_bytes} bytes"))),
        }
    }

    pub(crate) async fn send(&self, part: u32, payload: Vec<Bytes>) -> Result<()> {
        let bytes = payload.iter().map(Bytes::len).sum::<usize>() as u64;
        let request = DataRequest::PutPart { upload: self.upload, part };
        match self.ask(&request, payload, bytes).await {
            Ok(DataReply::Done) => Ok(()),
            Ok(_) => Err(misfit(&self.link, "part of a put").into_error()),
            Err(Failure::Answered(error)) => Err(error),
            Err(Failure::Lost(error) | Failure::Unreached(error)) => Err(Error::retry(format!(
                "{}: the worker that was written through is lost, nothing was written: write it again ({error})",
                self.path
            ))),
        }
    }

    /// Makes the object of its parts.
    pub(crate) async fn commit(&self, parts: u32, condition: PutCondition) -> Result<ObjectInfo> {
        let request = DataRequest::PutCommit { upload: self.upload, parts, condition };
        // Shared storage puts the parts together, which takes it a while for large objects.
        let bytes = u64::from(parts) * self.part_bytes as u64;
        match self.ask(&request, Vec::new(), bytes).await {
            Ok(DataReply::Info(info)) => Ok(info),
            Ok(_) => Err(misfit(&self.link, "commit of a put").into_error()),
            Err(Failure::Answered(error)) => Err(error),
            Err(Failure::Lost(error) | Failure::Unreached(error)) => Err(unknown(&self.path, &error)),
        }
    }

    /// What was sent as so many parts, for who commits it.
    pub(crate) fn draft(&self, parts: u32, bytes: u64) -> Draft {
        Draft { path: self.path.clone(), worker: self.link.worker, upload: self.upload, parts, bytes }
    }

    pub(crate) async fn abort(&self) -> Result<()> {
        let request = DataRequest::PutAbort { upload: self.upload };
        match ask(&self.link, &request, ABORT_DEADLINE).await {
            Ok(_) => Ok(()),
            // It ended with its connection, or before.
            Err(Failure::Lost(_)) => Ok(()),
            Err(Failure::Answered(error)) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(failure) => Err(failure.into_error().context(&self.path)),
        }
    }

    async fn ask(&self, request: &DataRequest, payload: Vec<Bytes>, bytes: u64) -> Result<DataReply, Failure> {
        let deadline = deadline_for(self.routes.connections.read_deadline(), bytes);
        let asked = ask_for(&self.link, request, payload, deadline);
        let info = self.routes.view.known().worker(self.link.worker).cloned();
        let answer =
            match info {
                Some(info) => self.routes.unless_lost(&info, asked).await.unwrap_or_else(|| {
                    Err(Failure::Lost(Error::retry(format!("worker {} was lost before it answered", info.id))))
                }),
                None => asked.await,
            };
        if let Err(Failure::Lost(_)) = &answer {
            self.routes.lost(self.link.worker);
        }
        answer.map(|(reply, _)| reply)
    }
}

/// Gives an upload up that its owner dropped. It ends by itself: the request has a deadline, and the upload ends with the
/// connection where it can't be sent.
pub(crate) fn abandon(upload: Arc<PartUpload>) {
    forebay_runtime::spawn_left(async move {
        if let Err(error) = upload.abort().await {
            tracing::debug!(%error, "an upload that was given up is not ended yet");
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_cut_across_pieces() {
        let mut buffer = PartBuffer::default();
        for piece in ["abc", "", "de", "fghij"] {
            buffer.push(Bytes::from_static(piece.as_bytes()));
        }
        assert_eq!((buffer.take(4).concat(), buffer.len()), (b"abcd".to_vec(), 6));
        assert_eq!((buffer.take(6).concat(), buffer.len()), (b"efghij".to_vec(), 0));
        assert!(buffer.take(1).is_empty());
    }

    #[test]
    #[should_panic(expected = "the length counts the pieces")]
    fn bytes_that_are_not_there_are_planted() {
        PartBuffer { pieces: [Bytes::from_static(b"abc")].into(), bytes: 4 }.take(4);
    }

    #[test]
    #[should_panic(expected = "0 bytes are in 1 pieces")]
    fn bytes_that_are_not_counted_are_planted() {
        PartBuffer { pieces: [Bytes::from_static(b"abc")].into(), bytes: 2 }.take(2);
    }
}
