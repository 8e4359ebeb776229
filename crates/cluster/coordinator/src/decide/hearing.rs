//! Who may answer from what it knows from now on, and who is to forget what it knew since somebody could not tell it of a change.

use forebay_protocol::ControlReply;
use forebay_types::{Error, WorkerId};

use super::event::answer;
use super::{Command, State};

impl State {
    /// Lets those hear of whom every live worker knows by now; gives them.
    ///
    /// A worker that came under this coordinator may write while one of the coordinator before, which has not come back yet,
    /// still answers from what it knows: nobody hears, and so nobody's write is acknowledged, before its lease is over.
    pub(super) fn settle(&mut self) -> Vec<WorkerId> {
        if self.members.presumed().next().is_some() {
            return Vec::new();
        }
        let settled = self.settling.settled();
        for id in &settled {
            let Some(member) = self.members.live_member(*id) else { continue };
            assert!(member.hearing.number.is_none(), "who settles has no number yet");
            self.versions.doubts += 1;
            (member.hearing.number, member.hearing.is_told) = (Some(self.versions.doubts), false);
        }
        settled
    }

    /// Someone could not tell `worker` of a change: it is to forget what it knew before now. `Done` once it can't answer
    /// from that any more.
    pub(super) fn unheard(&mut self, worker: WorkerId, number: Option<u64>) -> Result<Vec<Command>, Error> {
        if self.members.is_presumed(worker) {
            return Err(Error::retry(format!(
                "worker {worker} has not come back to this coordinator, and its lease is not over"
            )));
        }
        let next = self.versions.doubts + 1;
        let Some(hearing) = self.members.live_member(worker).map(|member| &mut member.hearing) else {
            return Ok(vec![answer(ControlReply::Done)]);
        };
        if hearing.number.is_none() || number.is_some_and(|number| hearing.has_forgotten(number)) {
            return Ok(vec![answer(ControlReply::Done)]);
        }
        // One that no beat has carried yet is as good for everybody who asks until then.
        if number.is_none() && hearing.is_told {
            (hearing.number, hearing.is_told) = (Some(next), false);
            self.versions.doubts = next;
        }
        let number = number.or(hearing.number).unwrap_or(next);
        Ok(vec![answer(ControlReply::Unheard { number }), Command::Tell(vec![worker])])
    }
}
