use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use forebay_types::{Error, Result};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use crate::dial::{CONNECT_TIMEOUT, HANDSHAKE_TIMEOUT};
use crate::token::{self, NONCE_BYTES, Nonce, Side};
use crate::{Address, Security, socket, tls};

/// What both sides begin with.
const MAGIC: &[u8; 8] = b"FBGUARD1";
/// Longest proof of a token.
const PROOF_BYTES_MAX: usize = 64;

/// A connection of another protocol, behind this cluster's TLS and token: bytes as they are, once both ends have proved
/// that they belong to the cluster.
pub struct Guarded(Box<dyn Io>);

trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// Lets connections in.
pub struct Guard {
    security: Security,
    tls: Option<TlsAcceptor>,
}

impl Guard {
    /// Reads the certificate and its key.
    pub fn new(security: &Security) -> Result<Self> {
        let tls = security.tls.as_ref().map(tls::acceptor).transpose()?;
        Ok(Self { security: security.clone(), tls })
    }

    /// Lets a connection in that has just been accepted, or says why not. Ends within the time of a handshake.
    pub async fn admit(&self, stream: TcpStream) -> Result<Guarded> {
        socket::set_tcp_options(&stream)?;
        let admitted = async {
            let mut io: Box<dyn Io> = match &self.tls {
                Some(tls) => Box::new(tls.accept(stream).await.map_err(|error| Error::denied(format!("TLS failed: {error}")))?),
                None => Box::new(stream),
            };
            self.check(&mut io).await?;
            Ok(Guarded(io))
        };
        timeout(HANDSHAKE_TIMEOUT, admitted).await.map_err(|_| Error::retry("the peer does not finish the handshake"))?
    }

    async fn check(&self, io: &mut Box<dyn Io>) -> Result<()> {
        let client = hear_nonce(io).await?;
        let server = token::nonce()?;
        let token = self.security.token();
        say_nonce(io, &server).await?;
        let proof = hear_proof(io).await?;
        match token {
            Some(token) if !token::verify(token, Side::Client, &client, &server, &proof) => {
                // An empty proof of its own says no; which token was wrong is not told.
                say_proof(io, &[]).await?;
                Err(Error::denied("a peer does not know the cluster's token"))
            }
            Some(token) => say_proof(io, &token::prove(token, Side::Server, &client, &server)).await,
            None => say_proof(io, MAGIC).await,
        }
    }
}

impl Guarded {
    /// Connects to `host:port` and proves the token there. `Denied` when either side has another one.
    pub async fn connect(host_port: &str, security: &Security) -> Result<Self> {
        let address = Address::Tcp(host_port.to_string());
        let connected = timeout(CONNECT_TIMEOUT, TcpStream::connect(host_port)).await;
        let stream = connected.map_err(|_| Error::retry(format!("{address} does not answer")))?;
        let stream = stream.map_err(|error| Error::retry(format!("{address} can't be reached: {error}")))?;
        socket::set_tcp_options(&stream)?;
        let proved = async {
            let mut io: Box<dyn Io> = match &security.tls {
                Some(settings) => {
                    let connected = tls::connector(settings)?.connect(tls::server_name(&address)?, stream).await;
                    Box::new(connected.map_err(|error| {
                        Error::denied(format!("{address}: TLS failed: {error}; is TLS on at both ends, and the CA the same?"))
                    })?)
                }
                None => Box::new(stream),
            };
            prove(&mut io, security).await.map_err(|error| error.context(&address))?;
            Ok(Self(io))
        };
        timeout(HANDSHAKE_TIMEOUT, proved)
            .await
            .map_err(|_| Error::retry(format!("{address} does not finish the handshake: is TLS on at both ends?")))?
    }
}

async fn prove(io: &mut Box<dyn Io>, security: &Security) -> Result<()> {
    let client = token::nonce()?;
    say_nonce(io, &client).await?;
    let server = hear_nonce(io).await?;
    let token = security.token();
    let own = token.map_or(Vec::new(), |token| token::prove(token, Side::Client, &client, &server));
    say_proof(io, &own).await?;
    let proof = hear_proof(io).await?;
    match token {
        Some(token) if token::verify(token, Side::Server, &client, &server, &proof) => Ok(()),
        None if proof == MAGIC => Ok(()),
        _ => Err(Error::denied("the cluster token does not match: set FOREBAY_TOKEN to the same token on both sides")),
    }
}

fn broken(error: io::Error) -> Error {
    Error::retry(format!("the connection ended during the handshake: {error}"))
}

async fn say_nonce(io: &mut Box<dyn Io>, nonce: &Nonce) -> Result<()> {
    io.write_all(&[MAGIC.as_slice(), nonce].concat()).await.map_err(broken)?;
    io.flush().await.map_err(broken)
}

async fn hear_nonce(io: &mut Box<dyn Io>) -> Result<Nonce> {
    let mut said = [0; MAGIC.len() + NONCE_BYTES];
    io.read_exact(&mut said).await.map_err(broken)?;
    let (magic, nonce) = said.split_at(MAGIC.len());
    match <Nonce>::try_from(nonce) {
        Ok(nonce) if magic == MAGIC => Ok(nonce),
        _ => Err(Error::denied("the peer does not begin as a process of the cluster does: is its token, or TLS, set?")),
    }
}

async fn say_proof(io: &mut Box<dyn Io>, proof: &[u8]) -> Result<()> {
    io.write_all(&[&[proof.len() as u8], proof].concat()).await.map_err(broken)?;
    io.flush().await.map_err(broken)
}

async fn hear_proof(io: &mut Box<dyn Io>) -> Result<Vec<u8>> {
    let len = usize::from(io.read_u8().await.map_err(broken)?);
    if len > PROOF_BYTES_MAX {
        return Err(Error::denied("the peer does not keep to the handshake"));
    }
    let mut proof = vec![0; len];
    io.read_exact(&mut proof).await.map_err(broken)?;
    Ok(proof)
}

impl AsyncRead for Guarded {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, into)
    }
}

impl AsyncWrite for Guarded {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
