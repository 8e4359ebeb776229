//! One question over HTTP, and all of its answer.

use std::fmt::Display;
use std::net::SocketAddr;

use bytes::Bytes;
use forebay_oracle::history::Failure;
use forebay_oracle::load::{cut, within};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::Request;
use hyper::client::conn::http1::handshake;
use hyper::header::{AUTHORIZATION, HOST};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

/// No answer of a load is as long.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// Where it is asked, and what is shown there.
pub(super) struct Http {
    pub(super) address: SocketAddr,
    /// The same of a coordinator that stands by, where one does.
    pub(super) standby: Option<SocketAddr>,
    pub(super) token: String,
}

impl Http {
    /// The answer to a GET, on a connection of its own: its bytes where it is 200, else what is wrong.
    pub(super) async fn get(&self, path: &str) -> Result<Bytes, Failure> {
        match (self.get_at(self.address, path).await, self.standby) {
            // While the other one leads this one is gone, or stands by.
            (Err(failure), Some(standby)) if ["connection", "retry"].contains(&failure.kind.as_str()) => {
                self.get_at(standby, path).await
            }
            (answer, _) => answer,
        }
    }

    async fn get_at(&self, address: SocketAddr, path: &str) -> Result<Bytes, Failure> {
        let (status, body) = within(self.ask(address, path)).await?;
        if status == 200 { Ok(body) } else { Err(refusal(status, &body)) }
    }

    async fn ask(&self, address: SocketAddr, path: &str) -> Result<(u16, Bytes), Failure> {
        let socket = TcpStream::connect(address).await.map_err(broken)?;
        let (mut sender, connection) = handshake(TokioIo::new(socket)).await.map_err(broken)?;
        // It ends with the answer, or with who asked.
        let connection = tokio::spawn(connection);
        let request = Request::get(path)
            .header(HOST, address.to_string())
            .header(AUTHORIZATION, format!("Bearer {}", self.token))
            .body(Empty::<Bytes>::new())
            .map_err(broken)?;
        let answer = sender.send_request(request).await.map_err(broken)?;
        let status = answer.status().as_u16();
        let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect().await.map_err(broken)?.to_bytes();
        connection.abort();
        Ok((status, body))
    }
}

fn broken(error: impl Display) -> Failure {
    Failure { kind: "connection".to_owned(), message: cut(&error.to_string()), no_effect: false }
}

/// What is said in the place of an answer.
fn refusal(status: u16, body: &[u8]) -> Failure {
    let said: Value = serde_json::from_slice(body).unwrap_or_default();
    let text = |name: &str| said[name].as_str().map(str::to_owned);
    let kind = text("error").unwrap_or_else(|| status.to_string());
    let message = text("message").unwrap_or_else(|| String::from_utf8_lossy(body).into_owned());
    Failure { kind, message: cut(&message), no_effect: status < 500 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_has_its_kind_or_its_status() {
        let said = refusal(503, br#"{"error": "retry", "message": "workers are away"}"#);
        assert_eq!((said.kind.as_str(), said.message.as_str()), ("retry", "workers are away"));
        assert_eq!(refusal(502, b"by a proxy").kind, "502");
    }
}
