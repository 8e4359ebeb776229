//! The answering side of all rings of a server: one thread looks at them while anything comes.

use std::sync::atomic::{AtomicBool, Ordering::*, fence};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use forebay_types::Error;
use parking_lot::{Condvar, Mutex};
use tokio::runtime::Handle;

use super::slots::{Found, Request, Slots};

/// How long the thread polls without finding anything before it sleeps; and how close two calls must come for it to wake, so
/// that it doesn't spin between calls that are further apart.
const SPIN: Duration = Duration::from_micros(100);
/// Polls between two glances at the clock, by which others that share the core have their turn.
const POLLS: u32 = 16;
/// Requests of one ring before the next one has its turn.
const TURN: u32 = 16;
/// Rings that are polled; more clients are served by their sockets.
const RINGS_MAX: usize = 64;

/// Who answers what comes by a ring.
pub(crate) trait Answers: Send + Sync {
    /// Whether it takes another request now. When not, the seat is told later ([`Seat::go_on`]).
    fn takes(self: Arc<Self>, seat: &Arc<Seat>) -> bool;

    /// Answers a request; must not block.
    fn answer(self: Arc<Self>, slots: &Slots, call: u64, request: Request);

    /// The client breaks the protocol.
    fn broken(&self, error: Error);
}

/// A client's place among those whose rings are polled.
pub(crate) struct Seat {
    slots: Slots,
    answers: Weak<dyn Answers>,
    state: Mutex<Turn>,
    rings: Arc<Shared>,
    /// When a request came by the socket that the ring could have carried.
    last: Mutex<Option<Instant>>,
}

struct Turn {
    /// Number of the next call.
    next: u64,
    /// Takes no requests until [`Seat::go_on`].
    held: bool,
    left: bool,
}

/// The rings of a server and the thread that polls them, which begins with the first one. Dropping this ends it.
pub(crate) struct Rings {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    woken: Condvar,
    asleep: AtomicBool,
}

#[derive(Default)]
struct State {
    seats: Vec<Arc<Seat>>,
    /// Grows when seats come or go.
    changes: u64,
    wake: bool,
    stop: bool,
}

impl Rings {
    pub(crate) fn new() -> Self {
        Self { shared: Arc::default(), thread: Mutex::new(None) }
    }

    /// Takes a ring in. None when there are too many, or the system gives no thread.
    pub(crate) fn seat(&self, slots: Slots, answers: Weak<dyn Answers>) -> Option<Arc<Seat>> {
        let mut thread = self.thread.lock();
        let mut state = self.shared.state.lock();
        if state.seats.len() >= RINGS_MAX || state.stop {
            return None;
        }
        if thread.is_none() {
            let (shared, runtime) = (Arc::clone(&self.shared), Handle::current());
            let started = std::thread::Builder::new().name("rings".into()).spawn(move || {
                // What calls spawn belongs to the server's runtime.
                let _entered = runtime.enter();
                shared.run();
            });
            match started {
                Ok(started) => *thread = Some(started),
                Err(error) => {
                    tracing::warn!(%error, "no thread for rings: clients of this host are served by their sockets");
                    return None;
                }
            }
        }
        let turn = Mutex::new(Turn { next: 0, held: false, left: false });
        let rings = Arc::clone(&self.shared);
        let seat = Arc::new(Seat { slots, answers, state: turn, rings, last: Mutex::new(None) });
        state.seats.push(Arc::clone(&seat));
        state.changes += 1;
        Some(seat)
    }
}

impl Drop for Rings {
    fn drop(&mut self) {
        self.shared.state.lock().stop = true;
        self.shared.wake();
        if let Some(thread) = self.thread.get_mut().take()
            && thread.thread().id() != std::thread::current().id()
        {
            // It never blocks; it failed only by a defect that it has reported.
            let _ = thread.join();
        }
    }
}

impl Seat {
    /// A request came by the socket that the ring could have carried. When another one came just before, more will.
    pub(crate) fn came_by_socket(&self) {
        let now = forebay_runtime::now();
        let before = self.last.lock().replace(now);
        if before.is_some_and(|before| now - before < SPIN) {
            self.rings.wake();
        }
    }

    /// Takes requests again.
    pub(crate) fn go_on(&self) {
        self.state.lock().held = false;
        self.rings.wake();
    }

    /// Gives the place up: no request is taken any more when this returns.
    pub(crate) fn leave(self: &Arc<Self>) {
        self.state.lock().left = true;
        self.slots.set_awake(false);
        let mut state = self.rings.state.lock();
        state.seats.retain(|seat| !Arc::ptr_eq(seat, self));
        state.changes += 1;
        drop(state);
        self.rings.wake();
    }

    /// Answers what there is; whether there was anything.
    fn poll(self: &Arc<Self>) -> bool {
        let mut any = false;
        for _ in 0..TURN {
            let mut turn = self.state.lock();
            if turn.held || turn.left || !self.slots.has(turn.next) {
                break;
            }
            let Some(answers) = self.answers.upgrade() else { break };
            any = true;
            turn.held = !Arc::clone(&answers).takes(self);
            if turn.held {
                break;
            }
            let call = turn.next;
            match self.slots.take(call) {
                Ok(Found::Nothing) => break,
                Ok(Found::Withdrawn) => turn.next += 1,
                Ok(Found::Request(request)) => {
                    turn.next += 1;
                    answers.answer(&self.slots, call, request);
                }
                Err(error) => {
                    turn.left = true;
                    answers.broken(error);
                }
            }
        }
        any
    }
}

impl Shared {
    /// Has the thread poll, if it sleeps.
    fn wake(&self) {
        fence(SeqCst);
        if self.asleep.load(Relaxed) {
            self.state.lock().wake = true;
            self.woken.notify_one();
        }
    }

    fn run(&self) {
        let mut seats: Vec<Arc<Seat>> = Vec::new();
        let mut known = u64::MAX;
        while self.sleep() {
            loop {
                {
                    let state = self.state.lock();
                    if state.stop {
                        return;
                    }
                    if state.changes != known {
                        known = state.changes;
                        seats.clone_from(&state.seats);
                    }
                }
                seats.iter().for_each(|seat| seat.slots.set_awake(true));
                let ended = self.poll(&seats, known);
                seats.iter().for_each(|seat| seat.slots.set_awake(false));
                // What was put in before its client could see this.
                let late = seats.iter().fold(false, |any, seat| any | seat.poll());
                if ended && !late {
                    break;
                }
            }
        }
    }

    /// Polls until there is nothing for a while (true), or there are other seats than `known`.
    fn poll(&self, seats: &[Arc<Seat>], known: u64) -> bool {
        let mut last = forebay_runtime::now();
        loop {
            let mut any = false;
            for _ in 0..POLLS {
                for seat in seats {
                    any |= seat.poll();
                }
                std::hint::spin_loop();
            }
            if any {
                last = forebay_runtime::now();
            } else if last.elapsed() > SPIN {
                return true;
            } else {
                std::thread::yield_now();
            }
            let state = self.state.lock();
            if state.stop || state.changes != known {
                return false;
            }
        }
    }

    /// Waits to be woken; false when it is over.
    fn sleep(&self) -> bool {
        let mut state = self.state.lock();
        self.asleep.store(true, Relaxed);
        fence(SeqCst);
        while !state.wake && !state.stop {
            self.woken.wait(&mut state);
        }
        self.asleep.store(false, Relaxed);
        state.wake = false;
        !state.stop
    }
}
