//! What a replica's queue says: averages, and whether they call for a change.

use super::outcome::Memory;
use crate::settings::Settings;
use crate::snapshot::Replica;

/// What a replica's queue calls for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    New,
    Building,
    Steady,
    Spike,
    Draining,
    High,
    Calm,
}

/// A replica's averages and what follows from them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    pub(super) memory: Memory,
    pub(super) signal: Signal,
    /// Microseconds that a request waits, on average and by the queue as it is now.
    pub(super) wait_us: f64,
    pub(super) wait_now_us: f64,
}

impl Reading {
    /// Reads a replica's queue; `before` is what is remembered of it.
    pub(super) fn of(settings: &Settings, replica: &Replica<'_>, before: Option<&Memory>) -> Self {
        let mut memory = averaged(settings, replica, before);
        let service_us = replica.curve.service_us(replica.level);
        let (wait_us, wait_now_us) = (memory.queue * service_us, f64::from(replica.queue) * service_us);
        let high = wait_now_us > settings.upper_us();
        let calm = wait_us < settings.lower_us() && !replica.is_building();
        memory.high_periods = if high && !replica.is_building() { memory.high_periods.saturating_add(1) } else { 0 };
        memory.calm_periods = if calm { memory.calm_periods.saturating_add(1) } else { 0 };
        let mut reading = Self { memory, signal: Signal::Steady, wait_us, wait_now_us };
        reading.signal = match before {
            _ if replica.is_building() => Signal::Building,
            None => Signal::New,
            Some(_) if high && wait_us <= settings.upper_us() => Signal::Spike,
            Some(_) if high && reading.drains(settings, replica) => Signal::Draining,
            Some(_) if high => Signal::High,
            Some(_) if calm => Signal::Calm,
            Some(_) => Signal::Steady,
        };
        reading
    }

    /// The share of its time that the replica would be busy at `level`, under the load that comes on average.
    pub(super) fn load(&self, settings: &Settings, replica: &Replica<'_>, level: u32) -> f64 {
        self.memory.arrivals * replica.curve.service_us(level) / (settings.period_secs * 1e6)
    }

    /// Whether the queue will be gone in time by itself, and didn't have that time already.
    fn drains(&self, settings: &Settings, replica: &Replica<'_>) -> bool {
        let spare = 1.0 - self.load(settings, replica, replica.level);
        spare > 0.0
            && self.wait_now_us / spare <= settings.drain_secs * 1e6
            && self.memory.high_periods <= settings.drain_periods()
    }
}

/// BlowFish, section 4: Q_avg = β·Q + (1-β)·Q_avg, and the arrivals alike.
fn averaged(settings: &Settings, replica: &Replica<'_>, before: Option<&Memory>) -> Memory {
    let (queue, arrived) = (f64::from(replica.queue), f64::from(replica.arrived));
    let Some(before) = before else { return Memory { queue, arrivals: arrived, ..Memory::default() } };
    let mix = |new: f64, old: f64| settings.beta * new + (1.0 - settings.beta) * old;
    Memory { queue: mix(queue, before.queue), arrivals: mix(arrived, before.arrivals), ..*before }
}
