//! The smallest program that a call can be made to: it takes so many bytes from a plain socket and gives so many, and has nothing of
//! Forebay.

use std::ffi::OsStr;
use std::io::{ErrorKind, Read, Result, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use forebay_bench_harness::Served;

use crate::plain::Plain;

/// Messages that are answered together at most, and bytes that are taken at a time.
const TOGETHER_MAX: usize = 16;
const BUFFER_BYTES: usize = 64 << 10;
/// What a message has without a value: about as much as a key.
pub const SMALL: usize = 64;
/// Said with the bytes of a message: whether they have come is looked for again and again, and never waited for.
const POLLS: u32 = 1 << 31;

/// Either kind of socket.
trait Peer: Read + Write {
    fn never_wait(&self) -> Result<()>;
}

impl Peer for TcpStream {
    fn never_wait(&self) -> Result<()> {
        self.set_nonblocking(true)
    }
}

impl Peer for UnixStream {
    fn never_wait(&self) -> Result<()> {
        self.set_nonblocking(true)
    }
}

/// It, in a process of its own.
pub struct Echo {
    _served: Served,
    port: u16,
    socket: PathBuf,
    _folder: tempfile::TempDir,
}

impl Echo {
    pub fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("echo.sock");
        let (served, port) = Served::start([OsStr::new("--echo"), socket.as_os_str()]).unwrap();
        Self { _served: served, port: port.parse().unwrap(), socket, _folder: folder }
    }

    /// A connection on which so many messages go together, each of so many bytes and answered by so many.
    pub fn plain(&self, sizes: (usize, usize), together: usize, unix: bool) -> Plain {
        self.connect(sizes, 0, together, unix)
    }

    /// The same to one that polls as long as the connection is there.
    pub fn polling(&self, sizes: (usize, usize), together: usize, unix: bool) -> Plain {
        self.connect(sizes, POLLS, together, unix)
    }

    fn connect(&self, (request, answer): (usize, usize), polls: u32, together: usize, unix: bool) -> Plain {
        assert!(together <= TOGETHER_MAX);
        let sizes = [request as u32 | polls, answer as u32].map(u32::to_le_bytes).concat();
        let mut plain = Plain::connect(self.port, &self.socket, unix).of(sizes, 0);
        plain.ask();
        plain.of(vec![7; request * together], answer * together)
    }
}

/// Answers over TCP and by a Unix socket, one connection of each at a time; says the port, and ends with its parent.
pub fn serve(socket: &Path) {
    let (tcp, unix) = (TcpListener::bind("127.0.0.1:0").unwrap(), UnixListener::bind(socket).unwrap());
    println!("{}", tcp.local_addr().unwrap().port());
    std::thread::spawn(move || {
        for peer in tcp.incoming() {
            let peer = peer.unwrap();
            peer.set_nodelay(true).unwrap();
            // Whoever asks ends it.
            let _ = answer(peer);
        }
    });
    std::thread::spawn(move || unix.incoming().for_each(|peer| _ = answer(peer.unwrap())));
    let _ = std::io::read_to_string(std::io::stdin());
}

fn answer(mut peer: impl Peer) -> Result<()> {
    let mut sizes = [0; 8];
    peer.read_exact(&mut sizes)?;
    let [request, bytes] = [&sizes[..4], &sizes[4..]].map(|size| u32::from_le_bytes(size.try_into().unwrap()));
    if request & POLLS != 0 {
        peer.never_wait()?;
    }
    let (request, bytes) = ((request & !POLLS) as usize, bytes as usize);
    let (mut buffer, answers) = (vec![0; BUFFER_BYTES], vec![7; bytes * TOGETHER_MAX]);
    let mut taken = 0;
    loop {
        match peer.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(read) => taken += read,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                std::hint::spin_loop();
                continue;
            }
            Err(error) => return Err(error),
        }
        peer.write_all(&answers[..taken / request * bytes])?;
        taken %= request;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn messages_are_answered_one_by_one_though_they_come_in_parts() {
        [0, POLLS].into_iter().for_each(in_parts);
    }

    fn in_parts(polls: u32) {
        let (mut here, there) = UnixStream::pair().unwrap();
        here.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let answering = std::thread::spawn(move || answer(there));
        here.write_all(&[(4 | polls).to_le_bytes(), 6_u32.to_le_bytes()].concat()).unwrap();
        let mut ask = |bytes: usize, answers: usize| {
            here.write_all(&vec![1; bytes]).unwrap();
            here.read_exact(&mut vec![0; 6 * answers]).unwrap();
        };
        // One and a half, then what is left of three.
        ask(6, 1);
        ask(6, 2);
        here.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(here.read(&mut [0]).unwrap(), 0, "nothing more came");
        answering.join().unwrap().unwrap();
    }
}
