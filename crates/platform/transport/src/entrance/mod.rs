//! Where connections wait that have not said who they are.

mod introduced;
mod seldom;
mod served;
mod spare;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

pub use introduced::{Heard, Introduced};
pub use seldom::Seldom;
pub use served::{Counted, Served, connections_max, some_descriptors};
pub use spare::Spare;

/// Connections that have not shown yet who they are, and more where a port serves more.
const PLACES: usize = 256;
/// A connection has so long to itself; after that it gives way to others that come.
const GRACE: Duration = Duration::from_secs(1);

/// Where connections are until they have passed the handshake, so that who says nothing takes no place of those who have. When it is
/// full, who has waited longest gives way, of the host that has most of them here.
#[derive(Clone)]
pub struct Entrance(Arc<Mutex<Waiting>>);

impl Default for Entrance {
    fn default() -> Self {
        Self::with_places(PLACES)
    }
}

struct Waiting {
    places: usize,
    next: u64,
    /// By the order of coming.
    connections: Vec<Waiter>,
}

struct Waiter {
    number: u64,
    host: String,
    since: Instant,
    give_way: CancellationToken,
}

/// A connection's place in an [`Entrance`], until this is dropped.
pub struct Place {
    entrance: Entrance,
    number: u64,
    give_way: CancellationToken,
}

impl Entrance {
    /// Of a port that serves so many connections: with places for a quarter as many, and 256 at least.
    pub fn of_port(serves: usize) -> Self {
        Self::with_places(PLACES.max(serves / 4))
    }

    fn with_places(places: usize) -> Self {
        Self(Arc::new(Mutex::new(Waiting { places, next: 0, connections: Vec::new() })))
    }

    /// A place for a connection from this address, which is a `host:port` or another name; waits for one a moment when all are taken by
    /// others that have just come.
    pub async fn enter(&self, address: &str) -> Place {
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
        loop {
            let pause = match self.try_enter(host) {
                Ok(place) => return place,
                Err(pause) => pause,
            };
            forebay_runtime::time::sleep(pause).await;
        }
    }

    /// A place, or when one may be free.
    fn try_enter(&self, host: &str) -> Result<Place, Duration> {
        let mut waiting = self.0.lock();
        if waiting.connections.len() >= waiting.places {
            let at = waiting.oldest_of_the_most();
            let waited = waiting.connections[at].since.elapsed();
            if waited < GRACE {
                return Err((GRACE - waited).min(GRACE / 10));
            }
            let gone = waiting.connections.remove(at);
            tracing::debug!(host = gone.host, "a connection that does not finish the handshake gives way to others");
            gone.give_way.cancel();
        }
        let (number, give_way) = (waiting.next, CancellationToken::new());
        waiting.next += 1;
        waiting.connections.push(Waiter {
            number,
            host: host.to_string(),
            since: forebay_runtime::now(),
            give_way: give_way.clone(),
        });
        Ok(Place { entrance: self.clone(), number, give_way })
    }
}

impl Waiting {
    /// The longest waiting connection of the host that has most of them.
    fn oldest_of_the_most(&self) -> usize {
        let mut by_host: HashMap<&str, (usize, usize)> = HashMap::new();
        for (at, waiter) in self.connections.iter().enumerate() {
            by_host.entry(&waiter.host).or_insert((0, at)).0 += 1;
        }
        by_host.values().max_by_key(|(count, at)| (*count, std::cmp::Reverse(*at))).map_or(0, |(_, at)| *at)
    }
}

impl Place {
    /// Waits until it has to give way to another connection.
    pub async fn gives_way(&self) {
        self.give_way.cancelled().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.entrance.0.lock().connections.retain(|waiter| waiter.number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_host_with_most_gives_way_and_only_after_a_moment() {
        let entrance = Entrance::default();
        let mut places = vec![entrance.enter("10.0.0.1:1").await];
        for port in 1..PLACES {
            places.push(entrance.enter(&format!("10.0.0.2:{port}")).await);
        }
        let began = forebay_runtime::now();
        let late = entrance.enter("10.0.0.3:1").await;
        assert!(began.elapsed() >= GRACE * 8 / 10, "they had a moment first");
        assert!(!places[0].give_way.is_cancelled(), "the oldest of all is its host's only one");
        assert!(places[1].give_way.is_cancelled() && !places[2].give_way.is_cancelled());
        places[1].gives_way().await;
        drop((places, late));
        assert_eq!(entrance.0.lock().connections.len(), 0);
    }
}
