//! What a simulation puts in the place of the outside, for all that runs on its thread.
//!
//! In production nothing is put here, and who connects, listens or begins something asks once whether there is: no call on a
//! connection that stands does.

use std::cell::RefCell;
use std::future::Future;
use std::io;
use std::net::Shutdown;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};

thread_local! {
    static NETWORK: RefCell<Option<Arc<dyn Network>>> = const { RefCell::new(None) };
}

/// A network that is not the system's, with its hosts' names, and how late their disks are.
pub trait Network: Send + Sync {
    /// Connects to `host:port`, as the host whose turn it is.
    fn connect(&self, to: &str) -> Connecting;
    /// Listens at `host:port`, which must be of the host whose turn it is; port 0 takes any free one.
    fn bind(&self, at: &str) -> io::Result<Box<dyn Accepts>>;
    /// The name of the host whose turn it is.
    fn host(&self) -> String;
    /// How much longer work on the disk of that host takes.
    fn disk_late(&self) -> Duration;
    /// Whether that happens at a place of the code which is rare and allowed there.
    fn happens(&self, place: &'static str) -> bool;
    /// Whether the process whose turn it is has ended: it is still run, and nothing of what it does is to have an effect.
    fn has_ended(&self) -> bool;
}

/// A connection on its way.
pub type Connecting = Pin<Box<dyn Future<Output = io::Result<Wire>> + Send>>;

/// A place where connections of such a network come in.
pub trait Accepts: Send + Sync {
    /// Where that is, as `host:port`.
    fn local_address(&self) -> String;
    /// The next connection, and the `host:port` that it is from.
    fn poll_accept(&self, context: &mut Context<'_>) -> Poll<io::Result<(Wire, String)>>;
}

/// One end of a connection of such a network.
pub struct Wire {
    /// Its bytes.
    pub bytes: Box<dyn Duplex>,
    /// Ends it, from anywhere.
    pub hangup: Arc<dyn Fn(Shutdown) + Send + Sync>,
}

/// What bytes go over both ways.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// From now on this thread's connections are of `network`, and all that would run on a thread of its own runs on this one, until
/// what this gives is dropped.
#[must_use = "the simulation ends when this is dropped"]
pub fn simulate(network: Arc<dyn Network>) -> Simulation {
    NETWORK.set(Some(network));
    Simulation(())
}

/// A thread that is all of the world there is.
#[derive(Debug)]
pub struct Simulation(());

impl Drop for Simulation {
    fn drop(&mut self) {
        NETWORK.set(None);
    }
}

/// Whether this thread simulates.
pub fn is_simulated() -> bool {
    NETWORK.with_borrow(Option::is_some)
}

/// This host's name in a simulation, where all hosts are one machine's.
pub fn host() -> Option<String> {
    NETWORK.with_borrow(|network| network.as_ref().map(|network| network.host()))
}

/// How much longer work on this host's disk takes: none but in a simulation.
pub fn disk_late() -> Duration {
    NETWORK.with_borrow(|network| network.as_ref().map_or(Duration::ZERO, |network| network.disk_late()))
}

/// Whether that happens here which is rare and allowed at this place: now and then in a simulation, and never else. Not for places that are
/// passed often.
pub fn happens(place: &'static str) -> bool {
    NETWORK.with_borrow(|network| network.as_ref().is_some_and(|network| network.happens(place)))
}

/// Takes so long where [`happens`] says so.
pub async fn lingers(place: &'static str, by: Duration) {
    if happens(place) {
        crate::time::sleep(by).await;
    }
}

/// Whether this process has ended, in a simulation.
pub fn has_ended() -> bool {
    NETWORK.with_borrow(|network| network.as_ref().is_some_and(|network| network.has_ended()))
}

pub(crate) fn network() -> Option<Arc<dyn Network>> {
    NETWORK.with_borrow(Clone::clone)
}
