//! How much of a mount's bound a client may take by itself where no worker can answer it, and for how long.

use std::time::Duration;

use forebay_protocol::{BudgetLease, MountShare};
use forebay_types::{Error, MountId};

use super::State;
use super::ledger::{Holder, Wanted};
use super::shares::{BURST_BYTES_MIN, CLIENTS_PART, bound};

/// How long a client's share holds.
const LEASE: Duration = Duration::from_secs(10);
/// How long it holds when others have not given back enough yet: soon there will be more.
const SHORT_LEASE: Duration = Duration::from_secs(1);
/// Clients of one mount at once.
const CLIENTS_MAX: usize = 1000;
/// The least that a client gets: this part of the twentieth.
const LEAST_PART: u64 = 64;

impl State {
    /// A client's share of a bound. All clients together may take a twentieth of it; everything, when there is no worker
    /// that takes any.
    pub(super) fn budget(&mut self, now: Duration, client: u64, mount: MountId) -> Result<BudgetLease, Error> {
        self.ledger.expire(now);
        let mount = self.mount_by_id(mount)?;
        let (id, burst_bytes) = (mount.id, mount.options.burst_bytes().min(BURST_BYTES_MIN));
        let Some(bound) = bound(mount) else {
            let share = MountShare { mount: id, bytes_per_sec: None, burst_bytes: mount.options.burst_bytes() };
            return Ok(BudgetLease { share, lasts: LEASE });
        };
        let holder = Holder::Client(client);
        let count = self.ledger.clients(id) + usize::from(!self.ledger.holds(id, holder));
        if count > CLIENTS_MAX {
            return Err(Error::retry(format!("mount {}: {CLIENTS_MAX} clients read it directly already", mount.name)));
        }
        let alone = self.members.live().next().is_none() && !self.ledger.any_worker(id);
        let pool = if alone { bound } else { bound / CLIENTS_PART };
        // A little is left for the next one, who else would find nothing until a lease ends.
        let target = (pool / (3 * count as u64 + 1) * 3).max(1);
        let wanted = Wanted {
            holder,
            target,
            floor: (bound / CLIENTS_PART / LEAST_PART).max(1),
            // What clients leave of their pool, once the workers have given it back at their next heartbeats.
            bound: bound.min(pool + self.ledger.workers_bytes_per_sec(id)),
            until: now + LEASE,
        };
        let first = self.ledger.clients(id) == 0;
        let bytes_per_sec = self.ledger.grant(id, wanted);
        if first {
            self.targets.forget();
        }
        let lasts = if bytes_per_sec < target { SHORT_LEASE } else { LEASE };
        Ok(BudgetLease { share: MountShare { mount: id, bytes_per_sec: Some(bytes_per_sec), burst_bytes }, lasts })
    }
}
