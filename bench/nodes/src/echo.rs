//! What a small call can be at best: a plain socket whose other end, a process of its own, answers as many bytes without looking at them.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};

use forebay_bench_harness::Served;

use crate::redis::{Plain, Stream};

/// Bytes of a get's frame, which a value that is put adds to, and of a put's answer, which a value that is got adds to.
const REQUEST_BYTES: usize = 72;
const ANSWER_BYTES: usize = 40;
/// Bytes that are read at once.
const BUFFER_BYTES: usize = 64 << 10;

/// The other end's process.
pub struct Echo {
    address: String,
    unix: bool,
    request: usize,
    answer: usize,
    _folder: tempfile::TempDir,
    _served: Served,
}

impl Echo {
    /// One that answers as `get` or `set` of values of so many bytes are answered.
    pub fn start(test: &str, bytes: usize, unix: bool) -> Self {
        let (put, got) = if test == "set" { (bytes, 0) } else { (0, bytes) };
        let (request, answer) = (REQUEST_BYTES + put, ANSWER_BYTES + got);
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("echo.sock").display().to_string();
        let listen = if unix { socket.as_str() } else { "127.0.0.1:0" };
        let (served, address) = Served::start(["--echo", listen, &request.to_string(), &answer.to_string()]).unwrap();
        Self { address, unix, request, answer, _folder: folder, _served: served }
    }

    /// A connection, and so many requests together.
    pub fn plain(&self, together: usize) -> Plain {
        let stream: Box<dyn Stream> = match self.unix {
            true => Box::new(UnixStream::connect(&self.address).unwrap()),
            false => {
                let stream = TcpStream::connect(&self.address).unwrap();
                stream.set_nodelay(true).unwrap();
                Box::new(stream)
            }
        };
        Plain::over(stream, self.request * together, self.answer * together)
    }
}

/// Runs the other end: says where it listens, and answers `answer` bytes to each `request` bytes, until it is killed.
pub fn serve(listen: &str, request: usize, answer: usize) {
    if listen.starts_with('/') {
        let listener = UnixListener::bind(listen).unwrap();
        println!("{listen}");
        listener.incoming().for_each(|stream| each(stream.unwrap(), request, answer));
    } else {
        let listener = TcpListener::bind(listen).unwrap();
        println!("{}", listener.local_addr().unwrap());
        listener.incoming().for_each(|stream| {
            let stream = stream.unwrap();
            stream.set_nodelay(true).unwrap();
            each(stream, request, answer);
        });
    }
}

/// Answers one connection, to its end.
fn each(mut stream: impl Read + Write, request: usize, answer: usize) {
    let (mut asked, answers) = (vec![0; BUFFER_BYTES], vec![0; (BUFFER_BYTES / request + 1) * answer]);
    let mut begun = 0;
    while let Ok(read @ 1..) = stream.read(&mut asked) {
        begun += read;
        let whole = begun / request;
        begun %= request;
        if stream.write_all(&answers[..whole * answer]).is_err() {
            return;
        }
    }
}
