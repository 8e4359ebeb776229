//! What comes with a request.

use axum::body::{Body, HttpBody};
use axum::http::StatusCode;
use bytes::{Bytes, BytesMut};
use forebay_transport::{Budget, Spent};
use futures::stream::TryStreamExt;

use super::visit::Visit;
use crate::refusal::Refusal;

/// All of a body, before the first of it is answered: who sends all before reading an answer must not wait for one who does not read on
/// before an answer is taken. `too_large` is what more than `bytes_max` is refused with.
pub(super) async fn read(
    visit: &Visit,
    body: Body,
    bytes_max: u64,
    too_large: fn() -> Refusal,
) -> Result<(Bytes, Spent), Refusal> {
    let announced = body.size_hint().exact().unwrap_or(bytes_max);
    if announced > bytes_max {
        return Err(too_large());
    }
    let reading = async {
        let spent = Budget::of_process().take(announced).await;
        let (mut whole, mut pieces) = (BytesMut::new(), body.into_data_stream());
        while let Some(piece) = pieces.try_next().await.map_err(|error| Refusal::invalid(format!("the body: {error}")))? {
            if (whole.len() + piece.len()) as u64 > bytes_max {
                return Err(too_large());
            }
            whole.extend_from_slice(&piece);
        }
        Ok((whole.freeze(), spent))
    };
    match forebay_runtime::time::timeout_at(visit.deadline, reading).await {
        Ok(read) => read,
        Err(_) => Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, visit.late())),
    }
}

/// The lines of a body, without blank ones. `too_many` is what more than `lines_max` are refused with.
pub(super) fn lines(body: &Bytes, lines_max: usize, too_many: fn() -> Refusal) -> Result<Vec<Bytes>, Refusal> {
    let lines = body.split(|byte| *byte == b'\n').filter(|line| !line.iter().all(u8::is_ascii_whitespace));
    let lines: Vec<Bytes> = lines.map(|line| body.slice_ref(line)).take(lines_max + 1).collect();
    if lines.len() > lines_max { Err(too_many()) } else { Ok(lines) }
}
