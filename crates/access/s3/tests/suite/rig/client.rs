//! Signed requests by hand, so that they can be wrong in every way.

use std::net::SocketAddr;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use forebay_types::hex;
use ring::{digest, hmac};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::rig::cluster::{ID, SECRET};

pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        let of = |line: &&str| line.split_once(':').is_some_and(|(given, _)| given.eq_ignore_ascii_case(name));
        self.head.lines().find(of).map(|line| line.split_once(':').unwrap().1.trim())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn code(&self) -> String {
        let text = self.text();
        text.split_once("<Code>").and_then(|(_, rest)| rest.split_once('<')).map_or(String::new(), |(code, _)| code.into())
    }
}

/// A request that is signed as S3 wants it, unless it is changed.
pub struct Signed {
    pub method: &'static str,
    /// As it goes over the wire.
    pub path: String,
    pub query: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    pub hash: Option<String>,
    pub at: DateTime<Utc>,
    pub secret: String,
    pub id: String,
    /// Added after signing.
    pub unsigned: Vec<(String, String)>,
}

pub fn request(method: &'static str, path: &str) -> Signed {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    Signed {
        method,
        path: path.into(),
        query: query.into(),
        headers: Vec::new(),
        body: Vec::new(),
        hash: None,
        at: Utc::now(),
        secret: SECRET.into(),
        id: ID.into(),
        unsigned: Vec::new(),
    }
}

/// Begins an upload in parts; gives its id.
pub async fn begin(at: SocketAddr, path: &str) -> String {
    let begun = request("POST", &format!("{path}?uploads")).send(at).await.text();
    begun.split_once("<UploadId>").unwrap().1.split_once('<').unwrap().0.to_string()
}

pub fn sha256(bytes: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, bytes).as_ref())
}

fn sign(secret: &str, scope: &str, text: &str) -> String {
    let mut key = format!("AWS4{secret}").into_bytes();
    for part in scope.split('/').chain([text]) {
        key = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key), part.as_bytes()).as_ref().to_vec();
    }
    hex(&key)
}

impl Signed {
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    pub fn hash(mut self, hash: &str) -> Self {
        self.hash = Some(hash.into());
        self
    }

    fn scope(&self) -> String {
        format!("{}/us-east-1/s3/aws4_request", self.at.format("%Y%m%d"))
    }

    /// All headers with their signature.
    pub fn signed(&self, address: SocketAddr) -> Vec<(String, String)> {
        let hash = self.hash.clone().unwrap_or_else(|| sha256(&self.body));
        let stamp = self.at.format("%Y%m%dT%H%M%SZ").to_string();
        let mut headers = self.headers.clone();
        headers.push(("host".into(), address.to_string()));
        headers.push(("x-amz-content-sha256".into(), hash.clone()));
        headers.push(("x-amz-date".into(), stamp.clone()));
        headers.sort();
        let mut query: Vec<String> = self.query.split('&').filter(|pair| !pair.is_empty()).map(Into::into).collect();
        query.iter_mut().filter(|pair| !pair.contains('=')).for_each(|pair| pair.push('='));
        query.sort_by(|a, b| a.split_once('=').cmp(&b.split_once('=')));
        let names: Vec<&str> = headers.iter().map(|(name, _)| name.as_str()).collect();
        let names = names.join(";");
        let lines: String = headers.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
        let canonical = format!("{}\n{}\n{}\n{lines}\n{names}\n{hash}", self.method, self.path, query.join("&"));
        let to_sign = format!("AWS4-HMAC-SHA256\n{stamp}\n{}\n{}", self.scope(), sha256(canonical.as_bytes()));
        let signature = sign(&self.secret, &self.scope(), &to_sign);
        let credential = format!("{}/{}", self.id, self.scope());
        let authorization = format!("AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders={names}, Signature={signature}");
        headers.push(("authorization".into(), authorization));
        headers.extend(self.unsigned.clone());
        headers
    }

    /// The request's first lines.
    pub fn head(&self, address: SocketAddr) -> String {
        let query = if self.query.is_empty() { String::new() } else { format!("?{}", self.query) };
        let mut head = format!("{} {}{query} HTTP/1.1\r\n", self.method, self.path);
        let headers = self.signed(address);
        let sizes = ["content-length", "transfer-encoding"];
        if matches!(self.method, "PUT" | "POST") && !headers.iter().any(|(name, _)| sizes.contains(&name.as_str())) {
            head.push_str(&format!("content-length: {}\r\n", self.body.len()));
        }
        headers.iter().for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
        head.push_str("\r\n");
        head
    }

    pub async fn send(self, address: SocketAddr) -> Answer {
        let mut all = self.head(address).into_bytes();
        all.extend_from_slice(&self.body);
        raw(address, &all, self.method == "HEAD").await.expect("an answer")
    }

