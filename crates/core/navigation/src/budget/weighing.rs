//! What each owner may have of one memory, window by window: who saves more time with a byte takes it from who saves less.

use forebay_types::{Error, Result};

/// What one owner has of a memory, and what that saves: cached blocks, decoded columns, layers of shards, temporary data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Owned {
    /// Bytes that it may take now.
    pub room_bytes: u64,
    /// Bytes that nobody takes from it: pinned, kept, claimed, or in use and nowhere else.
    pub floor_bytes: u64,
    /// Bytes beyond which more is of no use to it.
    pub most_bytes: u64,
    /// Seconds that each of its last bytes saves in a second ([`last_bytes`]).
    pub last_saves: f64,
    /// Seconds that each of the next bytes would save in a second.
    pub next_saves: f64,
}

/// Why an owner's room is what it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cause {
    /// Nobody saves enough more with a byte than it, and it not than anybody.
    #[default]
    Even,
    /// It saves more with them than the owner at this place did.
    Took {
        /// Who gave.
        from: usize,
        /// How many bytes.
        bytes: u64,
    },
    /// The owner at this place saves more with them.
    Gave {
        /// Who took.
        to: usize,
        /// How many bytes.
        bytes: u64,
    },
    /// What it can't do without has grown past its room.
    Raised,
}

/// An owner's room in the next window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// Bytes that it may take.
    pub bytes: u64,
    /// Why it is so much.
    pub cause: Cause,
    /// It grew when its room moved last, or it shrank.
    has_grown: bool,
    /// Windows for which it takes more to turn it around.
    calm: u32,
}

/// The rooms of all owners, in the order in which they were given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Weighing {
    /// One for each owner.
    pub rooms: Vec<Room>,
}

/// Owners of one memory at most: each is compared with each.
const OWNERS_MAX: usize = 16;
/// Most of the memory that moves between two owners in a window: one part of so many.
const PARTS: u64 = 6;
/// An owner that has little gets one part of so many at most.
const FIRST: u64 = 8;
/// Less than one part of so many is not worth moving: measurements sway by that much.
const LEAST: u64 = 64;
/// How much more a byte has to save, as a share, to be taken from where it is.
const INERTIA: f64 = 0.5;
/// Windows from a move on, its own among them, in which the way back needs once more of that.
const CALM: u32 = 4;
/// How much of what was known stays with a new measurement.
const KEEP: f64 = 0.6;
/// What the last byte of an owner saves at least, as a share of what one of them saves on average.
const LAST_OF_MEAN: f64 = 1.0 / 8.0;

/// What is known after a window in which so much was measured.
pub fn aged(known: f64, measured: f64) -> f64 {
    debug_assert!(known.is_finite() && measured.is_finite(), "{known} and {measured} are measurements");
    known * KEEP + measured * (1.0 - KEEP)
}

/// Seconds that each of an owner's last bytes saves in a second: what came back after it was let go says it (`margin`). Where all fits nothing
/// is let go and nothing comes back, and yet the first byte that is taken is missed: so it is no less than an eighth of what its bytes save
/// on average.
pub fn last_bytes(margin: f64, mean: f64) -> f64 {
    debug_assert!(margin >= 0.0 && mean >= 0.0, "no byte costs time: {margin}, {mean}");
    margin.max(mean * LAST_OF_MEAN)
}

/// Weighs owners of one memory against each other, each window: bytes go from who saves least with its last ones to who would save most with
/// more, as long as that is half as much again. Of all moves that pay the one that saves most in all goes first. The further both are
/// apart, the more moves, a sixth of the memory at most; close to the balance it is little, so that it is not overrun. Who was just moved
/// one way is turned around by twice as much only. Floors are kept to before all that: what an owner can't do without is taken at once from
/// those that save least.
///
/// The sum of all rooms stays what it is. `Invalid`: too many owners, bytes past all limits, a time that is negative or no number.
///
/// ```
/// use forebay_navigation::{Cause, Owned, Weighing, weigh};
/// let owned = |saves| Owned { room_bytes: 600, floor_bytes: 0, most_bytes: u64::MAX, last_saves: saves, next_saves: saves };
/// let weighing = weigh(&[owned(6.0), owned(1.0)], &Weighing::default())?;
/// assert_eq!(weighing.rooms[0].cause, Cause::Took { from: 1, bytes: 150 });
/// assert_eq!((weighing.rooms[0].bytes, weighing.rooms[1].bytes), (750, 450));
/// # Ok::<(), forebay_types::Error>(())
/// ```
pub fn weigh(owners: &[Owned], before: &Weighing) -> Result<Weighing> {
    validate(owners)?;
    let mut draft = Draft::new(owners, before);
    draft.raise();
    while let Some(step) = draft.best() {
        draft.take(&step);
    }
    assert_postconditions(owners, &draft.rooms);
    Ok(Weighing { rooms: draft.rooms })
}

impl Owned {
    /// What is lost with one of its last bytes: no less than the next one would bring, however both were measured, or bytes would be taken only
    /// to be given back.
    fn least_saved(&self) -> f64 {
        self.last_saves.max(self.next_saves)
    }
}

struct Draft<'a> {
    owners: &'a [Owned],
    rooms: Vec<Room>,
    /// Owners whose room has moved in this window: each moves once.
    moved: Vec<bool>,
    whole: u64,
}

/// Bytes on their way.
struct Move {
    taker: usize,
    giver: usize,
    bytes: u64,
    /// Seconds that all of them save more in a second, beyond what it takes to move them.
    gained: f64,
}

