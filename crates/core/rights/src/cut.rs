//! What an answer of the coordinator shows to a caller whose right ends at some mounts.

use forebay_protocol::{ClusterStatus, ControlReply};
use forebay_types::{Grant, MountName, Scope};

/// Takes out of an answer of the coordinator what the caller may not see: other mounts, and what is said of them.
pub fn cut(reply: &mut ControlReply, grant: &Grant) {
    let Scope::Only { mounts, temporary } = &grant.scope else { return };
    let sees = |name: &MountName| sees(mounts, *temporary, name);
    match reply {
        ControlReply::View(view) => {
            view.mounts.retain(|mount| sees(&mount.name));
            view.pins.retain(|pin| view.mounts.iter().any(|mount| mount.id == pin.mount));
        }
        ControlReply::Status(status) => cut_status(status, grant),
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

/// The same of a status alone: other mounts, their pins, what workers say of them, and reads of them.
pub fn cut_status(status: &mut ClusterStatus, grant: &Grant) {
    let Scope::Only { mounts, temporary } = &grant.scope else { return };
    let sees = |name: &MountName| sees(mounts, *temporary, name);
    status.mounts.retain(|mount| sees(&mount.mount.name));
    status.pins.retain(|path| sees(path.mount()));
    let ids: Vec<_> = status.mounts.iter().map(|mount| mount.mount.id).collect();
    for (_, _, report) in &mut status.workers {
        report.cut(|mount| ids.contains(&mount));
        debug_assert!(report.storage.iter().all(|(mount, _)| ids.contains(mount)), "of mounts that are seen alone");
        debug_assert!(report.mount_reads.iter().all(|(mount, _)| ids.contains(mount)), "and reads of these alone");
        report.warnings.retain(|warning| warning.is_for(sees));
    }
}

fn sees(mounts: &[MountName], temporary: bool, name: &MountName) -> bool {
    if name.is_temporary() { temporary } else { mounts.contains(name) }
}

#[cfg(test)]
mod tests {
    use forebay_protocol::{
        About, ClusterStatus, MountStatus, ReadCounters, StorageCounters, Warning, WorkerInfo, WorkerReport, WorkerState,
    };
    use forebay_types::{HostId, Mount, MountId, MountOptions, Role, WorkerId};

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

    #[test]
    fn what_was_read_of_other_mounts_is_in_no_sum() {
        let mount = |id: u64, name: &str| {
            let (name, url) = (name.parse().unwrap(), format!("file:///{name}"));
            let mount = Mount { id: MountId(id), name, url, options: MountOptions::default() };
            MountStatus { mount, counters: StorageCounters::default() }
        };
        let of = |times: u64| ReadCounters {
            reads: times,
            bytes_served: 10 * times,
            bytes_hit: 9 * times,
            storage_reads: 2 * times,
            storage_read_us: 3 * times,
            tier_read_us: 4 * times,
        };
        let report = WorkerReport {
            reads: 120,
            bytes_served: 1200,
            bytes_hit: 1100,
            storage_reads: 300,
            storage_read_us: 400,
            tier_read_us: 500,
            mount_reads: vec![(MountId(1), of(1)), (MountId(2), of(100)), (MountId(3), of(7))],
            ..WorkerReport::default()
        };
        let status = |names: &[&str]| {
            let workers = vec![(WorkerInfo::new(WorkerId(1), HostId("host".to_string()), ""), WorkerState::Live, report.clone())];
            let mounts = vec![mount(1, "lake"), mount(2, "secret"), mount(3, "bay")];
            let mut reply = ControlReply::Status(Box::new(ClusterStatus { mounts, workers, ..ClusterStatus::default() }));
            let scope = match names {
                [] => Scope::All,
                names => Scope::Only { mounts: names.iter().map(|name| name.parse().unwrap()).collect(), temporary: false },
            };
            cut(&mut reply, &Grant { role: Role::Read, scope, expires: None });
            let ControlReply::Status(mut status) = reply else { panic!("it is still one") };
            status.workers.remove(0).2
        };
        assert_eq!(status(&[]), report, "who may see all sees what mounts that are gone had, too");
        let seen = status(&["lake", "bay"]);
        assert_eq!(seen.mount_reads, [(MountId(1), of(1)), (MountId(3), of(7))]);
        let sums = (seen.reads, seen.bytes_served, seen.bytes_hit, seen.storage_reads, seen.storage_read_us, seen.tier_read_us);
        assert_eq!(sums, (8, 80, 72, 16, 24, 32));
        assert_eq!(status(&["none"]).bytes_served, 0);
    }
}
