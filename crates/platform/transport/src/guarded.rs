//! Another protocol's connections behind TLS and credentials of this cluster.

use std::io;

use forebay_rights::Caller;
use forebay_runtime::time::timeout;
use forebay_types::{Error, ErrorKind, Result};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::asking::dial::{CONNECT_TIMEOUT, HANDSHAKE_TIMEOUT};
use crate::credentials::admission::unknown;
use crate::credentials::audit;
use crate::credentials::token::{self, NONCE_BYTES, Nonce, PROOF_BYTES, Proof, Transcript};
use crate::handshake::{ID_BYTES_MAX, left, nothing_to_show, stranger};
use crate::sockets;
use crate::tls::{Acceptor, Spoken};
use crate::{Address, Security, tls};

/// What both sides begin with.
const MAGIC: &[u8; 8] = b"FBGUARD2";
/// What proofs behind it name as the version, whatever the protocol's is: these bytes have a version of their own in [`MAGIC`].
const PROOF_VERSION: u16 = 8;
/// The server's last word to who is let in, and to who is not.
const ADMITTED: u8 = 1;
const REFUSED: u8 = 0;

/// A connection of another protocol, behind this cluster's TLS and credentials: bytes as they are, once both ends have proved
/// who they are.
pub struct Guarded {
    io: Box<dyn Io>,
    caller: Option<Caller>,
}

trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// Lets connections in.
pub struct Guard {
    security: Security,
    tls: Option<Acceptor>,
}

impl Guard {
    /// Reads the certificate and its key.
    pub fn new(security: &Security) -> Result<Self> {
        let tls = security.tls.as_ref().map(|tls| Acceptor::new(tls, Spoken::Ours)).transpose()?;
        Ok(Self { security: security.clone(), tls })
    }

    /// Lets a connection in that has just been accepted, or says why not. Ends within the time of a handshake.
    pub async fn admit(&self, stream: TcpStream) -> Result<Guarded> {
        sockets::set_tcp_options(&stream)?;
        let from = stream.peer_addr().map_or_else(|_| String::new(), |address| address.to_string());
        let admitted = async {
            let mut io: Box<dyn Io> = match &self.tls {
                Some(tls) => Box::new(tls.accept(stream).await.map_err(|error| Error::denied(format!("TLS failed: {error}")))?),
                None => Box::new(stream),
            };
            match self.check(&mut io).await {
                Ok(caller) => {
                    say(&mut io, &[ADMITTED]).await?;
                    Ok(Guarded { io, caller: Some(caller) })
                }
                Err(error) => {
                    // It may be gone; what was wrong is not told.
                    let _ = say(&mut io, &[REFUSED]).await;
                    Err(error)
                }
            }
        };
        let admitted = timeout(HANDSHAKE_TIMEOUT, admitted).await;
        let admitted = admitted.map_err(|_| Error::retry("the peer does not finish the handshake"))?;
        admitted.inspect_err(|error| audit::tell_stranger(&from, error))
    }

    async fn check(&self, io: &mut Box<dyn Io>) -> Result<Caller> {
        let client = hear_nonce(io).await?;
        let id = hear_id(io).await?;
        let server = token::nonce()?;
        let said = Transcript { version: PROOF_VERSION, client: &client, server: &server, id: &id };
        let Some(entry) = self.security.admits.find(&id) else {
            // As long as the answer to a name that is known.
            say(io, &[MAGIC.as_slice(), &server, &token::nonce()?].concat()).await?;
            return Err(unknown(&id));
        };
        let own = token::prove_server(&entry.verifier.keys, &said);
        say(io, &[MAGIC.as_slice(), &server, &own].concat()).await?;
        let proof = hear_proof(io).await.map_err(|error| if error.kind() == ErrorKind::Retry { left(&id) } else { error })?;
        if token::is_client(&entry.verifier.keys, &said, &proof) { Ok(entry.caller()) } else { Err(unknown(&id)) }
    }
}

impl Guarded {
    /// Connects to `host:port` and proves the credential there. `Denied` when the other side does not know it.
    pub async fn connect(host_port: &str, security: &Security) -> Result<Self> {
        let address = Address::Tcp(host_port.to_string());
        let connected = timeout(CONNECT_TIMEOUT, TcpStream::connect(host_port)).await;
        let stream = connected.map_err(|_| Error::retry(format!("{address} does not answer")))?;
        let stream = stream.map_err(|error| Error::retry(format!("{address} can't be reached: {error}")))?;
        sockets::set_tcp_options(&stream)?;
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
            Ok(Self { io, caller: None })
        };
        timeout(HANDSHAKE_TIMEOUT, proved)
            .await
            .map_err(|_| Error::retry(format!("{address} does not finish the handshake: is TLS on at both ends?")))?
    }

    /// Who was let in; none on the side that asked.
    pub fn caller(&self) -> Option<&Caller> {
        self.caller.as_ref()
    }
}

async fn prove(io: &mut Box<dyn Io>, security: &Security) -> Result<()> {
    let credential = security.shows.as_ref().ok_or_else(nothing_to_show)?;
    let (client, id) = (token::nonce()?, credential.id());
    say(io, &[MAGIC.as_slice(), &client, &[id.len() as u8], id.as_bytes()].concat()).await?;
    let server = hear_nonce(io).await?;
    let said = Transcript { version: PROOF_VERSION, client: &client, server: &server, id };
    if !token::is_server(credential.secret(), &said, &hear_proof(io).await?) {
        return Err(stranger());
    }
    say(io, &token::prove_client(credential.secret(), &said)).await?;
    if io.read_u8().await.map_err(broken)? == ADMITTED { Ok(()) } else { Err(stranger()) }
}

fn broken(error: io::Error) -> Error {
    let refused = tls::refused_certificate(&error);
    refused.unwrap_or_else(|| Error::retry(format!("the connection ended during the handshake: {error}")).with_source(error))
}

async fn say(io: &mut Box<dyn Io>, bytes: &[u8]) -> Result<()> {
    io.write_all(bytes).await.map_err(broken)?;
    io.flush().await.map_err(broken)
}

async fn hear_nonce(io: &mut Box<dyn Io>) -> Result<Nonce> {
    let mut said = [0; MAGIC.len() + NONCE_BYTES];
    io.read_exact(&mut said).await.map_err(broken)?;
    let (magic, nonce) = said.split_at(MAGIC.len());
    match <Nonce>::try_from(nonce) {
        Ok(nonce) if magic == MAGIC => Ok(nonce),
        _ => Err(Error::denied("the peer does not begin as a process of the cluster does: is TLS set on both sides?")),
    }
}

async fn hear_id(io: &mut Box<dyn Io>) -> Result<String> {
    let len = usize::from(io.read_u8().await.map_err(broken)?);
    if len > ID_BYTES_MAX {
        return Err(Error::denied("the peer does not keep to the handshake"));
    }
    let mut id = vec![0; len];
    io.read_exact(&mut id).await.map_err(broken)?;
    String::from_utf8(id).map_err(|_| Error::denied("the peer does not keep to the handshake"))
}

async fn hear_proof(io: &mut Box<dyn Io>) -> Result<Proof> {
    let mut proof = [0; PROOF_BYTES];
    io.read_exact(&mut proof).await.map_err(broken)?;
    Ok(proof)
}

crate::through!(read io: Guarded);
crate::through!(write io: Guarded);
