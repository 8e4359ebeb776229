//! How much of the DRAM tier decoded columns may take: `core/navigation` weighs them against cached blocks, by what both have saved lately.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use forebay_block_store::{Regret, TierUsage};
use forebay_navigation::{Owned, Weighing, aged, last_bytes, margin, weigh};
use forebay_placement::{FormCandidate, FormCosts, FormRoom};
use forebay_types::{BLOCK_BYTES, Owner, format_bytes};
use parking_lot::Mutex;

use crate::signals::{Margin, Seen};

/// How often both are weighed: what found no room is tried again within this time.
const WEIGH_EVERY: Duration = Duration::from_secs(20);
/// Each of both keeps one part of the tier of so many.
const LEAST: u64 = 16;
/// Columns that leave more than one part of so many of their room are not short of it, and nobody has less for room that is not taken.
const FREE: u64 = 8;

/// What is told of the room of columns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Told {
    pub(crate) bytes: u64,
    /// Seconds that each byte more of columns, and of cached blocks, would save in a second.
    pub(crate) saves: (f64, f64),
}

/// The room of columns, and what is measured for it.
#[derive(Default)]
pub(super) struct Room {
    state: Mutex<State>,
    /// Bytes that readers had of columns since the start, how often, and microseconds of all of these reads.
    read_bytes: AtomicU64,
    reads: AtomicU64,
    read_us: AtomicU64,
}

#[derive(Default)]
struct State {
    /// Bytes of columns, of so many that both shared: they keep their part of what temporary data leaves. None until it was weighed.
    part: Option<(u64, u64)>,
    weighed: Option<Instant>,
    blocks: Margin,
    columns: Columns,
    weighing: Weighing,
}

/// What columns save.
#[derive(Default)]
struct Columns {
    /// Seconds that reading a byte decoded saves, on average of what was made lately.
    saved_a_byte: f64,
    /// What those that only lacked room would save in a second, and their bytes, since the last look.
    missed: (f64, u64),
    /// At the last look.
    returned: u64,
    read_bytes: u64,
    /// Seconds that a byte more would save in a second by what has come back, and by what found no room; and a byte on average.
    by_returned: f64,
    by_missed: f64,
    mean: f64,
}

/// The DRAM tier at one time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tier {
    /// What cached blocks and columns share: temporary data has the rest.
    shared_bytes: u64,
    form_bytes: u64,
    /// Cached blocks, and those of them that are kept.
    block_bytes: u64,
    kept_bytes: u64,
}

/// What has been counted of columns.
#[derive(Clone, Copy, Debug)]
struct Look {
    secs: f64,
    regret: Regret,
    read_bytes: u64,
}

impl Tier {
    pub(super) fn of(dram: &TierUsage) -> Self {
        let temporary = dram.bytes_of(Owner::Temporary);
        Self {
            shared_bytes: dram.capacity_bytes.saturating_sub(temporary),
            form_bytes: dram.bytes_of(Owner::Form),
            block_bytes: dram.bytes_of(Owner::Cache),
            kept_bytes: dram.kept_bytes.saturating_sub(temporary),
        }
    }
}

impl Room {
    /// The room of columns now. Where it is time to weigh, `measure` says what the tier has shown.
    pub(super) fn now(&self, tier: Tier, measure: impl FnOnce() -> (Seen, Regret)) -> FormRoom {
        let now = forebay_runtime::now();
        let mut state = self.state.lock();
        let is_due = state.weighed.is_none_or(|weighed| now.saturating_duration_since(weighed) >= WEIGH_EVERY);
        if is_due {
            let (seen, regret) = measure();
            let secs = state.weighed.replace(now).map_or(0.0, |weighed| now.saturating_duration_since(weighed).as_secs_f64());
            state.blocks.look(seen);
            state.look(tier, Look { secs, regret, read_bytes: self.read_bytes.load(Relaxed) });
        }
        FormRoom { room_bytes: state.room(tier), form_bytes: tier.form_bytes, cache_saves: state.blocks.saves }
    }

    /// The same for who reports it, and why it is so much.
    pub(super) fn told(&self, tier: Tier) -> Told {
        let state = self.state.lock();
        Told { bytes: state.room(tier), saves: (state.columns.next(), state.blocks.saves) }
    }

