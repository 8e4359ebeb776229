//! What a put can be at best that another process has on its disk: a round trip over TCP to the smallest program that appends what comes to a file, makes
//! it durable and answers with a byte for each message.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use forebay_types::{Error, Result};

use super::{Load, Puts};

/// What is read of a connection, and made durable, at once.
const PIECE_BYTES: usize = 64 << 10;

/// Serves messages of so many bytes, one connection after the other, with a file in a folder; gives the address.
pub(crate) fn serve(folder: &Path, message_bytes: usize) -> Result<SocketAddr> {
    if message_bytes == 0 {
        return Err(Error::invalid("a message has a byte at least"));
    }
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let address = listener.local_addr()?;
    let file = File::options().append(true).create_new(true).open(folder.join("limit"))?;
    // Ends with the process.
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            if let Err(error) = answer(stream, &file, message_bytes) {
                eprintln!("the limit: {error}");
            }
        }
    });
    Ok(address)
}

fn answer(mut stream: TcpStream, mut file: &File, message_bytes: usize) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let (mut piece, mut came) = (vec![0; PIECE_BYTES], 0);
    loop {
        let read = stream.read(&mut piece)?;
        if read == 0 {
            return Ok(());
        }
        file.write_all(&piece[..read])?;
        file.sync_data()?;
        let answered = came / message_bytes;
        came += read;
        stream.write_all(&vec![1; came / message_bytes - answered])?;
    }
}

/// Sends a message as often as a load has it, for so long.
pub(super) fn ask(address: SocketAddr, message: &[u8], load: Load, length: Duration) -> Result<Puts> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let (began, mut sent, mut took) = (Instant::now(), VecDeque::new(), Vec::new());
    let mut answers = vec![0; load.askers()];
    while began.elapsed() < length {
        let more = load.askers() - sent.len();
        sent.extend(std::iter::repeat_n(Instant::now(), more));
        stream.write_all(&message.repeat(more))?;
        let read = stream.read(&mut answers)?;
        if read == 0 {
            return Err(Error::closed("the limit's server has ended"));
        }
        took.extend(sent.drain(..read).map(|sent| sent.elapsed()));
        std::thread::sleep(load.pause());
    }
    Ok(Puts::new(took, began.elapsed()))
}
