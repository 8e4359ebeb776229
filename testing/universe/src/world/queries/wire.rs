//! How schedulers, executors and clients of a world speak: a question and its answer a connection, each with its length before it.

use std::io;
use std::time::Duration;

use forebay_runtime::net::{Listener, Stream, connect};
use forebay_runtime::time::{sleep, timeout};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Larger than any message.
const FRAME_BYTES_MAX: usize = 16 << 20;
/// Who can't be accepted is tried again after so long.
const REST: Duration = Duration::from_millis(50);

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::world) enum Unanswered {
    /// Nobody is there.
    NoWay,
    /// The connection broke, or there was no answer in time: what was asked may be done.
    BrokenOff,
}

/// Asks who listens at an address.
pub(in crate::world) async fn ask<T: DeserializeOwned>(
    at: &str,
    asked: &impl Serialize,
    within: Duration,
) -> Result<T, Unanswered> {
    let asking = async {
        let mut stream = connect(at).await.map_err(|_| Unanswered::NoWay)?;
        let answered = async {
            write(&mut stream, asked).await?;
            read(&mut stream).await
        };
        answered.await.map_err(|_| Unanswered::BrokenOff)
    };
    timeout(within, asking).await.unwrap_or(Err(Unanswered::BrokenOff))
}

/// Answers who comes to an address. Who goes away before his answer has it no longer made.
pub(super) async fn serve<A, T, F>(at: &str, answer: impl Fn(A) -> F + Clone + Send + 'static)
where
    A: DeserializeOwned + Send + 'static,
    T: Serialize + Send + Sync + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let listener = Listener::bind(at).await.expect("the host is there for it");
    loop {
        let Ok((mut stream, _)) = listener.accept().await else {
            sleep(REST).await;
            continue;
        };
        let answer = answer.clone();
        forebay_runtime::spawn(async move {
            let Ok(asked) = read(&mut stream).await else { return };
            let answered = tokio::select! {
                biased;
                answered = answer(asked) => answered,
                // Nobody says anything more: the connection has ended.
                _ = stream.read_u8() => return,
            };
            if let Err(error) = write(&mut stream, &answered).await {
                tracing::debug!(%error, "an answer is lost");
            }
        });
    }
}

async fn write(stream: &mut Stream, value: &impl Serialize) -> io::Result<()> {
    let bytes = postcard::to_stdvec(value).map_err(io::Error::other)?;
    let mut frame = (bytes.len() as u32).to_le_bytes().to_vec();
    frame.extend_from_slice(&bytes);
    stream.write_all(&frame).await?;
    stream.flush().await
}

async fn read<T: DeserializeOwned>(stream: &mut Stream) -> io::Result<T> {
    let len = stream.read_u32_le().await? as usize;
    if len > FRAME_BYTES_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = vec![0; len];
    stream.read_exact(&mut bytes).await?;
    postcard::from_bytes(&bytes).map_err(io::Error::other)
}
