//! Workers register, beat and leave: what is looked at of what they say, and what each of it changes.

use std::collections::BTreeMap;
use std::time::Duration;

use forebay_protocol::{ControlReply, Heartbeat, WorkerInfo, WorkerReport, WorkerState};
use forebay_types::{Error, WorkerId};

use super::event::answer;
use super::ledger::Holder;
use super::parts::{Hearing, MEMBERS_MAX, Member};
use super::shares::by_mount;
use super::whole::failpoint;
use super::{Command, State};

/// Longest text of a worker about itself, in bytes.
const TEXT_BYTES_MAX: usize = 512;
/// Bytes of a tier at most, so that all of a cluster's are a number.
const TIER_BYTES_MAX: u64 = 1 << 48;
/// New objects of one heartbeat.
const FRESH_MAX: usize = 10_000;
/// Warnings of a worker that are kept.
const WARNINGS_MAX: usize = 16;
/// Who lives beats within this, whatever the lease is: heartbeats come each second.
const BEATS_WITHIN: Duration = Duration::from_millis(1500);

impl State {
    pub(super) fn register(&mut self, now: Duration, mut info: WorkerInfo) -> Result<Vec<Command>, Error> {
        check_info(&info)?;
        let id = info.id;
        let known = self.members.by_id.get(&id);
        let before = known.filter(|member| member.state == WorkerState::Live);
        // What it had is lost to all others, and the root, if it had that, is another one's by now: it comes as a new one.
        // One that the coordinator before had not as live was lost to that one.
        let was_lost = known.is_some_and(|member| member.state == WorkerState::Lost || now > member.seen + self.lease)
            || (known.is_none() && !self.members.is_presumed(id));
        // All know its part of temporary data by its address, which is as it was. A process keeps its address: another one is another process.
        let is_restarted = before.is_some_and(|before| info.turn == 0 || before.info.address != info.address);
        // One that lives has beaten since, and comes to a coordinator that has started; one that was killed and has moved waits for that long.
        let patience = (self.lease / 2).max(BEATS_WITHIN);
        let there = match before {
            Some(before) => (now <= before.seen + patience).then_some(&before.info.address),
            None => self.members.presumed.get(&id).filter(|address| now <= patience && !address.is_empty()),
        };
        if let Some(there) = there.filter(|there| **there != info.address) {
            // Two processes would keep one lease, and both answer for the same names.
            return Err(Error::retry(format!(
                "worker {id} is live at {there}, and this is {}: where both run, one has a copy of the other's data folder, and gets an id \
                 of its own when its tiers/worker-id is deleted; one that has moved is let in when the other has been silent for a while",
                info.address
            )));
        }
        // No view without it has told the others.
        let is_loss = before.is_some() && (is_restarted || was_lost);
        if let Some(before) = before {
            // It may not have heard yet of what was decided about it.
            (info.turn, info.draining) = (before.info.turn, before.info.draining);
        }
        if was_lost {
            info.turn = 0;
        }
        if info.turn == 0 {
            // Above all that this coordinator and those before it gave, whether or not these workers are back by now.
            self.members.turns += 1;
            info.turn = (self.epoch << 32) + self.members.turns;
        }
        let is_new = is_restarted || before.is_none_or(|member| member.info != info);
        let named = before.map(|member| member.hearing.named());
        if before.is_none() && self.members.live().count() >= MEMBERS_MAX {
            return Err(Error::retry(format!("worker {id}: the cluster has its limit of {MEMBERS_MAX} workers")));
        }
        if let Some(before) = before {
            self.settling.left(id, &before.hearing);
        }
        self.members.presumed.remove(&id);
        let drains = info.draining;
        let member = Member {
            info,
            state: WorkerState::Live,
            seen: now,
            demand: BTreeMap::new(),
            ahead: BTreeMap::new(),
            background: BTreeMap::new(),
            report: WorkerReport::default(),
            hearing: Hearing::default(),
            is_first: true,
            has_left: false,
        };
        self.members.by_id.insert(id, member);
        failpoint(format_args!("registering {id}"));
        let mut commands = Vec::new();
        match drains {
            true => self.placement.gone(now, id),
            false => self.placement.joined(now, id),
        }
        if is_loss {
            self.lost();
        } else if is_new {
            self.view_changed();
        }
        if is_new {
            commands.push(Command::Remember(self.members.remembered()));
        }
        let named = named.filter(|_| !is_new).unwrap_or(self.versions.view);
        if let Some(member) = self.members.live_member(id) {
            member.hearing = Hearing::new(named);
            self.settling.joined(id, &member.hearing);
        }
        self.assume_first_shares(now, id);
        failpoint(format_args!("registered {id}"));
        commands.insert(0, answer(ControlReply::View(self.view())));
        Ok(commands)
    }

