//! Who is at the other end of a connection, and whether that one may do what it asks for.

use forebay_rights::{Action, Caller, Need};
use forebay_types::{MountId, MountName, Result};

use super::admission::unix_now;
use super::audit::{Deed, is_audited, tell};

/// Who is at the other end.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Who has proved to be there, and what that one may.
    pub caller: Caller,
    /// `host:port`, or `unix:` with the user's number.
    pub address: String,
    /// Connected by a Unix socket, so that descriptors can be passed.
    pub unix: bool,
    /// Of the same user as this process; known of Unix sockets only.
    pub same_user: bool,
    /// The version of the protocol that both sides speak: requests are of it, and answers are to be.
    pub version: u16,
}

impl Peer {
    /// `Denied`, with what is missing, where the peer has not what is needed. What changes something, and what is refused, is
    /// told to the audit log; what processes of the cluster tell each other is not.
    pub fn may(&self, need: &Need, name_of: impl Fn(MountId) -> Option<MountName>, deed: impl FnOnce() -> Deed) -> Result<()> {
        let decided = self.caller.may(need, unix_now(), name_of);
        let tells = decided.is_err() || matches!(need.action, Action::Write | Action::Administer);
        if tells && is_audited() {
            tell(self.caller.who(), &self.address, &deed(), decided.as_ref().err());
        }
        decided
    }
}
