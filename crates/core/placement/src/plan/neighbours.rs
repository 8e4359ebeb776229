//! What is read together: segments of a dataset that are next to each other.

use crate::Snapshot;

/// How far a neighbour is looked for on either side: queries read intervals of about a day of hours.
const REACH_MAX: usize = 24;
/// Score of the next neighbour on the same worker; that of others falls with their distance.
pub(crate) const NEXT: u32 = 240;

/// Which segments are read together: those of one dataset, the nearer in order the more.
///
/// Plans that put segments of like popularity side by side, as Best Fit does, put neighbouring hours on one worker, and a
/// query then reads them one after the other.
pub(crate) struct Neighbours {
    /// Segments by dataset and order.
    line: Vec<u32>,
    /// By segment: its place in the line.
    places: Vec<u32>,
    datasets: Vec<u32>,
    reach: usize,
    /// By worker, while one segment is looked at.
    scores: Vec<u32>,
    touched: Vec<u32>,
}

impl Neighbours {
    pub(crate) fn of(snapshot: &Snapshot<'_>) -> Self {
        let mut line: Vec<u32> = (0..snapshot.segments.len() as u32).collect();
        let key = |segment: &u32| {
            let demand = &snapshot.segments[*segment as usize];
            (demand.dataset, demand.order, *segment)
        };
        // Most often they are numbered that way.
        if !line.is_sorted_by_key(key) {
            line.sort_unstable_by_key(key);
        }
        let mut places = vec![0; line.len()];
        for (place, segment) in (0..).zip(&line) {
            places[*segment as usize] = place;
        }
        Self {
            datasets: line.iter().map(|segment| snapshot.segments[*segment as usize].dataset).collect(),
            line,
            places,
            // With n workers, more than n - 1 segments in a row can't all lie apart.
            reach: REACH_MAX.min(snapshot.workers.len().saturating_sub(1)),
            scores: vec![0; snapshot.workers.len()],
            touched: Vec::new(),
        }
    }

    /// For each worker, how much of what is read together with `segment` lies on it by `homes`.
    pub(crate) fn scores<'h>(&mut self, segment: u32, homes: impl Fn(u32) -> &'h [u32]) -> &[u32] {
        for worker in self.touched.drain(..) {
            self.scores[worker as usize] = 0;
        }
        let place = self.places[segment as usize] as usize;
        let dataset = self.datasets[place];
        let ahead = (1..=self.reach).map(|distance| (place.checked_add(distance), distance));
        let behind = (1..=self.reach).map(|distance| (place.checked_sub(distance), distance));
        for side in [&mut ahead.into_iter() as &mut dyn Iterator<Item = _>, &mut behind.into_iter()] {
            for (at, distance) in side {
                let Some(at) = at.filter(|at| self.datasets.get(*at) == Some(&dataset)) else { break };
                let workers = homes(self.line[at]);
                for worker in workers {
                    self.scores[*worker as usize] += NEXT / (distance as u32 * workers.len() as u32);
                    self.touched.push(*worker);
                }
            }
        }
        &self.scores
    }
}
