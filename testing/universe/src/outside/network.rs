//! The simulated network: hosts with names, connections with a delay that keep the order of their bytes, links that are slow, cut or
//! blocked in one direction or both.
//!
//! Bytes arrive when the world's driver lets them ([`Network::deliver`]), between the turns of hosts. A blocked link holds what is on
//! its way, as a sender that sends again does; after a while ([`Links::give_up`]) the connections over it are reset at both ends.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::task::{Poll, Waker};

use bytes::Bytes;
use parking_lot::Mutex;
use rand::Rng;
use rand::rngs::StdRng;
use tokio::sync::oneshot;

use super::links::Links;
use super::packet::{HostId, Packet, Pipe, PipeId, What, bit};
use super::points::Points;
use super::processes::Processes;
use crate::trace::Trace;

/// Bytes that may be on their way in one direction of a connection, or wait for its reader.
pub(super) const WINDOW_BYTES: usize = 256 << 10;
/// A packet takes so long, in microseconds.
const DELAY_US: std::ops::Range<u64> = 150..2_500;
/// One in so many takes longer, up to so long.
const LATE_ONE_IN: u32 = 200;
const LATE_US: u64 = 60_000;

/// The network of a world.
pub(crate) struct Network(Arc<Mutex<State>>);

pub(super) struct State {
    pub(super) now_us: u64,
    pub(super) hosts: Hosts,
    pub(super) processes: Processes,
    pub(super) points: Points,
    pub(super) pipes: BTreeMap<PipeId, Pipe>,
    under_way: BTreeMap<(u64, u64), Packet>,
    pub(super) links: Links,
    next: u64,
    pub(super) chance: StdRng,
    trace: Arc<Trace>,
    /// Hosts that have something to do since the last delivery, a bit each.
    pub(super) heard: u64,
    /// Bytes that were read from a host: time, host, bytes.
    pub(super) reads: Vec<(u64, HostId, u64)>,
}

/// The hosts, by their numbers.
pub(super) struct Hosts {
    names: Vec<String>,
    /// Whose code runs.
    pub(super) turn: HostId,
    /// Who listens, by address.
    listeners: BTreeMap<String, Listening>,
}

#[derive(Default)]
struct Listening {
    queue: VecDeque<(PipeId, PipeId, String)>,
    waker: Option<Waker>,
}

impl Network {
    pub(crate) fn new(names: Vec<String>, mut chance: StdRng, trace: Arc<Trace>) -> Self {
        Self(Arc::new(Mutex::new(State {
            now_us: 0,
            hosts: Hosts { names, turn: 0, listeners: BTreeMap::new() },
            processes: Processes::default(),
            points: Points::new(&mut chance),
            pipes: BTreeMap::new(),
            under_way: BTreeMap::new(),
            links: Links::default(),
            next: 0,
            chance,
            trace,
            heard: 0,
            reads: Vec::new(),
        })))
    }

    /// What all ends of it share.
    pub(super) fn state(&self) -> &Arc<Mutex<State>> {
        &self.0
    }

    /// Says whose code runs from now on.
    pub(crate) fn turn(&self, host: HostId) {
        self.0.lock().hosts.turn = host;
    }

    /// What runs is being ended without a word, or that is over.
    pub(crate) fn set_crashing(&self, crashing: bool) {
        self.0.lock().processes.crashing = crashing;
    }

    /// When the next packet arrives.
    pub(crate) fn next_us(&self) -> Option<u64> {
        self.0.lock().under_way.keys().next().map(|(at_us, _)| *at_us)
    }

    /// The hosts at which something arrives until a time, a bit each.
    pub(crate) fn hearing(&self, until_us: u64) -> u64 {
        let state = self.0.lock();
        state.under_way.range(..=(until_us, u64::MAX)).fold(0, |hosts, (_, packet)| hosts | bit(packet.to))
    }

    /// The time is `now_us`: lets everything arrive that is due. The hosts that have something to do by now, a bit each.
    pub(crate) fn deliver(&self, now_us: u64) -> u64 {
        let mut state = self.0.lock();
        state.now_us = now_us;
        state.give_up();
        while let Some(first) = state.under_way.first_entry() {
            if first.key().0 > now_us {
                break;
            }
            let packet = first.remove();
            state.arrive(packet);
        }
        std::mem::take(&mut state.heard)
    }

    /// Lets nothing through from one host to another, from now on.
    pub(crate) fn block(&self, from: HostId, to: HostId) {
        let mut state = self.0.lock();
        let now_us = state.now_us;
        state.links.block((from, to), now_us);
    }

    /// Lets everything through again, what was held first.
    pub(crate) fn unblock(&self, from: HostId, to: HostId) {
        let mut state = self.0.lock();
        let held = state.links.unblock((from, to));
        held.into_iter().for_each(|packet| state.send(packet));
    }