    pub(super) fn heartbeat(&mut self, now: Duration, heartbeat: Heartbeat) -> Result<Vec<Command>, Error> {
        let Heartbeat { worker, have, demand, mut report, window, ended, fresh, heard, background, ahead } = heartbeat;
        let lease = self.lease;
        let member = match self.members.live_member(worker) {
            Some(member) if now <= member.seen + lease => member,
            // Lost, even when no tick has said so yet: what was granted to it is given to others.
            _ => return Err(Error::not_found(format!("worker {worker} has no lease: register again"))),
        };
        let drains = member.info.draining;
        let is_empty = report.segments == 0 && member.is_first;
        member.is_first = false;
        report.warnings.truncate(WARNINGS_MAX);
        report.warnings.iter_mut().for_each(|warning| shorten(&mut warning.text));
        member.seen = now;
        self.settling.beats(&mut member.hearing, have, heard);
        let demand: BTreeMap<_, _> = demand.into_iter().collect();
        let demand_before = std::mem::replace(&mut member.demand, demand.clone());
        let background: BTreeMap<_, _> = background.into_iter().collect();
        let background_before = std::mem::replace(&mut member.background, background.clone());
        let ahead = by_mount(&ahead);
        let ahead_before = std::mem::replace(&mut member.ahead, ahead.clone());
        member.report = report;
        if is_empty {
            self.placement.emptied(now, worker);
        }
        failpoint(format_args!("report of {worker}"));
        if !ended.is_empty() {
            self.placement.orders_ended(now, worker, ended);
        }
        if let Some(mut window) = window {
            if drains {
                // What it still holds is no replica to count on.
                window.uses.iter_mut().for_each(|entry| entry.held_bytes = 0);
            }
            self.placement.report(now, worker, window);
        }
        for version in fresh.iter().take(FRESH_MAX) {
            if let Some(mount) = self.catalogue.mounts.get(&version.mount) {
                let (eager, has_age) = (mount.options.eager, mount.options.young.is_some());
                self.placement.fresh(now, worker, version, eager);
                if has_age {
                    self.placement.heard_of(now, version);
                }
            }
        }
        self.demand_moved(&demand_before, &demand);
        self.demand_moved(&background_before, &background);
        self.plans_moved(&ahead_before, &ahead);
        let (shares, mut wake) = self.grant_shares(now, worker);
        let view = (have != self.versions.view).then(|| self.view());
        let (window, routes) = (self.placement.window(), self.placement.routes_version());
        let orders = self.placement.orders_of(worker);
        wake.extend(self.settle());
        if self.losses.became_known(self.settling.lowest()) {
            wake.extend(self.members.live_ids());
        }
        wake.sort();
        wake.dedup();
        wake.retain(|id| *id != worker);
        let hears = self.members.live_member(worker).and_then(|member| member.hearing.tell());
        let mut commands = vec![answer(ControlReply::Beat {
            view,
            shares,
            lease,
            window,
            orders,
            routes,
            credentials: self.versions.credentials,
            hears,
            settled: self.settling.lowest(),
        })];
        if !wake.is_empty() {
            commands.push(Command::Tell(wake));
        }
        Ok(commands)
    }

    pub(super) fn leave(&mut self, now: Duration, worker: WorkerId) -> Result<Vec<Command>, Error> {
        let Some(member) = self.members.live_member(worker) else {
            // Where its lease ended while it finished what it was asked for, nobody waits for it either.
            if let Some(lost) = self.members.by_id.get_mut(&worker) {
                lost.has_left = true;
            }
            return Err(Error::not_found(format!("worker {worker} is not in the cluster")));
        };
        (member.state, member.has_left) = (WorkerState::Lost, true);
        self.settling.left(worker, &member.hearing);
        // It says so itself, and takes nothing any more: its shares are free at once.
        self.ledger.release(Holder::Worker(worker));
        failpoint(format_args!("leaving of {worker}"));
        self.placement.gone(now, worker);
        self.lost();
        Ok(vec![answer(ControlReply::Done), Command::Remember(self.members.remembered())])
    }
}

fn check_info(info: &WorkerInfo) -> Result<(), Error> {
    let texts = [Some(&info.address), Some(&info.host.0), info.unix_socket.as_ref(), Some(&info.location)];
    if texts.into_iter().flatten().any(|text| text.len() > TEXT_BYTES_MAX) {
        return Err(Error::invalid(format!(
            "worker {}: address, host, socket or location is longer than {TEXT_BYTES_MAX} bytes",
            info.id
        )));
    }
    if info.dram_bytes.max(info.disk_bytes) > TIER_BYTES_MAX {
        return Err(Error::invalid(format!("worker {}: a tier has more than {TIER_BYTES_MAX} bytes", info.id)));
    }
    let port = info.address.rsplit_once(':').and_then(|(host, port)| (!host.is_empty()).then(|| port.parse::<u16>().ok())?);
    if port.is_none_or(|port| port == 0) {
        return Err(Error::invalid(format!(
            "worker {}: {:?} is no address that others can reach: set --advertise HOST:PORT",
            info.id, info.address
        )));
    }
    Ok(())
}

fn shorten(text: &mut String) {
    if text.len() > TEXT_BYTES_MAX {
        let end = (0..=TEXT_BYTES_MAX).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
    }
}
