//! What is said to who comes and can't be served: one answer, and the connection ends.

use std::io;

use forebay_transport::Introduced;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Bytes of a request that are looked at: who is answered with something has a short one.
const LOOKED_AT: usize = 1 << 10;

/// Why nothing more is served.
pub(super) const NO_DESCRIPTORS: &str = "this process has no descriptors left: LimitNOFILE, ulimit -Hn\n";
pub(super) const TOO_MANY: &str =
    "too many connections are open at this port, of all or of this host: close some, or try again later\n";

/// Whoever finds no answer to `/healthz` would end a process that serves all who are connected. All else is refused, as nothing more can be
/// served.
pub(super) async fn last_word(mut socket: Introduced, why: &str) -> io::Result<()> {
    let mut head = [0; LOOKED_AT];
    let read = socket.read(&mut head).await?;
    let answer = answer(&head[..read], why);
    if !head.starts_with(b"GET ") && !head.starts_with(b"HEAD ") {
        return socket.end_with(answer.as_bytes()).await;
    }
    // Nothing follows.
    socket.write_all(answer.as_bytes()).await?;
    socket.shutdown().await
}

/// The answer to a request that begins so.
fn answer(head: &[u8], why: &str) -> String {
    let mut words = head.split(|byte| *byte == b' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = target.split(|byte| *byte == b'?').next().unwrap_or_default();
    let (status, text) = match (method, path) {
        (b"GET" | b"HEAD", b"/healthz") => ("200 OK", "ok\n"),
        _ => ("503 Service Unavailable", why),
    };
    debug_assert!(text.ends_with('\n'), "who reads it at a terminal has a line");
    let shown = if method == b"HEAD" { "" } else { text };
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncache-control: no-store\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n{shown}",
        text.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_asks_whether_the_process_is_there_is_told_so() {
        let is_there = |head: &str| answer(head.as_bytes(), TOO_MANY).starts_with("HTTP/1.1 200 OK\r\n");
        for head in ["GET /healthz HTTP/1.1\r\n\r\n", "GET /healthz?of=me HTTP/1.1\r\n\r\n", "HEAD /healthz HTTP/1.0\r\n\r\n"] {
            assert!(is_there(head), "{head:?}");
        }
        for head in
            ["", "GET", "GET /readyz HTTP/1.1\r\n\r\n", "GET /healthz/ HTTP/1.1\r\n\r\n", "POST /healthz HTTP/1.1\r\n\r\n"]
        {
            assert!(!is_there(head), "{head:?}");
        }
        assert!(
            answer(b"GET /healthz HTTP/1.1\r\n\r\n", TOO_MANY).ends_with("content-length: 3\r\nconnection: close\r\n\r\nok\n")
        );
        assert!(answer(b"HEAD /healthz HTTP/1.1\r\n\r\n", TOO_MANY).ends_with("content-length: 3\r\nconnection: close\r\n\r\n"));
        for why in [TOO_MANY, NO_DESCRIPTORS] {
            assert!(answer(b"GET / HTTP/1.1\r\n\r\n", why).ends_with(why));
        }
    }
}
