//! JSON lines, and other bytes, that are sent while they are made, no faster than they are read.

use std::time::Duration;

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use forebay_runtime::time::Instant;
use forebay_types::{Error, Result};
use futures::stream;
use serde::Serialize;
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use crate::refusal::Refusal;

pub(crate) const JSON_LINES: &str = "application/x-ndjson";
/// Bytes that are sent together while they come faster than they are read.
const PIECE_BYTES: usize = 32 << 10;
/// Pieces that wait to be read.
const PIECES_MAX: usize = 2;
/// How long who asked may take to read what was answered in time.
const GRACE: Duration = Duration::from_secs(10);

/// What the connection gets.
enum Piece {
    Made(Bytes),
    Refused(Refusal),
    /// There is no more: without it the answer is a part of one.
    End,
}

/// An answer in the making.
pub(crate) struct Lines {
    buffer: Vec<u8>,
    pieces: mpsc::Sender<Piece>,
}

impl Lines {
    /// Adds a line. Waits while what is there is not read.
    pub(crate) async fn push(&mut self, line: &impl Serialize) -> Result<()> {
        serde_json::to_writer(&mut self.buffer, line)
            .map_err(|error| Error::internal(format!("an answer can't be written: {error}")))?;
        self.buffer.push(b'\n');
        self.added().await
    }

    /// Adds lines that are made already, each with its end. Waits as [`Self::push`] does.
    pub(crate) async fn push_made(&mut self, lines: &[u8]) -> Result<()> {
        debug_assert!(lines.is_empty() || lines.ends_with(b"\n"), "each line has its end");
        self.push_bytes(lines).await
    }

    /// The same of what is no lines, in an answer of another kind.
    pub(crate) async fn push_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.is_empty() { Ok(()) } else { self.added().await }
    }

    async fn added(&mut self) -> Result<()> {
        // Who waits for a line gets it at once; who has some to read gets the next ones together.
        let nobody_waits = self.pieces.capacity() < PIECES_MAX;
        if nobody_waits && self.buffer.len() < PIECE_BYTES {
            return Ok(());
        }
        self.send().await
    }

    async fn send(&mut self) -> Result<()> {
        let piece = Piece::Made(std::mem::take(&mut self.buffer).into());
        self.pieces.send(piece).await.map_err(|_| Error::closed("who asked has gone"))
    }

    async fn end(mut self) -> Result<()> {
        if !self.buffer.is_empty() {
            self.send().await?;
        }
        self.pieces.send(Piece::End).await.map_err(|_| Error::closed("who asked has gone"))
    }
}

/// An answer of lines that `make` adds. What goes wrong before the first of them is the answer's status; after that the connection
/// breaks off, so that a part is never taken for the whole. It ends with who asked, and some seconds after `deadline` at the latest.
pub(crate) async fn answer<F>(deadline: Instant, make: impl FnOnce(Lines) -> F) -> Result<Response, Refusal>
where
    F: Future<Output = Result<Lines, Refusal>> + Send + 'static,
{
    answer_of(JSON_LINES, deadline, make).await
}

