//! Points of the code at which something happens now and then that is rare and allowed, and whether they were passed.

use std::collections::BTreeMap;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde::Serialize;

/// Of those points that a world has, which are about half of all, one in so many passes is one at which it happens.
const HAPPENS_ONE_IN: u32 = 20;

/// The points of a world.
pub(super) struct Points {
    chance: StdRng,
    /// Nothing happens any more.
    pub(super) is_calm: bool,
    pub(super) all: BTreeMap<&'static str, Point>,
}

/// A point that was passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Point {
    /// The world has it.
    #[serde(skip)]
    is_on: bool,
    pub(crate) passed: u64,
    pub(crate) happened: u64,
}

impl Points {
    pub(super) fn new(chance: &mut StdRng) -> Self {
        Self { chance: StdRng::seed_from_u64(chance.random()), is_calm: false, all: BTreeMap::new() }
    }

    pub(super) fn happens(&mut self, place: &'static str) -> bool {
        let Self { chance, is_calm, all } = self;
        let point = all.entry(place).or_insert_with(|| Point { is_on: chance.random(), ..Point::default() });
        let happens = point.is_on && !*is_calm && chance.random_ratio(1, HAPPENS_ONE_IN);
        point.passed += 1;
        point.happened += u64::from(happens);
        happens
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_points_are_in_a_world_and_happen_now_and_then_until_it_is_calm() {
        let places = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p"];
        let passed = |seed| {
            let mut points = Points::new(&mut StdRng::seed_from_u64(seed));
            for _ in 0..500 {
                for place in places {
                    points.happens(place);
                }
            }
            points
        };
        let (points, again) = (passed(7), passed(7));
        assert_eq!(points.all, again.all, "all of it follows from the seed");
        let happened = points.all.values().filter(|point| point.happened > 0);
        assert!((1..places.len()).contains(&happened.count()), "{:?}", points.all);
        assert!(points.all.values().all(|point| point.passed == 500 && point.happened < 100), "{:?}", points.all);
        let mut calm = points;
        calm.is_calm = true;
        assert!(!(0..500).any(|_| places.into_iter().any(|place| calm.happens(place))));
    }
}
