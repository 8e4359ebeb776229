//! Where units are handed out from.

use super::plan::Plan;

/// Places of a plan that are handed out from at once, at most. Reads beyond that are demand only.
const PLACES_MAX: usize = 32;
/// Units looked at to find out whether a place is near.
const LOOK_BACK_UNITS: usize = 1024;

/// Where units are handed out from: the start of the plan, and wherever a reader runs ahead.
#[derive(Clone, Debug)]
pub(super) struct Places(Vec<Place>);

#[derive(Clone, Debug)]
struct Place {
    /// The next unit to hand out; none when this place has reached the end or another place.
    at: Option<usize>,
    outstanding_bytes: u64,
}

impl Places {
    pub(super) fn start() -> Self {
        Self(vec![Place { at: Some(0), outstanding_bytes: 0 }])
    }

    /// The place with the fewest bytes outstanding, the earliest of equals, and its next unit with pending bytes.
    pub(super) fn choose(&mut self, plan: &Plan) -> Option<(usize, usize)> {
        let mut taken = Vec::with_capacity(self.0.len());
        for place in &mut self.0 {
            place.at = place.at.and_then(|at| (at..plan.units.len()).find(|at| !plan.units[*at].pending.is_empty()));
            if place.at.is_some_and(|at| taken.contains(&at)) {
                place.at = None;
            }
            taken.extend(place.at);
        }
        let open = self.0.iter().enumerate().filter_map(|(ix, place)| Some((ix, place.at?, place.outstanding_bytes)));
        open.min_by_key(|(_, at, outstanding)| (*outstanding, *at)).map(|(ix, at, _)| (ix, at))
    }

    /// Bytes that were handed out at a place, or read or given up on when negative.
    pub(super) fn outstanding(&mut self, place: usize, bytes: i64) {
        self.0[place].outstanding_bytes =
            self.0[place].outstanding_bytes.checked_add_signed(bytes).expect("no more is read than was handed out");
    }

    /// A unit was read before it was handed out: opens a place there, unless one is near before it.
    pub(super) fn open_near(&mut self, unit_ix: usize, plan: &Plan, near_bytes: u64) {
        if self.0.iter().filter(|place| place.at.is_some()).count() >= PLACES_MAX {
            return;
        }
        let mut between_bytes = 0;
        for (steps, at) in (0..=unit_ix).rev().enumerate() {
            if self.0.iter().any(|place| place.at == Some(at)) {
                return;
            }
            between_bytes += plan.units[at].pending.bytes();
            if between_bytes > near_bytes || steps >= LOOK_BACK_UNITS {
                break;
            }
        }
        // Closed places stay in the list while units refer to them, but need not grow it for ever.
        let fresh = Place { at: Some(unit_ix), outstanding_bytes: 0 };
        match self.0.iter().position(|place| place.at.is_none() && place.outstanding_bytes == 0) {
            Some(free) => self.0[free] = fresh,
            None => self.0.push(fresh),
        }
    }
}
