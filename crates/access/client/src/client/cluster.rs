//! Who this client is, and who else is there.

use forebay_protocol::{ControlCall, ControlReply, ControlRequest, MemberRequest};
use forebay_types::{CallerInfo, Result, Verifier};

use super::Client;
use crate::connect::unexpected;

impl Client {
    /// Whether the coordinator is there: `Retry` when it has not answered for three of this client's polls, a minute by default. Waits
    /// for nothing.
    pub fn check_coordinator(&self) -> Result<()> {
        self.rooms.routes.view.check_heard()
    }

    /// Where the scheduler of distributed SQL is; none when there is none.
    pub async fn scheduler(&self) -> Result<Option<String>> {
        self.about_scheduler(ControlRequest::Scheduler.into()).await
    }

    /// Says where the scheduler of distributed SQL is, which is the caller: known for one lease, so that it says so every second.
    /// Answers which one is known from now on: another one, as long as that is there.
    /// `Denied` to who is no process of the cluster.
    pub async fn serve_as_scheduler(&self, serves: String) -> Result<Option<String>> {
        self.about_scheduler(MemberRequest::Scheduler { serves }.into()).await
    }

    async fn about_scheduler(&self, call: ControlCall) -> Result<Option<String>> {
        match self.control(call).await? {
            ControlReply::Scheduler(address) => Ok(address),
            _ => Err(unexpected("the coordinator", "scheduler")),
        }
    }

    /// What a process of the cluster checks the proofs of those who come to it against.
    pub async fn credentials(&self) -> Result<Vec<Verifier>> {
        match self.control(MemberRequest::Credentials).await? {
            ControlReply::Credentials { verifiers, .. } => Ok(verifiers),
            _ => Err(unexpected("the coordinator", "credentials")),
        }
    }

    /// Who this client is to the coordinator.
    pub async fn who_am_i(&self) -> Result<CallerInfo> {
        match self.control(ControlRequest::WhoAmI).await? {
            ControlReply::Caller(caller) => Ok(caller),
            _ => Err(unexpected("the coordinator", "who am I")),
        }
    }
}
