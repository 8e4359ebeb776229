//! The coordinator's part in draining: who is given nothing new, and which worker has the root of the temporary namespace.

use std::time::Duration;

use forebay_protocol::ControlReply;
use forebay_types::{Error, WorkerId};

use super::event::answer;
use super::whole::failpoint;
use super::{Command, State};

impl State {
    /// A worker is to be given nothing new, or takes part again. What it holds of the cache is of no use to anybody from now
    /// on: it will stop.
    pub(super) fn drain(&mut self, now: Duration, worker: WorkerId, draining: bool) -> Result<Vec<Command>, Error> {
        let member = self.members.live_member(worker).ok_or_else(|| not_live(worker))?;
        if member.info.draining != draining {
            member.info.draining = draining;
            failpoint(format_args!("draining of {worker}"));
            match draining {
                true => self.placement.gone(now, worker),
                false => self.placement.joined(now, worker),
            }
            self.view_changed();
        }
        Ok(vec![answer(ControlReply::Done)])
    }

    /// The root of the temporary namespace is another worker's: they change turns, so that it stays there when either of them
    /// registers again, with the next coordinator too.
    pub(super) fn pass_root(&mut self, from: WorkerId, to: WorkerId) -> Result<Vec<Command>, Error> {
        let first = self.members.live().map(|(id, member)| (member.info.turn, id)).min();
        let target = self.members.live().find(|(id, _)| *id == to).map(|(_, member)| member.info.turn);
        let (Some((turn, first)), Some(other)) = (first, target) else { return Err(not_live(to)) };
        if first != from {
            return Err(Error::conflict(format!("worker {from} has the root of temporary data no more: worker {first} has")));
        }
        for (id, turn) in [(from, other), (to, turn)] {
            if let Some(member) = self.members.live_member(id) {
                member.info.turn = turn;
            }
            failpoint(format_args!("root to {id}"));
        }
        self.view_changed();
        Ok(vec![answer(ControlReply::View(self.view()))])
    }
}

fn not_live(worker: WorkerId) -> Error {
    Error::not_found(format!("worker {worker} is not in the cluster: see `forebay status`"))
}