    /// A reader had so many bytes of columns in so long.
    pub(super) fn read(&self, bytes: u64, took: Duration) {
        self.read_bytes.fetch_add(bytes, Relaxed);
        self.reads.fetch_add(1, Relaxed);
        self.read_us.fetch_add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Relaxed);
    }

    /// Reads of columns since the start, and microseconds of all of them.
    pub(super) fn reads(&self) -> (u64, u64) {
        (self.reads.load(Relaxed), self.read_us.load(Relaxed))
    }

    /// A column was made.
    pub(super) fn made(&self, costs: FormCosts, column: &FormCandidate) {
        if column.decoded_bytes > 0 {
            let saved = costs.saved_secs(column).max(0.0) / column.decoded_bytes as f64;
            let mut state = self.state.lock();
            let known = state.columns.saved_a_byte;
            state.columns.saved_a_byte = if known > 0.0 { aged(known, saved) } else { saved };
        }
    }

    /// A column only lacks room: so many seconds it would save in a second, in so many bytes.
    pub(super) fn missed(&self, (saved, bytes): (f64, u64)) {
        let mut state = self.state.lock();
        let known = state.columns.missed;
        state.columns.missed = (known.0 + saved, known.1.saturating_add(bytes));
    }
}

impl State {
    /// Both share what there is, and what temporary data takes of it they give alike.
    fn room(&self, tier: Tier) -> u64 {
        let room = match self.part {
            Some((bytes, of)) => (u128::from(tier.shared_bytes) * u128::from(bytes) / u128::from(of.max(1))) as u64,
            None => FormRoom::first_bytes(tier.shared_bytes),
        };
        assert!(room <= tier.shared_bytes, "{room} bytes of columns in a tier of {}", tier.shared_bytes);
        room
    }

    fn look(&mut self, tier: Tier, look: Look) {
        let before = self.room(tier);
        let lacks_room = self.columns.look(tier, look) || tier.form_bytes >= before - before / FREE;
        if look.secs <= 0.0 || !lacks_room {
            return;
        }
        let least = tier.shared_bytes / LEAST;
        let columns = Owned {
            room_bytes: before,
            floor_bytes: least,
            most_bytes: tier.shared_bytes - least,
            // One that nobody reads leaves by itself: those that are there are worth what they are on average.
            last_saves: self.columns.by_returned.max(self.columns.mean),
            next_saves: self.columns.next(),
        };
        let blocks = Owned {
            room_bytes: tier.shared_bytes - before,
            floor_bytes: least.saturating_add(tier.kept_bytes).min(tier.shared_bytes),
            most_bytes: u64::MAX,
            last_saves: last_bytes(self.blocks.saves, self.blocks.saves_in_all / tier.block_bytes.max(BLOCK_BYTES) as f64),
            next_saves: self.blocks.saves,
        };
        match weigh(&[columns, blocks], &self.weighing) {
            Ok(weighing) => {
                let now = weighing.rooms[0].bytes;
                self.weighing = weighing;
                if now != before {
                    self.part = Some((now, tier.shared_bytes));
                    let [column_saves_ps, block_saves_ps] = [columns.next_saves, blocks.next_saves].map(|saves| saves * 1e12);
                    let (from, to) = (format_bytes(before), format_bytes(now));
                    tracing::info!(%from, %to, column_saves_ps, block_saves_ps, "room for decoded columns");
                }
            }
            Err(error) => tracing::warn!(%error, "the room of decoded columns stays as it is"),
        }
    }
}

impl Columns {
    /// Seconds that a byte more of them would save in a second.
    fn next(&self) -> f64 {
        self.by_returned.max(self.by_missed)
    }

