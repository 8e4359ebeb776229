//! A store that is not looked into: what it hears is what counts.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A store that says the same to everyone, and keeps the heads of all requests.
pub struct Parrot {
    pub endpoint: String,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Parrot {
    pub async fn start(says: &'static str) -> Self {
        Self::start_with(says, "").await
    }

    /// The same with more headers, a line each.
    pub async fn start_with(says: &'static str, headers: &'static str) -> Self {
        Self::start_refusing(says, headers, None).await
    }

    /// The same, but that requests with these words in their heads, in small letters, are forbidden.
    pub async fn start_refusing(says: &'static str, headers: &'static str, refused: Option<&'static str>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let heard = Arc::<Mutex<Vec<String>>>::default();
        let kept = Arc::clone(&heard);
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let kept = Arc::clone(&kept);
                tokio::spawn(async move { answer(socket, (says, headers), refused, &kept).await });
            }
        });
        Self { endpoint, heard }
    }

    /// The heads of requests since it was asked before, in small letters.
    pub fn heard(&self) -> Vec<String> {
        std::mem::take(&mut self.heard.lock().unwrap())
    }
}

/// The head of a request, in small letters, when all of it has come; none when its client went away before.
pub async fn hear(socket: &mut TcpStream) -> Option<String> {
    let mut all = Vec::new();
    let head = loop {
        if let Some(end) = all.windows(4).position(|four: &[u8]| four == b"\r\n\r\n") {
            break String::from_utf8_lossy(&all[..end]).to_ascii_lowercase();
        }
        if socket.read_buf(&mut all).await.unwrap_or(0) == 0 {
            return None;
        }
    };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0);
    while all.len() < head.len() + 4 + length && socket.read_buf(&mut all).await.unwrap_or(0) > 0 {}
    Some(head)
}

async fn answer(mut socket: TcpStream, (says, headers): (&str, &str), refused: Option<&str>, heard: &Mutex<Vec<String>>) {
    let Some(head) = hear(&mut socket).await else { return };
    let status = if refused.is_some_and(|words| head.contains(words)) { "403 Forbidden" } else { "200 OK" };
    // Before it is answered: whoever asked looks then.
    heard.lock().unwrap().push(head);
    let length = says.len();
    let answer = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/xml\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}\r\n{says}"
    );
    let _ = socket.write_all(answer.as_bytes()).await;
}
