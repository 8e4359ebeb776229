//! Payloads of frames as they come: in turn with those of other connections, and large ones by threads that answer nobody.
//!
//! Who takes payloads is busy for as long as they come, and the system lets who was busy wait for who was not: a thread that only answers
//! small requests has the core at once.

use std::sync::LazyLock;

use forebay_runtime::Computing;
use forebay_types::{Error, Result};
use tokio_util::task::AbortOnDropHandle;

use super::batch::PayloadSum;
use super::link::Source;
use super::turns::{TURN_BYTES, in_turn};

/// One for all connections of the process, since the first large payload. None where the system gives no threads.
static THREADS: LazyLock<Option<Computing>> = LazyLock::new(|| Computing::start("payloads").ok());

/// Receives until `payload` has `len` bytes; `idle` is called before waiting. `turn` counts what was taken since others had theirs.
pub(super) async fn receive(
    source: &mut Source,
    payload: &mut Vec<u8>,
    len: usize,
    sum: &mut Option<PayloadSum>,
    turn: &mut usize,
    idle: impl Fn(),
) -> Result<()> {
    while payload.len() < len {
        let before = payload.len();
        let end = len.min(before + TURN_BYTES);
        let (received, place) = in_turn(source.receive_to(payload, end, &idle)).await;
        let received = received.map_err(lost)?;
        if received == 0 {
            return Err(cut_off());
        }
        add(sum, &payload[before..]);
        give_way(turn, received).await;
        drop(place);
    }
    Ok(())
}

/// The same by a thread that answers nobody. Dropped, it takes no more.
pub(super) async fn receive_aside(
    mut source: Source,
    mut payload: Vec<u8>,
    len: usize,
    sum: &mut Option<PayloadSum>,
) -> Result<Vec<u8>> {
    let mut counted = sum.take();
    let taking = async move {
        receive(&mut source, &mut payload, len, &mut counted, &mut 0, || {}).await?;
        Ok((payload, counted))
    };
    let taken = match &*THREADS {
        Some(threads) => {
            let ended = |_| Err(Error::closed("a payload was not taken to its end"));
            AbortOnDropHandle::new(threads.spawn(taking)).await.unwrap_or_else(ended)
        }
        None => taking.await,
    };
    let (payload, counted) = taken?;
    *sum = counted;
    Ok(payload)
}

/// Lets others have their turn where payloads come as fast as they are taken: sockets are looked at before this goes on, and the
/// next payload's turn comes after that.
pub(super) async fn give_way(turn: &mut usize, received: usize) {
    *turn += received;
    if *turn >= TURN_BYTES {
        *turn = 0;
        tokio::task::yield_now().await;
    }
}

/// Counts bytes of a payload that came with a checksum.
pub(super) fn add(sum: &mut Option<PayloadSum>, bytes: &[u8]) {
    if let Some(sum) = sum {
        sum.add(bytes);
    }
}

pub(super) fn cut_off() -> Error {
    Error::closed("the connection ended within a frame")
}

pub(super) fn lost(error: std::io::Error) -> Error {
    Error::closed(format!("the connection was lost: {error}")).with_source(error)
}