/// The same of what is called otherwise.
pub(crate) async fn answer_of<F>(
    kind: &'static str,
    deadline: Instant,
    make: impl FnOnce(Lines) -> F,
) -> Result<Response, Refusal>
where
    F: Future<Output = Result<Lines, Refusal>> + Send + 'static,
{
    let (pieces, mut made) = mpsc::channel(PIECES_MAX);
    let making = make(Lines { buffer: Vec::new(), pieces: pieces.clone() });
    let making = async move {
        let outcome = match making.await {
            Ok(lines) => lines.end().await,
            Err(refusal) => {
                tracing::debug!(status = %refusal.status(), error = %refusal.error(), "an answer failed while it was made");
                pieces.send(Piece::Refused(refusal)).await.map_err(|_| Error::closed("who asked has gone"))
            }
        };
        drop(outcome);
    };
    let ends = deadline + GRACE;
    let task = forebay_runtime::spawn(async move { drop(forebay_runtime::time::timeout_at(ends, making).await) });
    let task = AbortOnDropHandle::new(task);
    let first = match made.recv().await {
        Some(Piece::Refused(refusal)) => return Err(refusal),
        None => return Err(Error::internal("the answer ended by a defect").into()),
        Some(first) => first,
    };
    let rest = stream::unfold((Some(first), made, task), |(next, mut made, task)| async move {
        let next = if let Some(piece) = next { Some(piece) } else { made.recv().await };
        match next {
            Some(Piece::End) => None,
            Some(Piece::Made(lines)) => Some((Ok(lines), (None, made, task))),
            Some(Piece::Refused(refusal)) => Some((Err(refusal.error().clone()), (None, made, task))),
            None => Some((Err(Error::retry("who asked did not read the answer in time")), (None, made, task))),
        }
    });
    Ok(([(CONTENT_TYPE, kind)], Body::from_stream(rest)).into_response())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use axum::http::StatusCode;
    use futures::StreamExt;

    use super::*;

    fn later() -> Instant {
        forebay_runtime::time::instant() + Duration::from_secs(60)
    }

    /// An answer of lines of a piece each, without an end, and how many of them there are.
    async fn endless(deadline: Instant) -> (Response, Arc<AtomicUsize>) {
        let made = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&made);
        let response = answer(deadline, |mut lines| async move {
            loop {
                lines.push(&"x".repeat(PIECE_BYTES)).await?;
                counted.fetch_add(1, Relaxed);
            }
        });
        (response.await.unwrap(), made)
    }

    async fn others_run() {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn nothing_is_made_far_ahead_of_who_reads() {
        let (response, made) = endless(later()).await;
        others_run().await;
        assert_eq!(made.load(Relaxed), 1 + PIECES_MAX, "the one that is sent, and those that wait");
        let mut body = response.into_body().into_data_stream();
        for read in 1..10 {
            body.next().await.unwrap().unwrap();
            others_run().await;
            assert!(made.load(Relaxed) <= read + 1 + PIECES_MAX);
        }
        drop(body);
        others_run().await;
        assert_eq!(Arc::strong_count(&made), 1, "it ends with who reads");
    }

    #[tokio::test]
    async fn lines_that_come_faster_than_they_are_read_go_together() {
        let response = answer(later(), |mut lines| async move {
            for number in 0..1000 {
                lines.push(&number).await?;
            }
            Ok(lines)
        });
        let body = response.await.unwrap().into_body().into_data_stream();
        let pieces: Vec<Bytes> = body.map(Result::unwrap).collect().await;
        assert_eq!(pieces[0], "0\n", "who waits gets the first at once");
        assert!(pieces.len() < 5, "{} pieces", pieces.len());
        assert_eq!(pieces.concat(), (0..1000).map(|number| format!("{number}\n")).collect::<String>().into_bytes());
    }

    #[tokio::test]
    async fn lines_that_are_made_already_go_as_they_are() {
        let response = answer(later(), |mut lines| async move {
            lines.push_made(b"").await?;
            lines.push_made(b"1\n2\n").await?;
            lines.push(&3).await?;
            Ok(lines)
        });
        let body = response.await.unwrap().into_body().into_data_stream();
        let pieces: Vec<Bytes> = body.map(Result::unwrap).collect().await;
        assert_eq!((&pieces[0][..], pieces.concat()), (&b"1\n2\n"[..], b"1\n2\n3\n".to_vec()), "and none is sent that is empty");
    }

    #[tokio::test]
    async fn what_fails_before_the_first_line_is_the_status_and_later_breaks_off() {
        let refuse = || Refusal::from(Error::conflict("it changed"));
        let refused = answer(later(), |_| async move { Err(refuse()) }).await.unwrap_err();
        assert_eq!(refused.status(), StatusCode::CONFLICT);
        let response = answer(later(), |mut lines| async move {
            lines.push(&1).await?;
            Err(refuse())
        });
        let mut body = response.await.unwrap().into_body().into_data_stream();
        assert_eq!(body.next().await.unwrap().unwrap(), "1\n");
        assert!(body.next().await.unwrap().unwrap_err().to_string().contains("it changed"));
    }

    #[tokio::test]
    async fn who_does_not_read_is_not_waited_for_without_end() {
        let (response, made) = endless(forebay_runtime::time::instant() - GRACE).await;
        others_run().await;
        assert_eq!(Arc::strong_count(&made), 1, "it has ended");
        let pieces: Vec<_> = response.into_body().into_data_stream().take(10).collect().await;
        assert!(pieces.iter().any(Result::is_err), "which is told from an answer that is whole");
    }
}
