use std::collections::VecDeque;
use std::sync::Arc;

use forebay_shared_storage::Class;
use parking_lot::Mutex;
use tokio::sync::oneshot;

/// Requests for data that somebody waits for, at a time and mount: 16 of 4 MiB fill 1 Gbit/s at 30 ms many times over.
const DEMAND_MAX: usize = 16;
/// Requests for data that will be asked for, at a time and mount.
const PREFETCH_MAX: usize = 8;

/// Lets a bounded number of GETs of one mount run at a time: demand first, prefetch in order behind it.
#[derive(Debug, Default)]
pub(crate) struct Gate(Mutex<Queues>);

#[derive(Debug, Default)]
struct Queues {
    running: [usize; 2],
    demand: VecDeque<Waiter>,
    prefetch: VecDeque<Waiter>,
}

#[derive(Debug)]
struct Waiter {
    id: u64,
    admit: oneshot::Sender<Class>,
}

/// One GET that may run; ends with the value.
#[derive(Debug)]
pub(crate) struct Permit {
    gate: Arc<Gate>,
    class: Class,
}

impl Permit {
    /// Under which class it was let in.
    pub(crate) fn class(&self) -> Class {
        self.class
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.gate.leave(self.class);
    }
}

impl Gate {
    /// Waits for a turn. `id` names the transfer for [`Self::raise`].
    pub(crate) async fn enter(self: &Arc<Self>, id: u64, class: Class) -> Permit {
        let (admit, admitted) = oneshot::channel();
        {
            let mut queues = self.0.lock();
            let waiter = Waiter { id, admit };
            match class {
                Class::Demand => queues.demand.push_back(waiter),
                Class::Prefetch => queues.prefetch.push_back(waiter),
            }
            queues.pump();
        }
        let mut turn = Turn { gate: self, admitted };
        let class = (&mut turn.admitted).await.expect("the gate drops no waiter that is still there");
        Permit { gate: Arc::clone(self), class }
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

    fn leave(&self, class: Class) {
        let mut queues = self.0.lock();
        queues.running[class as usize] -= 1;
        queues.pump();
    }
}

impl Queues {
    fn pump(&mut self) {
        while self.running[Class::Demand as usize] < DEMAND_MAX
            && let Some(waiter) = self.demand.pop_front()
        {
            self.admit(waiter, Class::Demand);
        }
        // Whoever gave up must not hold the prefetch behind it.
        self.demand.retain(|waiter| !waiter.admit.is_closed());
        while self.demand.is_empty()
            && self.running[Class::Prefetch as usize] < PREFETCH_MAX
            && let Some(waiter) = self.prefetch.pop_front()
        {
            self.admit(waiter, Class::Prefetch);
        }
    }

    fn admit(&mut self, waiter: Waiter, class: Class) {
        if waiter.admit.send(class).is_ok() {
            self.running[class as usize] += 1;
        }
    }
}

/// Gives a turn back that came when nobody waited for it any more.
struct Turn<'a> {
    gate: &'a Gate,
    admitted: oneshot::Receiver<Class>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.admitted.close();
        // After a turn that was taken this finds nothing: the value is out of the channel.
        match self.admitted.try_recv() {
            Ok(class) => self.gate.leave(class),
            Err(_) => self.gate.0.lock().pump(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[tokio::test]
    async fn demand_goes_first_and_is_bounded() {
        let gate = Arc::new(Gate::default());
        let mut running: Vec<_> = Vec::new();
        for id in 0..DEMAND_MAX as u64 {
            running.push(gate.enter(id, Class::Demand).now_or_never().unwrap());
        }
        let _early = gate.enter(100, Class::Prefetch).now_or_never().expect("no demand waits yet");
        let mut demand = Box::pin(gate.enter(101, Class::Demand));
        assert!((&mut demand).now_or_never().is_none(), "one demand too many");
        let mut late = Box::pin(gate.enter(102, Class::Prefetch));
        assert!((&mut late).now_or_never().is_none(), "prefetch passed waiting demand");
        running.pop();
        assert!((&mut demand).now_or_never().is_some());
        assert!((&mut late).now_or_never().is_some());
    }

    #[tokio::test]
    async fn raised_prefetch_overtakes() {
        let gate = Arc::new(Gate::default());
        let running: Vec<_> =
            (0..PREFETCH_MAX as u64).map(|id| gate.enter(id, Class::Prefetch).now_or_never().unwrap()).collect();
        let mut waiting = Box::pin(gate.enter(50, Class::Prefetch));
        assert!((&mut waiting).now_or_never().is_none());
        gate.raise(50);
        assert_eq!((&mut waiting).now_or_never().unwrap().class(), Class::Demand);
        drop(running);
    }

    #[tokio::test]
    async fn who_gives_up_leaves_no_turn_behind() {
        let gate = Arc::new(Gate::default());
        let mut running: Vec<_> =
            (0..DEMAND_MAX as u64).map(|id| gate.enter(id, Class::Demand).now_or_never().unwrap()).collect();
        let mut granted = Box::pin(gate.enter(50, Class::Demand));
        let mut gone = Box::pin(gate.enter(51, Class::Demand));
        assert!((&mut granted).now_or_never().is_none() && (&mut gone).now_or_never().is_none());
        drop(gone);
        running.pop();
        drop(granted);
        for id in 60..61 {
            running.push(gate.enter(id, Class::Demand).now_or_never().expect("the turn that nobody took is free again"));
        }
        assert!(gate.enter(62, Class::Demand).now_or_never().is_none());
    }
}
