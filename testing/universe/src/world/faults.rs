//! Doing what a plan says, and undoing it when its time is over.

use forebay_demo::Fault as StoreFault;

use super::host::set_clock;
use super::plan::{COORDINATOR, Fault, STORE};
use super::run::World;
use super::what::{Disk, What};
use crate::outside::disks::{self, Trouble};
use crate::outside::packet::HostId;

/// A process that is to end behind some packets and does not send as many ends after this time.
const ENDS_WITHIN_US: u64 = 100_000;

impl World<'_> {
    pub(super) fn strike(&mut self, fault: &Fault) {
        self.trace.event(self.now_us, format_args!("fault {:?} for {} ms", fault.what, fault.for_ms));
        set_clock(self.now_us, 0);
        let at_us = self.course.calls.recorder.now_us();
        // The gateway has nothing of the cluster's.
        let of_gateway = self.plan.gateway().is_some_and(|gateway| fault.what.process() == Some(gateway));
        if fault.what.may_lose() && !of_gateway && !self.plan.is_of_queries(&fault.what) {
            self.faults.losses.workers.push(at_us);
            self.course.may_lose();
        }
        if matches!(fault.what, What::Cut { .. }) {
            self.faults.losses.cuts.push(at_us);
        }
        match &fault.what {
            What::Crash { host, with_host, disk } => {
                self.network.ends_behind(*host, self.plan.packets_before(fault));
                self.go_on_until(ENDS_WITHIN_US, |world| world.network.has_ended());
                if *with_host {
                    self.isolate(*host, true);
                }
                self.hosts[*host].crash(self.now_us);
                self.network.forget_ended();
                match disk {
                    Disk::Lost if *host != COORDINATOR => self.lose_disk(*host),
                    Disk::Rotten if *host != COORDINATOR => self.rot_disk(*host),
                    Disk::Kept if *host != COORDINATOR && *with_host => self.lose_power(*host),
                    _ => {}
                }
            }
            What::Stop { host } => self.hosts[*host].stop(),
            What::Partition { a, b } => {
                self.faults.wrong.block(&self.network, *a, *b);
                self.faults.wrong.block(&self.network, *b, *a);
            }
            What::Split { side, all_reach, breaks } => {
                for (from, to) in self.plan.across(side, all_reach) {
                    self.faults.wrong.block(&self.network, from, to);
                    if *breaks {
                        self.network.cut(from, to);
                        self.network.set_refusing(from, to, true);
                    }
                }
            }
            What::OneWay { from, to } => self.faults.wrong.block(&self.network, *from, *to),
            What::Cut { a, b } => self.network.cut(*a, *b),
            What::Breaks { a, b, one_in } => self.network.set_breaking(*a, *b, *one_in, true),
            What::SlowLink { a, b, by_ms } => {
                self.faults.wrong.slow(&self.network, *a, *b, (by_ms * 1000) as i64);
                self.faults.wrong.slow(&self.network, *b, *a, (by_ms * 1000) as i64);
            }
            What::SlowStore { by_ms } => self.faults.wrong.store_later(&self.shared.server, *by_ms as i64),
            What::StoreRefuses { requests } => self.shared.server.inject(StoreFault::Status(503), *requests),
            What::StoreLosesAnswers { requests } => self.shared.server.inject(StoreFault::LoseAnswer, *requests),
            What::StoreBreaksOff { requests, after_bytes } => {
                self.shared.server.inject(StoreFault::CutAfter(*after_bytes), *requests);
            }
            What::DiskRots { host } => self.rot_disk(*host),
            What::DiskFails { .. } | What::DiskFull { .. } | What::NoFiles { .. } | What::DiskSlow { .. } => {
                self.trouble(&fault.what, disks::begin)
            }
            What::ClockJumps { host, by_ms } => self.hosts[*host].jump(*by_ms),
            What::ClockDrifts { host, by_ppm } => self.hosts[*host].drift(*by_ppm),
            What::ReadsNothing { host } => self.network.set_deaf(*host, true),
            What::NoDescriptors { host } => self.network.set_without_descriptors(*host, true),
            What::MetadataAway => self.faults.wrong.metadata_away(&self.shared.metadata, true),
        }
    }

    /// A fault's time is over.
    pub(super) fn heal(&mut self, fault: &Fault) {
        self.trace.event(self.now_us, format_args!("over {:?}", fault.what));
        match &fault.what {
            What::Crash { host, with_host, .. } => {
                if *with_host {
                    self.isolate(*host, false);
                }
                if !self.hosts[*host].is_up() {
                    self.start(*host);
                }
            }
            What::Stop { host } => self.hosts[*host].go_on(self.now_us),
            What::Partition { a, b } => {
                self.faults.wrong.unblock(&self.network, *a, *b);
                self.faults.wrong.unblock(&self.network, *b, *a);
            }
            What::Split { side, all_reach, .. } => {
                for (from, to) in self.plan.across(side, all_reach) {
                    self.network.set_refusing(from, to, false);
                    self.faults.wrong.unblock(&self.network, from, to);
                }
            }
            What::OneWay { from, to } => self.faults.wrong.unblock(&self.network, *from, *to),
            What::Breaks { a, b, one_in } => self.network.set_breaking(*a, *b, *one_in, false),
            What::SlowLink { a, b, by_ms } => {
                self.faults.wrong.slow(&self.network, *a, *b, -((by_ms * 1000) as i64));
                self.faults.wrong.slow(&self.network, *b, *a, -((by_ms * 1000) as i64));
            }
            What::SlowStore { by_ms } => self.faults.wrong.store_later(&self.shared.server, -(*by_ms as i64)),
            // Those that have not struck.
            What::StoreRefuses { .. } | What::StoreLosesAnswers { .. } | What::StoreBreaksOff { .. } => {
                self.shared.server.clear_faults()
            }
            What::Cut { .. } | What::DiskRots { .. } => {}
            What::DiskFails { .. } | What::DiskFull { .. } | What::NoFiles { .. } | What::DiskSlow { .. } => {
                self.trouble(&fault.what, disks::end)
            }
            What::ClockJumps { host, by_ms } => self.hosts[*host].jump(-by_ms),
            What::ClockDrifts { host, by_ppm } => self.hosts[*host].drift(-by_ppm),
            What::ReadsNothing { host } => self.network.set_deaf(*host, false),
            What::NoDescriptors { host } => self.network.set_without_descriptors(*host, false),
            What::MetadataAway => self.faults.wrong.metadata_away(&self.shared.metadata, false),
        }
    }

    /// Trouble of a disk begins or ends.
    fn trouble(&self, what: &What, change: fn(HostId, Trouble)) {
        match *what {
            What::DiskFails { host, reads: true, one_in } => change(host, Trouble::FailsReads { one_in }),
            What::DiskFails { host, reads: false, one_in } => change(host, Trouble::FailsWrites { one_in }),
            What::DiskFull { host } => change(host, Trouble::Full),
            What::NoFiles { host } => change(host, Trouble::NoFiles),
            What::DiskSlow { host, by_ms } => change(host, Trouble::Late { by_ms }),
            _ => unreachable!("no trouble of a disk"),
        }
    }

    /// Cuts a host off from all others, or no longer.
    fn isolate(&mut self, host: HostId, isolated: bool) {
        for other in (STORE..self.hosts.len()).filter(|other| *other != host) {
            for (from, to) in [(host, other), (other, host)] {
                if isolated {
                    self.faults.wrong.block(&self.network, from, to)
                } else {
                    self.faults.wrong.unblock(&self.network, from, to)
                }
            }
        }
    }
}
