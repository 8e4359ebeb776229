use bytes::Bytes;
use forebay_protocol::{FrameKind, decode, encode};
use forebay_types::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};

use crate::Security;
use crate::batch::{Batch, OutFrame};
use crate::frame_reader::FrameReader;
use crate::link::Sink;
use crate::token::{self, Nonce, Side};

/// Longest message of a handshake: who has not proved anything yet gets no memory.
const HELLO_BYTES_MAX: u32 = 4 << 10;

/// The messages of a handshake, in their order.
#[derive(Debug, Serialize, Deserialize)]
enum Hello {
    /// The client begins.
    Client { nonce: Nonce },
    /// The server answers, and says whether the client must prove the token.
    Server { nonce: Nonce, needs_proof: bool },
    /// The client's proof; empty where it has no token or needs none.
    Proof { proof: Vec<u8> },
    /// The server's proof; empty where it has no token. Requests may follow.
    Welcome { proof: Vec<u8> },
    /// The server ends the connection, in place of any of its messages.
    Refused { kind: ErrorKind, message: String },
}

/// The client's side. `trusted` is a Unix socket whose other end runs as this user.
pub(crate) async fn greet(reader: &mut FrameReader, sink: &mut Sink, security: &Security, trusted: bool) -> Result<()> {
    let client = token::nonce()?;
    say(sink, &Hello::Client { nonce: client }).await?;
    let Hello::Server { nonce: server, needs_proof } = hear(reader).await? else { return Err(out_of_order()) };
    let token = security.token();
    if needs_proof && token.is_none() {
        return Err(Error::denied("the cluster token is missing here: set FOREBAY_TOKEN to the token of the cluster"));
    }
    let proof = token.map_or(Vec::new(), |token| token::prove(token, Side::Client, &client, &server));
    say(sink, &Hello::Proof { proof }).await?;
    let Hello::Welcome { proof } = hear(reader).await? else { return Err(out_of_order()) };
    match token {
        Some(_) if !trusted && proof.is_empty() => Err(Error::denied(
            "the server has no cluster token but this side has one: set FOREBAY_TOKEN for the server, or unset it here",
        )),
        Some(token) if !trusted && !token::verify(token, Side::Server, &client, &server, &proof) => Err(mismatch()),
        _ => Ok(()),
    }
}

/// What the server has to say at the end of a handshake.
pub(crate) struct Welcome {
    proof: Vec<u8>,
}

/// The server's side, up to the point where it lets the client in with [`welcome`] or not with [`refuse`].
pub(crate) async fn receive(reader: &mut FrameReader, sink: &mut Sink, security: &Security, trusted: bool) -> Result<Welcome> {
    let Hello::Client { nonce: client } = hear(reader).await? else { return Err(out_of_order()) };
    let server = token::nonce()?;
    let token = security.token();
    let needs_proof = token.is_some() && !trusted;
    say(sink, &Hello::Server { nonce: server, needs_proof }).await?;
    let Hello::Proof { proof } = hear(reader).await? else { return Err(out_of_order()) };
    match token {
        Some(token) if needs_proof && !token::verify(token, Side::Client, &client, &server, &proof) => Err(mismatch()),
        // Told only to who has proved the token, so that no one gets something to try tokens against.
        Some(token) if needs_proof => Ok(Welcome { proof: token::prove(token, Side::Server, &client, &server) }),
        _ => Ok(Welcome { proof: Vec::new() }),
    }
}

/// Lets the client in.
pub(crate) async fn welcome(sink: &mut Sink, welcome: Welcome) -> Result<()> {
    say(sink, &Hello::Welcome { proof: welcome.proof }).await
}

/// Tells the client why not. Also what a client of another version gets, which reads the version in the frame's header.
pub(crate) async fn refuse(sink: &mut Sink, error: &Error) -> Result<()> {
    say(sink, &Hello::Refused { kind: error.kind(), message: error.message().to_string() }).await
}

async fn say(sink: &mut Sink, hello: &Hello) -> Result<()> {
    let mut batch = Batch::default();
    batch.frames.push_back(OutFrame::new(FrameKind::Hello, 0, encode(hello), Vec::<Bytes>::new(), None)?);
    while !batch.is_empty() {
        sink.send(&mut batch).await.map_err(|error| Error::closed(format!("the handshake failed: {error}")))?;
    }
    sink.rest().await.map_err(|error| Error::closed(format!("the handshake failed: {error}")))
}

async fn hear(reader: &mut FrameReader) -> Result<Hello> {
    let Some(frame) = reader.next(HELLO_BYTES_MAX).await? else {
        return Err(Error::closed("the peer ended the connection during the handshake"));
    };
    if frame.header.kind != FrameKind::Hello || frame.header.payload_len > 0 || frame.descriptor.is_some() {
        return Err(out_of_order());
    }
    match decode(&frame.meta)? {
        Hello::Refused { kind, message } => Err(Error::new(kind, message)),
        hello => Ok(hello),
    }
}

fn mismatch() -> Error {
    Error::denied("the cluster token does not match: set FOREBAY_TOKEN to the same token on both sides")
}

fn out_of_order() -> Error {
    Error::invalid("the peer does not keep to the handshake: is it a forebay of this version?")
}
