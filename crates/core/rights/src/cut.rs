//! What an answer of the coordinator shows to a caller whose right ends at some mounts.

use forebay_protocol::ControlReply;
use forebay_types::{Grant, MountName, Scope};

/// Takes out of an answer of the coordinator what the caller may not see: other mounts, and what is said of them.
pub fn cut(reply: &mut ControlReply, grant: &Grant) {
    let Scope::Only { mounts, temporary } = &grant.scope else { return };
    let sees = |name: &MountName| if name.is_temporary() { *temporary } else { mounts.contains(name) };
    match reply {
        ControlReply::View(view) => {
            view.mounts.retain(|mount| sees(&mount.name));
            view.pins.retain(|pin| view.mounts.iter().any(|mount| mount.id == pin.mount));
        }
        ControlReply::Status(status) => {
            status.mounts.retain(|mount| sees(&mount.mount.name));
            status.pins.retain(|path| sees(path.mount()));
            let ids: Vec<_> = status.mounts.iter().map(|mount| mount.mount.id).collect();
            for (_, _, report) in &mut status.workers {
                report.storage.retain(|(mount, _)| ids.contains(mount));
            }
        }
        ControlReply::Placement(placement) => placement.segments.retain(|segment| sees(segment.path.mount())),
        // A definition is a statement, which may name any path.
        ControlReply::Tables(tables) => tables.clear(),
        ControlReply::Failed { .. }
        | ControlReply::Unchanged
        | ControlReply::Beat { .. }
        | ControlReply::Mount(_)
        | ControlReply::Budget(_)
        | ControlReply::Done
        // Segments are numbers that say nothing of their mounts.
        | ControlReply::Routes(_)
        | ControlReply::Scheduler(_)
        | ControlReply::Tokens(_)
        | ControlReply::Caller(_)
        | ControlReply::Credentials { .. }
        | ControlReply::Unheard { .. } => {}
    }
}
