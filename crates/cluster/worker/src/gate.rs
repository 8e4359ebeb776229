use std::collections::VecDeque;
use std::sync::Arc;

use forebay_shared_storage::Class;
use parking_lot::Mutex;
use tokio::sync::oneshot;

/// Requests for data that somebody waits for, at a time and mount: 16 of 4 MiB fill 1 Gbit/s at 30 ms many times over.
const DEMAND_MAX: usize = 16;
/// Requests for data that will be asked for, at a time and mount.
const PREFETCH_MAX: usize = 8;
/// Bytes of prefetch under way from which on nothing more is let in: all of it shares the link, so the more there is, the
/// later comes what is read first. Fills 3 Gbit/s at 30 ms.
const PREFETCH_BYTES: u64 = 12 << 20;
/// The same for a mount with a bound: what it gives in a tenth of a second, and this at least.
const PREFETCH_BYTES_MIN: u64 = 1 << 20;

/// Lets a bounded number of GETs of one mount run at a time: demand first, prefetch in order behind it.
#[derive(Debug, Default)]
pub(crate) struct Gate(Mutex<Queues>);

#[derive(Debug)]
struct Queues {
    demand_running: usize,
    prefetch_running: usize,
    prefetch_bytes: u64,
    prefetch_bytes_max: u64,
    demand: VecDeque<Waiter>,
    prefetch: VecDeque<Waiter>,
}

impl Default for Queues {
    fn default() -> Self {
        Self {
            demand_running: 0,
            prefetch_running: 0,
            prefetch_bytes: 0,
            prefetch_bytes_max: PREFETCH_BYTES,
            demand: VecDeque::new(),
            prefetch: VecDeque::new(),
        }
    }
}

#[derive(Debug)]
struct Waiter {
    id: u64,
    bytes: u64,
    admit: oneshot::Sender<Admitted>,
}

#[derive(Clone, Copy, Debug)]
struct Admitted {
    class: Class,
    bytes: u64,
}

/// One GET that may run; ends with the value.
#[derive(Debug)]
pub(crate) struct Permit {
    gate: Arc<Gate>,
    admitted: Admitted,
}

impl Permit {
    /// Under which class it was let in.
    pub(crate) fn class(&self) -> Class {
        self.admitted.class
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.gate.leave(self.admitted);
    }
}

impl Gate {
    /// Waits for a turn to get so many bytes. `id` names the transfer for [`Self::raise`].
    pub(crate) async fn enter(self: &Arc<Self>, id: u64, class: Class, bytes: u64) -> Permit {
        let (admit, admitted) = oneshot::channel();
        {
            let mut queues = self.0.lock();
            let waiter = Waiter { id, bytes, admit };
            match class {
                Class::Demand => queues.demand.push_back(waiter),
                Class::Prefetch => queues.prefetch.push_back(waiter),
            }
            queues.pump();
        }
        let mut turn = Turn { gate: self, admitted };
        let admitted = (&mut turn.admitted).await.expect("the gate drops no waiter that is still there");
        Permit { gate: Arc::clone(self), admitted }
    }

    /// Moves a transfer that waits as prefetch behind the demand that waits; nothing when it runs already.
    pub(crate) fn raise(&self, id: u64) {
        let mut queues = self.0.lock();
        if let Some(at) = queues.prefetch.iter().position(|waiter| waiter.id == id)
            && let Some(waiter) = queues.prefetch.remove(at)
        {
            queues.demand.push_back(waiter);
            queues.pump();
        }
    }

    /// The mount gives no more than this.
    pub(crate) fn set_bound(&self, bytes_per_sec: Option<u64>) {
        let bound = bytes_per_sec.map_or(PREFETCH_BYTES, |rate| (rate / 10).clamp(PREFETCH_BYTES_MIN, PREFETCH_BYTES));
        self.0.lock().prefetch_bytes_max = bound;
    }

    fn leave(&self, admitted: Admitted) {
        let mut queues = self.0.lock();
        match admitted.class {
            Class::Demand => queues.demand_running -= 1,
            Class::Prefetch => {
                queues.prefetch_running -= 1;
                queues.prefetch_bytes -= admitted.bytes;
            }
        }
        queues.pump();
    }
}