    /// Takes in what was counted since the last look; whether a column lacked room.
    fn look(&mut self, tier: Tier, Look { secs, regret, read_bytes }: Look) -> bool {
        let returned = regret.returned.saturating_sub(self.returned);
        let read = read_bytes.saturating_sub(self.read_bytes);
        (self.returned, self.read_bytes) = (regret.returned, read_bytes);
        let (missed, missed_bytes) = std::mem::take(&mut self.missed);
        if secs > 0.0 {
            let block_saves = self.saved_a_byte * BLOCK_BYTES as f64;
            let by_returned = margin(returned as f64 / secs, block_saves, regret.remembered_bytes.max(BLOCK_BYTES));
            self.by_returned = aged(self.by_returned, by_returned);
            self.by_missed = aged(self.by_missed, if missed_bytes > 0 { missed / missed_bytes as f64 } else { 0.0 });
            self.mean = aged(self.mean, read as f64 / secs * self.saved_a_byte / tier.form_bytes.max(BLOCK_BYTES) as f64);
        }
        missed_bytes > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const COSTS: FormCosts = FormCosts { tier_bytes_per_sec: 8e9, decode_bytes_per_sec: 1e9 };

    fn tier(form_mib: u64) -> Tier {
        Tier { shared_bytes: 1024 * MIB, form_bytes: form_mib * MIB, block_bytes: 400 * MIB, kept_bytes: 0 }
    }

    fn look(returned: u64, read_bytes: u64) -> Look {
        Look { secs: 20.0, regret: Regret { returned, remembered_bytes: 100 * MIB }, read_bytes }
    }

    #[test]
    fn columns_begin_with_half_of_the_tier_and_leave_temporary_data_its_own() {
        let state = State::default();
        assert_eq!(state.room(tier(0)), 512 * MIB);
        let set = State { part: Some((900 * MIB, 1200 * MIB)), ..State::default() };
        let left = |shared_mib: u64| set.room(Tier { shared_bytes: shared_mib * MIB, ..tier(0) });
        assert_eq!([left(1200), left(600), left(0)], [900 * MIB, 450 * MIB, 0], "blocks keep their part of what is left too");
    }

    #[test]
    fn columns_that_only_lack_room_get_some_from_blocks_that_save_less() {
        let room = Room::default();
        let mut state = State::default();
        state.look(tier(512), look(0, 0));
        assert_eq!(state.room(tier(512)), 512 * MIB, "nothing is known of either");
        // A MiB would save 2 ms a second, and blocks save nothing.
        room.missed((0.008, 4 * MIB));
        state.columns = std::mem::take(&mut room.state.lock().columns);
        state.look(tier(512), look(0, 0));
        let grown = state.room(tier(512));
        assert!(grown > 600 * MIB, "{grown}");
        for _ in 0..20 {
            state.columns.missed = (0.008, 4 * MIB);
            state.look(tier(1024), look(0, 0));
        }
        let most = state.room(tier(1024));
        assert!(most > 900 * MIB && most <= 960 * MIB, "blocks keep their sixteenth: {most}");
    }

    #[test]
    fn blocks_that_just_fit_are_not_taken_for_worth_nothing() {
        let mut state = State::default();
        state.look(tier(512), look(0, 0));
        // None comes back, since none was let go; a byte of 400 MiB saves 16 ns a second on average, and a column that finds no room 1.9.
        state.blocks.saves_in_all = 16e-9 * 400.0 * MIB as f64;
        state.columns.missed = (0.008, 4 * MIB);
        state.look(tier(512), look(0, 0));
        assert_eq!(state.room(tier(512)), 512 * MIB);
    }

    #[test]
    fn blocks_that_save_more_take_room_that_columns_have_and_none_that_is_free() {
        let mut state = State::default();
        state.blocks.saves = 1e-9;
        state.look(tier(100), look(0, 0));
        assert_eq!(state.room(tier(100)), 512 * MIB, "it is not taken, so nobody has less");
        state.look(tier(500), look(0, 0));
        let less = state.room(tier(500));
        assert!(less < 400 * MIB, "{less}");
        let mut state = State::default();
        state.blocks.saves = 1e-9;
        // All of them are read once a second: two fifths of 4 ns at the first look.
        state.columns.saved_a_byte = 4e-9;
        state.look(tier(500), look(0, 20 * 500 * MIB));
        assert_eq!(state.room(tier(500)), 512 * MIB, "readers would miss them");
    }

    #[test]
    fn what_columns_save_is_learned_from_what_was_made_and_what_came_back() {
        let room = Room::default();
        room.made(COSTS, &FormCandidate { raw_bytes: MIB, decoded_bytes: 4 * MIB, operations: 2.0 });
        room.made(COSTS, &FormCandidate { raw_bytes: 0, decoded_bytes: 0, operations: 2.0 });
        let mut columns = std::mem::take(&mut room.state.lock().columns);
        let saved = COSTS.saved_secs(&FormCandidate { raw_bytes: MIB, decoded_bytes: 4 * MIB, operations: 2.0 });
        assert!((columns.saved_a_byte * 4.0 * MIB as f64 - saved).abs() < 1e-12);
        room.read(MIB, Duration::from_micros(70));
        assert_eq!((room.reads(), room.read_bytes.load(Relaxed)), ((1, 70), MIB));
        assert!(!columns.look(tier(100), look(40, 0)));
        // Two blocks a second of a hundred that are remembered, two fifths of it at the first look.
        let expected = 2.0 * columns.saved_a_byte / 100.0 * 0.4;
        assert!((columns.next() / expected - 1.0).abs() < 1e-9, "{} and not {expected}", columns.next());
        let known = columns.next();
        assert!(!columns.look(tier(100), look(40, 0)), "nothing more came back");
        assert!(columns.next() < known, "and what was known counts less");
    }
}
