//! The protocol by hand, as docs/specs/protocol.md has it, in the version before this build's: for peers that don't keep to it.

use ring::{digest, hmac};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// The owner's, where nothing else is said.
pub const SECRET: &str = "a secret of ours";

pub const REQUEST: u8 = 0;
pub const REPLY: u8 = 1;
pub const NOTICE: u8 = 3;
pub const HELLO: u8 = 4;

/// A frame's header and message.
pub fn frame(kind: u8, tag: u64, meta: &[u8], payload_len: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend((meta.len() as u32).to_le_bytes());
    bytes.extend(payload_len.to_le_bytes());
    bytes.extend(tag.to_le_bytes());
    bytes.extend([kind, 0, 8, 0]);
    bytes.extend([0; 4]);
    let crc = forebay_types::crc32c_append(forebay_types::crc32c(&bytes), meta);
    bytes.extend(crc.to_le_bytes());
    bytes.extend(meta);
    bytes
}

/// A frame with its payload, and the payload's checksum as it is said.
pub fn frame_with(kind: u8, tag: u64, meta: &[u8], payload: &[u8], payload_crc: u32) -> Vec<u8> {
    let mut bytes = frame(kind, tag, meta, payload.len() as u32);
    bytes[20..24].copy_from_slice(&payload_crc.to_le_bytes());
    let crc = forebay_types::crc32c_append(forebay_types::crc32c(&bytes[..24]), meta);
    bytes[24..28].copy_from_slice(&crc.to_le_bytes());
    bytes.extend(payload);
    bytes
}

/// The same with another version in its header.
pub fn frame_of_version(version: u16, kind: u8, meta: &[u8]) -> Vec<u8> {
    let mut bytes = frame(kind, 0, meta, 0);
    bytes[18..20].copy_from_slice(&version.to_le_bytes());
    let crc = forebay_types::crc32c_append(forebay_types::crc32c(&bytes[..24]), meta);
    bytes[24..28].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// Receives a frame: (kind, tag, message).
pub async fn receive(stream: &mut TcpStream) -> (u8, u64, Vec<u8>) {
    let (header, message) = receive_header(stream).await;
    (header[16], u64::from_le_bytes(header[8..16].try_into().unwrap()), message)
}

/// Receives a frame: (header, message).
pub async fn receive_header(stream: &mut TcpStream) -> ([u8; 28], Vec<u8>) {
    let mut header = [0; 28];
    stream.read_exact(&mut header).await.unwrap();
    let len = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().unwrap()) as usize;
    let mut rest = vec![0; len(0) + len(4)];
    stream.read_exact(&mut rest).await.unwrap();
    rest.truncate(len(0));
    (header, rest)
}

fn mac(key: &[u8], message: &[u8]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), message).as_ref().to_vec()
}

fn transcript(label: &[u8], client: &[u8], server: &[u8]) -> Vec<u8> {
    [label, &[0, 8, 0], client, server, b"owner"].concat()
}

/// The server's proof to the owner of [`SECRET`].
fn server_proof(client: &[u8], server: &[u8]) -> Vec<u8> {
    mac(&mac(SECRET.as_bytes(), b"forebay server key"), &transcript(b"forebay server proof", client, server))
}

/// The owner's proof.
fn client_proof(client: &[u8], server: &[u8]) -> Vec<u8> {
    let key = mac(SECRET.as_bytes(), b"forebay client key");
    let stored = digest::digest(&digest::SHA256, &key);
    let mask = mac(stored.as_ref(), &transcript(b"forebay client proof", client, server));
    key.iter().zip(mask).map(|(key, mask)| key ^ mask).collect()
}

/// A client's first message.
pub fn hello() -> Vec<u8> {
    [&[0], [7; 32].as_slice(), &[5], b"owner"].concat()
}

/// A client that has passed the handshake.
pub async fn client(address: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    say(&mut stream, &hello()).await;
    let said = hear(&mut stream).await;
    assert_eq!((said.len(), said[0], said[33]), (66, 1, 32));
    assert_eq!(said[34..], server_proof(&[7; 32], &said[1..33]));
    say(&mut stream, &[&[2, 32], client_proof(&[7; 32], &said[1..33]).as_slice()].concat()).await;
    assert_eq!(hear(&mut stream).await, [3]);
    stream
}

/// A server that passes the handshake with the one client that comes, and leaves the rest to `then`.
pub async fn server<F: Future<Output = ()> + Send>(
    then: impl FnOnce(TcpStream) -> F + Send + 'static,
) -> (String, tokio::task::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let task = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let said = hear(&mut stream).await;
        assert_eq!((said.len(), said[0], &said[33..]), (39, 0, &b"\x05owner"[..]));
        let proof = server_proof(&said[1..33], &[9; 32]);
        say(&mut stream, &[&[1], [9; 32].as_slice(), &[32], &proof].concat()).await;
        assert_eq!(hear(&mut stream).await, [&[2, 32], client_proof(&said[1..33], &[9; 32]).as_slice()].concat());
        say(&mut stream, &[3]).await;
        then(stream).await;
    });
    (address, task)
}

pub async fn say(stream: &mut TcpStream, message: &[u8]) {
    stream.write_all(&frame(HELLO, 0, message, 0)).await.unwrap();
}

/// Receives one. The tag of a client's first says what it speaks beside, which peers that speak one version leave out.
pub async fn hear(stream: &mut TcpStream) -> Vec<u8> {
    let (kind, _, message) = receive(stream).await;
    assert_eq!(kind, HELLO);
    message
}