    /// A URL's path that anybody may use for a while.
    pub fn presigned(&self, address: SocketAddr, expires: TimeDelta) -> String {
        let stamp = self.at.format("%Y%m%dT%H%M%SZ").to_string();
        let credential = format!("{}/{}", self.id, self.scope()).replace('/', "%2F");
        let mut query = vec![
            "X-Amz-Algorithm=AWS4-HMAC-SHA256".to_string(),
            format!("X-Amz-Credential={credential}"),
            format!("X-Amz-Date={stamp}"),
            format!("X-Amz-Expires={}", expires.num_seconds()),
            "X-Amz-SignedHeaders=host".to_string(),
        ];
        query.extend(self.query.split('&').filter(|pair| !pair.is_empty()).map(String::from));
        query.sort();
        let query = query.join("&");
        let canonical = format!("{}\n{}\n{query}\nhost:{address}\n\nhost\nUNSIGNED-PAYLOAD", self.method, self.path);
        let to_sign = format!("AWS4-HMAC-SHA256\n{stamp}\n{}\n{}", self.scope(), sha256(canonical.as_bytes()));
        format!("{}?{query}&X-Amz-Signature={}", self.path, sign(&self.secret, &self.scope(), &to_sign))
    }

    /// The signature of chunks, for bodies that are signed chunk by chunk.
    pub fn chunk_signature(&self, previous: &str, chunk: &[u8]) -> String {
        let stamp = self.at.format("%Y%m%dT%H%M%SZ").to_string();
        let (scope, empty) = (self.scope(), sha256(b""));
        sign(&self.secret, &scope, &format!("AWS4-HMAC-SHA256-PAYLOAD\n{stamp}\n{scope}\n{previous}\n{empty}\n{}", sha256(chunk)))
    }
}

/// Sends bytes as they are; none when the server closes without an answer.
pub async fn raw(address: SocketAddr, bytes: &[u8], is_head: bool) -> Option<Answer> {
    let mut socket = TcpStream::connect(address).await.unwrap();
    // A server that refuses early may close before all is written.
    let _ = socket.write_all(bytes).await;
    patiently(read(&mut socket, is_head)).await.expect("the server answers or closes")
}

/// Waits for 20 s of a machine that has time for this process: on one that has none, the pauses between two looks are longer
/// than they are taken for.
async fn patiently<T>(what: impl Future<Output = T>) -> Option<T> {
    tokio::pin!(what);
    for _ in 0..400 {
        if let Ok(done) = tokio::time::timeout(Duration::from_millis(50), &mut what).await {
            return Some(done);
        }
    }
    None
}

/// A connection that is kept from request to request, and made anew when the server has closed it.
pub struct Kept {
    at: SocketAddr,
    socket: Option<(TcpStream, Taken)>,
}

impl Kept {
    pub fn new(at: SocketAddr) -> Self {
        Self { at, socket: None }
    }

    /// Sends requests at once, and takes their answers.
    pub async fn ask(&mut self, asked: Vec<Signed>) -> Vec<Answer> {
        let text: Vec<u8> =
            asked.iter().flat_map(|asked| [asked.head(self.at).into_bytes(), asked.body.clone()].concat()).collect();
        // One that was closed in the meantime is tried again, once.
        for _ in 0..2 {
            let (mut socket, mut taken) = match self.socket.take() {
                Some(kept) => kept,
                None => (TcpStream::connect(self.at).await.unwrap(), Taken::default()),
            };
            let _ = socket.write_all(&text).await;
            let mut answers = Vec::new();
            for asked in &asked {
                let next = patiently(taken.next(&mut socket, asked.method == "HEAD")).await;
                answers.extend(next.expect("the server answers or closes"));
            }
            if answers.len() == asked.len() {
                if answers.iter().all(|answer| answer.header("connection") != Some("close")) {
                    self.socket = Some((socket, taken));
                }
                return answers;
            }
        }
        panic!("the server closes instead of answering {}", String::from_utf8_lossy(&text));
    }
}

pub async fn read<S: AsyncRead + Unpin>(socket: &mut S, is_head: bool) -> Option<Answer> {
    Taken::default().next(socket, is_head).await
}

/// What came of a connection beyond the answers that were taken.
#[derive(Default)]
pub struct Taken(Vec<u8>);

impl Taken {
    pub async fn next(&mut self, socket: &mut (impl AsyncRead + Unpin), is_head: bool) -> Option<Answer> {
        let all = &mut self.0;
        let (end, length) = loop {
            if let Some(end) = all.windows(4).position(|four: &[u8]| four == b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&all[..end]).into_owned();
                let answer = Answer { status: 0, head, body: Vec::new() };
                let length: usize = answer.header("content-length").map_or(0, |length| length.parse().unwrap());
                break (end, if is_head { 0 } else { length });
            }
            if socket.read_buf(all).await.ok()? == 0 {
                return None;
            }
        };
        while all.len() < end + 4 + length {
            if socket.read_buf(all).await.ok()? == 0 {
                return None;
            }
        }
        let rest = all.split_off(end + 4 + length);
        let answer = std::mem::replace(all, rest);
        let head = String::from_utf8_lossy(&answer[..end]).into_owned();
        let status = head.split(' ').nth(1)?.parse().ok()?;
        Some(Answer { status, head, body: answer[end + 4..].to_vec() })
    }
}

/// A body without the number that each refusal has of its own.
pub fn without_ids(body: &[u8]) -> Vec<u8> {
    let place = |mark: &[u8]| body.windows(mark.len()).position(|at| at == mark);
    match body.starts_with(b"<?xml").then(|| (place(b"<RequestId>"), place(b"</RequestId>"))) {
        Some((Some(from), Some(to))) => [&body[..from], &body[to..]].concat(),
        _ => body.to_vec(),
    }
}
