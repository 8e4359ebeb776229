//! A store whose object is another one each time that it is asked for, until it stays.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

use super::parrot::hear;

/// A store with one object, `key`.
pub struct Fickle {
    pub endpoint: String,
    asked: Arc<AtomicUsize>,
}

impl Fickle {
    /// Has these versions of it, a request each, and the last one from then on.
    pub async fn start(versions: Vec<Vec<u8>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let (versions, asked) = (Arc::new(versions), Arc::<AtomicUsize>::default());
        let counted = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let (versions, asked) = (Arc::clone(&versions), Arc::clone(&counted));
                tokio::spawn(async move { answer(socket, &versions, &asked).await });
            }
        });
        Self { endpoint, asked }
    }

    /// Requests for the object.
    pub fn asked(&self) -> usize {
        self.asked.load(SeqCst)
    }
}

async fn answer(mut socket: TcpStream, versions: &[Vec<u8>], asked: &AtomicUsize) {
    let Some(head) = hear(&mut socket).await else { return };
    let mut words = head.split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let answer = match target.ends_with("/key") {
        true => {
            let at = asked.fetch_add(1, SeqCst).min(versions.len() - 1);
            object(&head, method == "head", at, &versions[at])
        }
        false => b"HTTP/1.1 200 OK\r\ncontent-length: 19\r\nconnection: close\r\n\r\n<ListBucketResult/>".to_vec(),
    };
    let _ = socket.write_all(&answer).await;
}

/// The answer to a request for a version of the object.
fn object(head: &str, is_head: bool, version: usize, bytes: &[u8]) -> Vec<u8> {
    let header = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    let tag = format!("\"version-{version}\"");
    let (status, range, body) = match header("range").and_then(|range| range.strip_prefix("bytes=")?.split_once('-')) {
        _ if header("if-match").is_some_and(|wanted| wanted != tag) => ("412 Precondition Failed", String::new(), &b""[..]),
        None => ("200 OK", String::new(), bytes),
        Some((first, last)) => {
            let first: usize = first.parse().unwrap();
            let end = last.parse().map_or(bytes.len(), |last: usize| bytes.len().min(last + 1));
            match first < end {
                true => {
                    let range = format!("content-range: bytes {first}-{}/{}\r\n", end - 1, bytes.len());
                    ("206 Partial Content", range, &bytes[first..end])
                }
                false => ("416 Range Not Satisfiable", String::new(), &b""[..]),
            }
        }
    };
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\netag: {tag}\r\nlast-modified: Tue, 14 Nov 2023 22:13:20 GMT\r\n\
         {range}connection: close\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), if is_head { &body[..0] } else { body }].concat()
}