impl<'a> Draft<'a> {
    fn new(owners: &'a [Owned], before: &Weighing) -> Self {
        let room = |(at, owner): (usize, &Owned)| {
            let known = before.rooms.get(at).copied().unwrap_or_default();
            Room { bytes: owner.room_bytes, cause: Cause::Even, calm: known.calm.saturating_sub(1), ..known }
        };
        let rooms = owners.iter().enumerate().map(room).collect();
        Self { owners, rooms, moved: vec![false; owners.len()], whole: owners.iter().map(|owner| owner.room_bytes).sum() }
    }

    /// Bytes that an owner can do without.
    fn spare(&self, at: usize) -> u64 {
        self.rooms[at].bytes.saturating_sub(self.owners[at].floor_bytes)
    }

    /// Whoever has less than its floor gets that, from those that save least, as far as these can spare it.
    fn raise(&mut self) {
        let mut givers: Vec<usize> = (0..self.owners.len()).collect();
        givers.sort_by(|one, other| self.owners[*one].least_saved().total_cmp(&self.owners[*other].least_saved()));
        for taker in 0..self.owners.len() {
            for giver in &givers {
                let lacks = self.owners[taker].floor_bytes.saturating_sub(self.rooms[taker].bytes);
                let bytes = lacks.min(self.spare(*giver));
                if bytes > 0 {
                    self.take(&Move { taker, giver: *giver, bytes, gained: 0.0 });
                    self.rooms[taker].cause = Cause::Raised;
                }
            }
        }
    }

    /// The move that gains most, among owners that have not moved: counted by the byte, a few bytes that are free would keep one that needs many
    /// from those that others can give.
    fn best(&self) -> Option<Move> {
        let open = || (0..self.owners.len()).filter(move |at| !self.moved[*at]);
        let pairs = open().flat_map(|taker| open().filter(move |giver| *giver != taker).map(move |giver| (taker, giver)));
        let moves = pairs.filter_map(|(taker, giver)| self.pays(taker, giver));
        moves.max_by(|one, other| one.gained.total_cmp(&other.gained))
    }

    /// What moves between two, if that pays.
    fn pays(&self, taker: usize, giver: usize) -> Option<Move> {
        let next = self.owners[taker].next_saves;
        let needed = self.owners[giver].least_saved() * self.hurdle(taker, giver);
        if next <= needed {
            return None;
        }
        let most = self.owners[taker].most_bytes.saturating_sub(self.rooms[taker].bytes);
        let part = (self.whole as f64 / PARTS as f64 * (1.0 - needed / next)) as u64;
        // What has little is at most doubled, and what gives keeps half: how much less or more helps then is to be seen first.
        let first = self.rooms[taker].bytes.max(self.whole / FIRST);
        debug_assert!(part <= self.whole / PARTS + 1, "{part} bytes of {} are more than a part", self.whole);
        let bytes = part.min(most).min(first).min(self.spare(giver).div_ceil(2));
        (bytes >= (self.whole / LEAST).max(1)).then_some(Move { taker, giver, bytes, gained: (next - needed) * bytes as f64 })
    }

    /// How many times as much the taker has to save.
    fn hurdle(&self, taker: usize, giver: usize) -> f64 {
        let turns = |at: usize, grows: bool| self.rooms[at].calm > 0 && self.rooms[at].has_grown != grows;
        let more = if turns(taker, true) || turns(giver, false) { 2.0 } else { 1.0 };
        1.0 + INERTIA * more
    }

    fn take(&mut self, Move { taker, giver, bytes, .. }: &Move) {
        assert!(taker != giver && *bytes <= self.spare(*giver), "{bytes} bytes are taken from who can spare them");
        let (taken, given) = (Cause::Took { from: *giver, bytes: *bytes }, Cause::Gave { to: *taker, bytes: *bytes });
        for (at, cause, has_grown) in [(*taker, taken, true), (*giver, given, false)] {
            let room = &mut self.rooms[at];
            let now = if has_grown { room.bytes + bytes } else { room.bytes - bytes };
            *room = Room { bytes: now, cause, has_grown, calm: CALM };
            self.moved[at] = true;
        }
    }
}

fn validate(owners: &[Owned]) -> Result<()> {
    let is_time = |time: f64| time.is_finite() && time >= 0.0;
    let sound =
        |owner: &Owned| owner.room_bytes <= crate::Curve::BYTES_MAX && is_time(owner.last_saves) && is_time(owner.next_saves);
    if owners.len() > OWNERS_MAX || !owners.iter().all(sound) {
        return Err(Error::invalid(format!(
            "a memory has {OWNERS_MAX} owners at most, and what a byte of each saves is a number from 0 on"
        )));
    }
    Ok(())
}

/// What those rely on who keep to their room.
fn assert_postconditions(owners: &[Owned], rooms: &[Room]) {
    assert_eq!(owners.len(), rooms.len(), "something is said of each owner");
    let before: u64 = owners.iter().map(|owner| owner.room_bytes).sum();
    assert_eq!(before, rooms.iter().map(|room| room.bytes).sum::<u64>(), "what one has more another has less");
    for (owner, room) in owners.iter().zip(rooms) {
        let least = owner.floor_bytes.min(owner.room_bytes);
        assert!(room.bytes >= least, "{} bytes are left of {}, and {least} are needed", room.bytes, owner.room_bytes);
    }
}
