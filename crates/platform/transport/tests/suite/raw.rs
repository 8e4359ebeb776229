//! The protocol by hand, as docs/specs/protocol.md has it, for peers that don't keep to it.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

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
    bytes.extend([kind, 0, 6, 0]);
    let crc = crc32c::crc32c_append(crc32c::crc32c(&bytes), meta);
    bytes.extend(crc.to_le_bytes());
    bytes.extend(meta);
    bytes
}

/// The same with another version in its header.
pub fn frame_of_version(version: u16, kind: u8, meta: &[u8]) -> Vec<u8> {
    let mut bytes = frame(kind, 0, meta, 0);
    bytes[18..20].copy_from_slice(&version.to_le_bytes());
    let crc = crc32c::crc32c_append(crc32c::crc32c(&bytes[..20]), meta);
    bytes[20..24].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// Receives a frame: (kind, tag, message).
pub async fn receive(stream: &mut TcpStream) -> (u8, u64, Vec<u8>) {
    let mut header = [0; 24];
    stream.read_exact(&mut header).await.unwrap();
    let len = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().unwrap()) as usize;
    let mut rest = vec![0; len(0) + len(4)];
    stream.read_exact(&mut rest).await.unwrap();
    rest.truncate(len(0));
    (header[16], u64::from_le_bytes(header[8..16].try_into().unwrap()), rest)
}

/// A client that has passed the handshake with a server that has no token.
pub async fn client(address: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(&frame(HELLO, 0, &[&[0], [7; 32].as_slice()].concat(), 0)).await.unwrap();
    let (kind, _, hello) = receive(&mut stream).await;
    assert_eq!((kind, hello.len(), hello[0], hello[33]), (HELLO, 34, 1, 0));
    stream.write_all(&frame(HELLO, 0, &[2, 0], 0)).await.unwrap();
    assert_eq!(receive(&mut stream).await, (HELLO, 0, vec![3, 0]));
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
        let (kind, _, hello) = receive(&mut stream).await;
        assert_eq!((kind, hello.len(), hello[0]), (HELLO, 33, 0));
        stream.write_all(&frame(HELLO, 0, &[&[1], [9; 32].as_slice(), &[0]].concat(), 0)).await.unwrap();
        assert_eq!(receive(&mut stream).await, (HELLO, 0, vec![2, 0]));
        stream.write_all(&frame(HELLO, 0, &[3, 0], 0)).await.unwrap();
        then(stream).await;
    });
    (address, task)
}