    /// Adds so much to what a packet takes from one host to another.
    pub(crate) fn slow(&self, from: HostId, to: HostId, by_us: u64) {
        self.0.lock().links.slow((from, to), by_us);
    }

    /// Breaks every connection between two hosts.
    pub(crate) fn cut(&self, a: HostId, b: HostId) {
        self.0.lock().reset_between(a, b);
    }

    /// Bytes that anybody has read from a host, with the times.
    pub(crate) fn read_from(&self, host: HostId) -> Vec<(u64, u64)> {
        self.0.lock().reads.iter().filter(|(_, from, _)| *from == host).map(|(at_us, _, bytes)| (*at_us, *bytes)).collect()
    }
}

impl State {
    /// The name of the host whose turn it is.
    pub(super) fn host(&self) -> String {
        self.hosts.names[self.hosts.turn].clone()
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn delay_us(&mut self, from: HostId, to: HostId) -> u64 {
        let late_us = if self.chance.random_ratio(1, LATE_ONE_IN) { self.chance.random_range(0..LATE_US) } else { 0 };
        self.chance.random_range(DELAY_US) + late_us + self.links.slow_us((from, to))
    }

    pub(super) fn send(&mut self, packet: Packet) {
        let mut at_us = self.now_us + self.delay_us(packet.from, packet.to);
        if let What::Data(pipe, _) | What::End(pipe) = &packet.what
            && let Some(pipe) = self.pipes.get_mut(pipe)
        {
            at_us = at_us.max(pipe.last_at_us);
            pipe.last_at_us = at_us;
        }
        let number = self.number();
        self.under_way.insert((at_us, number), packet);
    }

    fn arrive(&mut self, packet: Packet) {
        let Packet { from, to, what } = packet;
        self.heard |= bit(to);
        if self.links.is_blocked((from, to)) {
            if let What::Open(_, there, _) = &what {
                // Nobody will take it, so nobody there closes it either.
                self.close(*there);
            }
            match what {
                What::Open(_, _, heard) | What::Opened(heard, _) if self.links.refuses((from, to)) => {
                    drop(heard.send(Err(io::ErrorKind::ConnectionRefused.into())));
                }
                // Nothing is heard of it, until whoever waits has waited for long enough; who wants it tries again.
                What::Open(..) | What::Opened(..) => std::mem::forget(what),
                what => self.links.hold(Packet { from, to, what }),
            }
            return;
        }
        if let What::Data(pipe, _) = what
            && self.links.loses((from, to), self.now_us, &mut self.chance)
        {
            self.trace.packet(self.now_us, "lost", &self.hosts.names[from], &self.hosts.names[to], &[]);
            return self.reset(pipe);
        }
        let (kind, bytes) = match &what {
            What::Open(..) => ("open", &[][..]),
            What::Opened(_, done) => (if done.is_ok() { "opened" } else { "refused" }, &[][..]),
            What::Data(_, bytes) => ("data", &bytes[..]),
            What::End(_) => ("end", &[][..]),
            What::Reset(_) => ("reset", &[][..]),
        };
        self.trace.packet(self.now_us, kind, &self.hosts.names[from], &self.hosts.names[to], bytes);
        match what {
            What::Open(at, pipe, heard) => self.open(&at, pipe, heard),
            What::Opened(heard, done) => drop(heard.send(done)),
            What::Data(pipe, bytes) => self.data(pipe, bytes),
            What::End(pipe) => {
                if let Some(pipe) = self.pipes.get_mut(&pipe) {
                    pipe.is_ended = true;
                    pipe.wake();
                }
            }
            What::Reset(pipe) => self.reset(pipe),
        }
    }

    fn open(&mut self, at: &str, pipe: PipeId, heard: oneshot::Sender<io::Result<()>>) {
        let Some(Pipe { from, to, back, .. }) = self.pipes.get(&pipe) else { return };
        let (from, to, back) = (*from, *to, *back);
        let done = match self.hosts.listeners.get_mut(at) {
            Some(listening) => {
                listening.queue.push_back((pipe, back, format!("{}:{pipe}", self.hosts.names[from])));
                if let Some(waker) = listening.waker.take() {
                    waker.wake();
                }
                Ok(())
            }
            None => {
                self.close(pipe);
                Err(io::ErrorKind::ConnectionRefused.into())
            }
        };
        self.send(Packet { from: to, to: from, what: What::Opened(heard, done) });
    }

    fn data(&mut self, id: PipeId, bytes: Bytes) {
        let Some(pipe) = self.pipes.get_mut(&id) else { return };
        if pipe.is_closed {
            let (from, to) = (pipe.to, pipe.from);
            self.send(Packet { from, to, what: What::Reset(id) });
        } else {
            pipe.arrived.push_back(bytes);
            pipe.wake();
        }
    }

    /// Both directions are over, for both ends.
    fn reset(&mut self, id: PipeId) {
        let back = self.pipes.get(&id).map(|pipe| pipe.back);
        for id in [Some(id), back].into_iter().flatten() {
            if let Some(pipe) = self.pipes.get_mut(&id) {
                pipe.is_reset = true;
                self.heard |= bit(pipe.from) | bit(pipe.to);
                pipe.arrived.clear();
                pipe.wake();
            }
        }
    }

    fn reset_between(&mut self, a: HostId, b: HostId) {
        let between = |pipe: &Pipe| (pipe.from, pipe.to) == (a, b) || (pipe.from, pipe.to) == (b, a);
        let ids: Vec<_> = self.pipes.iter().filter(|(_, pipe)| between(pipe)).map(|(id, _)| *id).collect();
        ids.into_iter().for_each(|id| self.reset(id));
    }

    fn give_up(&mut self) {
        for (from, to) in self.links.give_up(self.now_us) {
            self.reset_between(from, to);
        }
    }

    /// A connection from the host whose turn it is: what its end reads and writes, and where it hears how that went.
    pub(super) fn connect(&mut self, to: &str) -> io::Result<(PipeId, PipeId, oneshot::Receiver<io::Result<()>>)> {
        let name = to.rsplit_once(':').map_or(to, |(name, _)| name);
        let host = self.hosts.names.iter().position(|known| known == name);
        let host = host.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("there is no host {name}")))?;
        if self.processes.is_without_descriptors(self.hosts.turn) {
            return Err(io::Error::from_raw_os_error(libc::EMFILE));
        }
        let (from, there, back) = (self.hosts.turn, self.number(), self.number());
        self.pipes.insert(there, Pipe::new(from, host, back));
        self.pipes.insert(back, Pipe::new(host, from, there));
        let (heard, hears) = oneshot::channel();
        self.send(Packet { from, to: host, what: What::Open(to.to_owned(), there, heard) });
        Ok((back, there, hears))
    }

    /// The host whose turn it is listens at `at`; where that is.
    pub(super) fn bind(&mut self, at: &str) -> io::Result<String> {
        let (name, port) = at.rsplit_once(':').ok_or(io::ErrorKind::InvalidInput)?;
        if self.hosts.names[self.hosts.turn] != name {
            return Err(io::ErrorKind::AddrNotAvailable.into());
        }
        let port = if port == "0" { (40_000 + self.number() % 20_000).to_string() } else { port.to_owned() };
        let address = format!("{name}:{port}");
        if self.hosts.listeners.contains_key(&address) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        self.hosts.listeners.insert(address.clone(), Listening::default());
        Ok(address)
    }

    /// The next connection that came in: what its end reads and writes, and who it is from.
    pub(super) fn accept(&mut self, at: &str, waker: &Waker) -> Poll<io::Result<(PipeId, PipeId, String)>> {
        let Some(listening) = self.hosts.listeners.get_mut(at) else {
            return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
        };
        if listening.queue.is_empty() {
            listening.waker = Some(waker.clone());
            return Poll::Pending;
        }
        if self.processes.is_without_descriptors(self.hosts.turn) {
            return Poll::Ready(Err(io::Error::from_raw_os_error(libc::EMFILE)));
        }
        Poll::Ready(Ok(listening.queue.pop_front().expect("somebody has come")))
    }

    /// Nobody listens there any more; those who came are turned away.
    pub(super) fn unbind(&mut self, at: &str) {
        let waiting = self.hosts.listeners.remove(at).map(|listening| listening.queue).unwrap_or_default();
        for (reads, _, _) in waiting {
            self.reset(reads);
            self.close(reads);
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn nothing_is_left_of_a_connection_that_nobody_takes() {
        let (names, trace) = (vec!["one".to_owned(), "other".to_owned()], Arc::new(Trace::new(false)));
        let network = Network::new(names, StdRng::seed_from_u64(7), trace);
        for (at_us, is_blocked, gives_up_first) in [(1, false, false), (2, false, true), (3, true, false), (4, true, true)]
            .map(|(at, blocked, first)| (at * 1_000_000, blocked, first))
        {
            if is_blocked {
                network.block(0, 1);
            }
            network.turn(0);
            let (reads, writes, _hears) = network.state().lock().connect("other:7411").unwrap();
            let give_up = || {
                let mut state = network.state().lock();
                state.finish(writes);
                state.close(reads);
            };
            if gives_up_first {
                give_up();
            }
            network.deliver(at_us);
            if !gives_up_first {
                give_up();
            }
            assert!(network.state().lock().pipes.is_empty(), "at {at_us}");
        }
    }
}
