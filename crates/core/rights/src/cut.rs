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
                debug_assert!(report.storage.iter().all(|(mount, _)| ids.contains(mount)), "of mounts that are seen alone");
                report.warnings.retain(|warning| warning.is_for(sees));
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

#[cfg(test)]
mod tests {
    use forebay_protocol::{About, ClusterStatus, Warning, WorkerInfo, WorkerReport, WorkerState};
    use forebay_types::{HostId, Role, WorkerId};

    use super::*;

    #[test]
    fn what_is_wrong_with_other_mounts_is_not_seen() {
        let name = |name: &str| name.parse::<MountName>().unwrap();
        let warnings = vec![
            Warning::of_mount(&name("lake"), "/lake/x: no answer"),
            Warning::of_mount(&name("secret"), "/secret/lake: no answer"),
            Warning::of_worker("disk tier: writing is paused".to_string()),
            Warning { text: "mount lake: as a worker of the version before says it".to_string(), about: About::Unsaid },
        ];
        let info = WorkerInfo::new(WorkerId(1), HostId("host".to_string()), "127.0.0.1:7401");
        let status = |grant: &Grant| {
            let report = WorkerReport { warnings: warnings.clone(), ..WorkerReport::default() };
            let workers = vec![(info.clone(), WorkerState::Live, report)];
            let mut reply = ControlReply::Status(Box::new(ClusterStatus { workers, ..ClusterStatus::default() }));
            cut(&mut reply, grant);
            let ControlReply::Status(status) = reply else { panic!("it is still one") };
            status.workers[0].2.warnings.clone()
        };
        assert_eq!(status(&Grant::everywhere(Role::Read)), warnings);
        let scope = Scope::Only { mounts: vec![name("lake")], temporary: false };
        assert_eq!(status(&Grant { role: Role::Read, scope, expires: None }), [warnings[0].clone(), warnings[2].clone()]);
    }
}
