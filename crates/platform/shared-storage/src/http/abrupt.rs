//! Connections that end without a word: never as if what was sent on them were complete.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use tower_service::Service;

use super::connect::{BoundedStream, BoxError, Connector};

/// Makes such connections, with TLS where the URI says so.
#[derive(Clone)]
pub(super) struct AbruptConnector(pub(super) HttpsConnector<Connector>);

impl Service<Uri> for AbruptConnector {
    type Response = AbruptStream;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connecting = self.0.call(uri);
        Box::pin(async move { Ok(AbruptStream(connecting.await?)) })
    }
}

/// A connection that is dropped as it is where it would be shut down.
pub(super) struct AbruptStream(MaybeHttpsStream<TokioIo<BoundedStream>>);

impl Read for AbruptStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl Write for AbruptStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, data)
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(cx, data)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    /// Comes also in the middle of a body that nobody waits for any more. An end that is said then, of TCP or TLS, is heard before the
    /// reset that follows.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl Connection for AbruptStream {
    fn connected(&self) -> Connected {
        self.0.connected()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use bytes::Bytes;
    use futures::StreamExt;
    use tokio::io::AsyncReadExt;
    use tokio::net::TcpListener;

    use crate::bandwidth::Limiter;
    use crate::http::{BodyError, HttpClient, LinkLocal, Payload};
    use crate::request::Class;

    #[tokio::test]
    async fn a_request_that_is_given_up_halfway_is_reset() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let uri = format!("http://{}/key", listener.local_addr().unwrap());
        let (limiter, patience) = (Limiter::new(None, 0), Duration::from_secs(20));
        let client = HttpClient::new(&limiter, &Arc::default(), patience, false, LinkLocal::Allowed).unwrap();
        let half = futures::stream::once(async { Ok::<_, BodyError>(Bytes::from_static(b"half")) });
        let body = Payload::stream(half.chain(futures::stream::pending()).boxed(), 8);
        let mut sending = Box::pin(client.send(http::Request::put(uri).body(body).unwrap(), Class::Demand));
        let hearing = async {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut heard = Vec::new();
            while !heard.ends_with(b"half") {
                assert_ne!(socket.read_buf(&mut heard).await.unwrap(), 0, "there is more to come");
            }
            socket
        };
        let mut socket = tokio::select! {
            _ = &mut sending => panic!("nobody has answered"),
            socket = hearing => socket,
        };
        drop(sending);
        let end = socket.read(&mut [0; 16]).await;
        assert_eq!(end.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
    }
}
