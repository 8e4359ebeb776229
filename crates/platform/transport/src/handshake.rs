//! Who is there, on both sides, before anything is asked.

use bytes::Bytes;
use forebay_protocol::{FrameKind, Spoken, decode, encode};
use forebay_rights::{Caller, Who};
use forebay_types::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};

use crate::Security;
use crate::credentials::OWNER;
use crate::credentials::admission::unknown;
use crate::credentials::token::{self, Nonce, Transcript};
use crate::frames::Sink;
use crate::frames::batch::{Batch, OutFrame};
use crate::frames::frame_reader::{FrameReader, Incoming};

/// Longest message of a handshake: who has not proved anything yet gets no memory.
const HELLO_BYTES_MAX: u32 = 4 << 10;
/// Longest name of a credential.
pub(crate) const ID_BYTES_MAX: usize = 128;

/// The messages of a handshake, in their order.
#[derive(Debug, Serialize, Deserialize)]
enum Hello {
    /// The client begins, and names what it will show; nothing on a Unix socket of its own user.
    Client { nonce: Nonce, id: String },
    /// The server answers, and proves that it knows the credential; empty where the kernel has proved both sides.
    Server { nonce: Nonce, proof: Vec<u8> },
    /// The client's proof; empty as before.
    Proof { proof: Vec<u8> },
    /// Requests may follow.
    Welcome,
    /// The server ends the connection, in place of any of its messages.
    Refused { kind: ErrorKind, message: String },
}

/// The client's side. `trusted` is a Unix socket whose other end runs as this user.
pub(crate) async fn greet(reader: &mut FrameReader, sink: &mut Sink, security: &Security, trusted: bool) -> Result<()> {
    let credential = security.shows.as_ref();
    if credential.is_none() && !trusted {
        return Err(nothing_to_show());
    }
    let client = token::nonce()?;
    let id = credential.map_or("", |credential| credential.id());
    let ours = Spoken::up_to(security.newest);
    // A server that speaks one version looks at the first, and leaves the second out.
    let begin = Hello::Client { nonce: client, id: id.to_string() };
    say_first(sink, ours.oldest, ours.tag(), &begin).await?;
    let frame = next(reader).await?;
    // It answers in the one that both are to speak.
    let version = ours.agree(Spoken::of_first(frame.header.version, 0))?;
    reader.speaks(version);
    let Hello::Server { nonce: server, proof } = read(&frame)? else { return Err(out_of_order()) };
    let said = Transcript { version, client: &client, server: &server, id };
    let own = match credential {
        Some(credential) if !proof.is_empty() => {
            if !token::is_server(credential.secret(), &said, &proof) {
                return Err(stranger());
            }
            token::prove_client(credential.secret(), &said).to_vec()
        }
        // Both are the same user's, which is as much as the owner's credential says.
        _ if trusted && is_kernels_word(id) => Vec::new(),
        _ => return Err(stranger()),
    };
    say(sink, version, &Hello::Proof { proof: own }).await?;
    if matches!(hear(reader).await?, Hello::Welcome) { Ok(()) } else { Err(out_of_order()) }
}

/// The server's side, up to the point where it lets the client in with [`welcome`] or not with [`refuse`]: from the first frame on
/// `reader` knows which version both speak.
pub(crate) async fn receive(reader: &mut FrameReader, sink: &mut Sink, security: &Security, trusted: bool) -> Result<Caller> {
    let frame = next(reader).await?;
    let theirs = Spoken::of_first(frame.header.version, frame.header.tag);
    let version = Spoken::up_to(security.newest).agree(theirs)?;
    reader.speaks(version);
    let Hello::Client { nonce: client, id } = read(&frame)? else { return Err(out_of_order()) };
    if id.len() > ID_BYTES_MAX {
        return Err(out_of_order());
    }
    let server = token::nonce()?;
    if trusted && is_kernels_word(&id) {
        say(sink, version, &Hello::Server { nonce: server, proof: Vec::new() }).await?;
        let Hello::Proof { .. } = hear(reader).await? else { return Err(out_of_order()) };
        return Ok(Caller::new(Who::Owner));
    }
    let entry = security.admits.find(&id).ok_or_else(|| unknown(&id))?;
    let said = Transcript { version, client: &client, server: &server, id: &id };
    let proof = token::prove_server(&entry.verifier.keys, &said).to_vec();
    say(sink, version, &Hello::Server { nonce: server, proof }).await?;
    let proof = hear(reader).await.map_err(|error| if error.kind() == ErrorKind::Closed { left(&id) } else { error })?;
    let Hello::Proof { proof } = proof else { return Err(out_of_order()) };
    if token::is_client(&entry.verifier.keys, &said, &proof) { Ok(entry.caller()) } else { Err(unknown(&id)) }
}

pub(crate) async fn welcome(sink: &mut Sink, version: u16) -> Result<()> {
    say(sink, version, &Hello::Welcome).await
}

/// Tells the client why not. Also what a client of another version gets, which reads the version in the frame's header.
pub(crate) async fn refuse(sink: &mut Sink, version: u16, error: &Error) -> Result<()> {
    say(sink, version, &Hello::Refused { kind: error.kind(), message: error.message().to_string() }).await
}

async fn say(sink: &mut Sink, version: u16, hello: &Hello) -> Result<()> {
    say_first(sink, version, 0, hello).await
}

async fn say_first(sink: &mut Sink, version: u16, tag: u64, hello: &Hello) -> Result<()> {
    let mut batch = Batch::default();
    batch.frames.push_back(OutFrame::new(version, FrameKind::Hello, tag, encode(hello), Vec::<Bytes>::new(), None)?);
    while !batch.is_empty() {
        sink.send(&mut batch).await.map_err(failed)?;
    }
    sink.rest().await.map_err(failed)
}

fn failed(error: std::io::Error) -> Error {
    Error::closed(format!("the handshake failed: {error}")).with_source(error)
}

async fn hear(reader: &mut FrameReader) -> Result<Hello> {
    read(&next(reader).await?)
}

async fn next(reader: &mut FrameReader) -> Result<Incoming> {
    let Some(frame) = reader.next(HELLO_BYTES_MAX).await? else {
        return Err(Error::closed("the peer ended the connection during the handshake"));
    };
    if frame.header.kind != FrameKind::Hello || frame.header.payload_len > 0 || frame.descriptor.is_some() {
        return Err(out_of_order());
    }
    Ok(frame)
}

fn read(frame: &Incoming) -> Result<Hello> {
    match decode(&frame.meta)? {
        Hello::Refused { kind, message } => Err(Error::new(kind, message)),
        hello => Ok(hello),
    }
}

/// What is named where the kernel says who both sides are.
fn is_kernels_word(id: &str) -> bool {
    id.is_empty() || id == OWNER
}

pub(crate) fn nothing_to_show() -> Error {
    Error::denied(
        "this process has nothing to show there: set FOREBAY_TOKEN, or token-file; the user who started the cluster on this machine \
         needs none",
    )
}

pub(crate) fn stranger() -> Error {
    Error::denied("the server does not know the secret of this credential: it is another cluster's, or the token is an old one")
}

/// Who leaves when it has seen the server's proof has another secret for this name.
pub(crate) fn left(id: &str) -> Error {
    Error::denied(format!("the peer has another secret for the credential {id:?}, and left"))
}

fn out_of_order() -> Error {
    Error::invalid("the peer does not keep to the handshake: is it a forebay of this version?")
}
