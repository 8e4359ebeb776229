//! A network between a worker and clients of this machine, which carries so many bytes a second each way: connections go through threads of
//! this process, whose copying is the more work the more goes over it.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Bytes that take their place on the link together: about 2.5 ms of it, within these.
const PIECE_BYTES: (u64, u64) = (16 << 10, 256 << 10);
/// Time that may be caught up after a thread was late, so that the mean rate is the set one.
const SLACK: Duration = Duration::from_millis(20);
/// So long it carries nothing when it is quiet, and so long that is waited for at most.
const QUIET: Duration = Duration::from_millis(15);
const QUIET_WITHIN: Duration = Duration::from_secs(2);

/// A link to one address, at one of its own.
pub struct Link {
    /// Where clients are to connect.
    pub address: SocketAddr,
    there: Arc<Way>,
    back: Arc<Way>,
}

/// One direction, which all connections share.
struct Way {
    bytes_per_sec: AtomicU64,
    free_at: Mutex<Instant>,
    carried: AtomicU64,
}

impl Link {
    /// Who connects to the link's address is connected to the target's; it carries what it can until it is set.
    pub fn open(target: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let way = || {
            let free_at = Mutex::new(Instant::now());
            Arc::new(Way { bytes_per_sec: AtomicU64::new(u64::MAX), free_at, carried: AtomicU64::new(0) })
        };
        let link = Self { address, there: way(), back: way() };
        let (there, back) = (Arc::clone(&link.there), Arc::clone(&link.back));
        // Ends with the process.
        thread::spawn(move || {
            for socket in listener.incoming() {
                let Ok(socket) = socket else { continue };
                // Whoever connected hears that nobody is there.
                let _ = connect(socket, target, &there, &back);
            }
        });
        Ok(link)
    }

    /// How many bytes a second it carries each way from now on.
    pub fn set(&self, bytes_per_sec: u64) {
        for way in [&self.there, &self.back] {
            way.bytes_per_sec.store(bytes_per_sec, Ordering::Relaxed);
            *way.free_at.lock() = Instant::now();
        }
    }

    /// Bytes that it has carried, both ways together.
    pub fn carried(&self) -> u64 {
        self.there.carried.load(Ordering::Relaxed) + self.back.carried.load(Ordering::Relaxed)
    }

    /// The same once nothing is on its way any more.
    pub async fn quiet(&self) -> u64 {
        let (began, mut carried) = (Instant::now(), self.carried());
        loop {
            tokio::time::sleep(QUIET).await;
            let now = self.carried();
            if now == carried || began.elapsed() > QUIET_WITHIN {
                return now;
            }
            carried = now;
        }
    }
}

fn connect(socket: TcpStream, target: SocketAddr, there: &Arc<Way>, back: &Arc<Way>) -> io::Result<()> {
    let other = TcpStream::connect(target)?;
    socket.set_nodelay(true)?;
    other.set_nodelay(true)?;
    for (way, from, to) in [(there, socket.try_clone()?, other.try_clone()?), (back, other, socket)] {
        let way = Arc::clone(way);
        thread::spawn(move || {
            // An error ends the connection, which both sides hear.
            let _ = way.carry(&from, &to);
            let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
        });
    }
    Ok(())
}

impl Way {
    fn carry(&self, mut from: &TcpStream, mut to: &TcpStream) -> io::Result<()> {
        let mut piece = vec![0; PIECE_BYTES.1 as usize];
        loop {
            let most = (self.bytes_per_sec.load(Ordering::Relaxed) / 400).clamp(PIECE_BYTES.0, PIECE_BYTES.1);
            let bytes = from.read(&mut piece[..most as usize])?;
            if bytes == 0 {
                return Ok(());
            }
            self.wait_for(bytes);
            to.write_all(&piece[..bytes])?;
            self.carried.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    }

    /// Takes the next place on the link, and waits until the piece has passed.
    fn wait_for(&self, bytes: usize) {
        let rate = self.bytes_per_sec.load(Ordering::Relaxed).max(1);
        let until = {
            let mut free_at = self.free_at.lock();
            let now = Instant::now();
            let start = (*free_at).max(now.checked_sub(SLACK).unwrap_or(now));
            *free_at = start + Duration::from_secs_f64(bytes as f64 / rate as f64);
            *free_at
        };
        thread::sleep(until.saturating_duration_since(Instant::now()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_as_they_were_sent_and_no_sooner_than_the_link_carries_them() {
        let target = TcpListener::bind("127.0.0.1:0").unwrap();
        let link = Link::open(target.local_addr().unwrap()).unwrap();
        link.set(10_000_000);
        let sent: Vec<u8> = (0..2_000_000u32).map(|at| at as u8 ^ (at >> 8) as u8).collect();
        let (expected, began) = (sent.clone(), Instant::now());
        let sending = thread::spawn(move || target.accept().unwrap().0.write_all(&sent).unwrap());
        let mut came = Vec::new();
        TcpStream::connect(link.address).unwrap().read_to_end(&mut came).unwrap();
        sending.join().unwrap();
        assert!(came == expected);
        assert!(began.elapsed() >= Duration::from_millis(150), "{:?} for 200 ms of the link", began.elapsed());
        assert_eq!(link.carried(), 2_000_000);
    }
}
