//! The smallest server that large messages can be sent to: takes them from any number of connections, each a length of 32 bits and as many
//! bytes, drops them, and answers each with a byte. It has nothing of Forebay. Prints its port, and ends with its input.

use std::io::{self, Write};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;

/// Bytes that are taken at a time.
const BUFFER_BYTES: usize = 64 << 10;

fn main() -> io::Result<()> {
    std::thread::spawn(|| {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        std::process::exit(0);
    });
    Runtime::new()?.block_on(serve())
}

async fn serve() -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let mut stdout = io::stdout();
    writeln!(stdout, "{}", listener.local_addr()?.port())?;
    stdout.flush()?;
    loop {
        let (peer, _) = listener.accept().await?;
        tokio::spawn(drained(peer));
    }
}

/// Takes what comes by a connection until it ends.
async fn drained(mut peer: TcpStream) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let mut left = peer.read_u32_le().await? as usize;
        while left > 0 {
            let most = left.min(BUFFER_BYTES);
            match peer.read(&mut buffer[..most]).await? {
                0 => return Ok(()),
                taken => left -= taken,
            }
        }
        peer.write_all(&[1]).await?;
    }
}