impl Queues {
    fn pump(&mut self) {
        while self.demand_running < DEMAND_MAX
            && let Some(waiter) = self.demand.pop_front()
        {
            if waiter.admit.send(Admitted { class: Class::Demand, bytes: waiter.bytes }).is_ok() {
                self.demand_running += 1;
            }
        }
        // Whoever gave up must not hold the prefetch behind it.
        self.demand.retain(|waiter| !waiter.admit.is_closed());
        while self.demand.is_empty()
            && self.prefetch_running < PREFETCH_MAX
            && self.prefetch_bytes < self.prefetch_bytes_max
            && let Some(waiter) = self.prefetch.pop_front()
        {
            if waiter.admit.send(Admitted { class: Class::Prefetch, bytes: waiter.bytes }).is_ok() {
                self.prefetch_running += 1;
                self.prefetch_bytes += waiter.bytes;
            }
        }
    }
}

/// Gives a turn back that came when nobody waited for it any more.
struct Turn<'a> {
    gate: &'a Gate,
    admitted: oneshot::Receiver<Admitted>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.admitted.close();
        // After a turn that was taken this finds nothing: the value is out of the channel.
        match self.admitted.try_recv() {
            Ok(admitted) => self.gate.leave(admitted),
            Err(_) => self.gate.0.lock().pump(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    fn try_enter(gate: &Arc<Gate>, id: u64, class: Class, bytes: u64) -> Option<Permit> {
        gate.enter(id, class, bytes).now_or_never()
    }

    #[test]
    fn demand_goes_first_and_is_bounded() {
        let gate = Arc::new(Gate::default());
        let mut running: Vec<_> = (0..DEMAND_MAX as u64).map(|id| try_enter(&gate, id, Class::Demand, 1).unwrap()).collect();
        let _early = try_enter(&gate, 100, Class::Prefetch, 1).expect("no demand waits yet");
        let mut demand = Box::pin(gate.enter(101, Class::Demand, 1));
        assert!((&mut demand).now_or_never().is_none(), "one demand too many");
        let mut late = Box::pin(gate.enter(102, Class::Prefetch, 1));
        assert!((&mut late).now_or_never().is_none(), "prefetch passed waiting demand");
        running.pop();
        assert!((&mut demand).now_or_never().is_some());
        assert!((&mut late).now_or_never().is_some());
    }

    #[test]
    fn prefetch_is_bounded_by_requests_and_bytes() {
        let gate = Arc::new(Gate::default());
        let small: Vec<_> = (0..20).map_while(|id| try_enter(&gate, id, Class::Prefetch, 1)).collect();
        assert_eq!(small.len(), PREFETCH_MAX);
        drop(small);
        let large: Vec<_> = (0..20).map_while(|id| try_enter(&gate, id, Class::Prefetch, 4 << 20)).collect();
        assert_eq!(large.len(), 3);
        drop(large);
        gate.set_bound(Some(50_000_000));
        let large: Vec<_> = (0..20).map_while(|id| try_enter(&gate, id, Class::Prefetch, 4 << 20)).collect();
        assert_eq!(large.len(), 2, "400 Mbit/s are full with two");
        drop(large);
        assert!(try_enter(&gate, 30, Class::Prefetch, 64 << 20).is_some(), "a large one alone goes through");
    }

    #[test]
    fn raised_prefetch_overtakes() {
        let gate = Arc::new(Gate::default());
        let running: Vec<_> = (0..20).map_while(|id| try_enter(&gate, id, Class::Prefetch, 1)).collect();
        let mut waiting = Box::pin(gate.enter(50, Class::Prefetch, 1));
        assert!((&mut waiting).now_or_never().is_none());
        gate.raise(50);
        assert_eq!((&mut waiting).now_or_never().unwrap().class(), Class::Demand);
        drop(running);
    }

    #[test]
    fn who_gives_up_leaves_no_turn_behind() {
        let gate = Arc::new(Gate::default());
        let mut running: Vec<_> = (0..DEMAND_MAX as u64).map(|id| try_enter(&gate, id, Class::Demand, 1).unwrap()).collect();
        let mut granted = Box::pin(gate.enter(50, Class::Demand, 1));
        let mut gone = Box::pin(gate.enter(51, Class::Demand, 1));
        assert!((&mut granted).now_or_never().is_none() && (&mut gone).now_or_never().is_none());
        let mut prefetch = Box::pin(gate.enter(52, Class::Prefetch, 1));
        assert!((&mut prefetch).now_or_never().is_none());
        drop(gone);
        running.pop();
        drop(granted);
        assert!((&mut prefetch).now_or_never().is_some(), "no demand waits any more");
        running.push(try_enter(&gate, 60, Class::Demand, 1).expect("the turn that nobody took is free again"));
        assert!(try_enter(&gate, 61, Class::Demand, 1).is_none());
    }
}
