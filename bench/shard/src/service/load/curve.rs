//! A load as it went, drawn as BlowFish draws it (figures 5 and 9): what came, what was answered, what waited, and the size of the shard.

use std::cell::RefCell;
use std::path::Path;
use std::time::Duration;

use forebay_chart::{Chart, Line};
use forebay_types::{Result, ResultExt};

use super::of_cluster;

/// A moment, and what had come, was refused and waited by then.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) at: Duration,
    pub(super) came: u64,
    pub(super) refused: u64,
    pub(super) waits: u64,
}

impl Moment {
    fn answered(self) -> u64 {
        self.came.saturating_sub(self.refused).saturating_sub(self.waits)
    }
}

/// What was seen of a load from its beginning on.
#[derive(Debug, Default)]
pub(super) struct Curve {
    moments: RefCell<Vec<Moment>>,
    /// Sizes of the shard, as parts of its input.
    sizes: RefCell<Vec<(Duration, f64)>>,
}

impl Curve {
    pub(super) fn saw(&self, moment: Moment) {
        self.moments.borrow_mut().push(moment);
    }

    pub(super) fn is_at(&self, at: Duration, size: f64) {
        self.sizes.borrow_mut().push((at, size));
    }

    /// In minutes of a cluster, a point a period.
    fn chart(&self, title: &str, period: Duration) -> Chart {
        let minute = |at: Duration| of_cluster(at, period) / 60.0;
        let moments = self.moments.borrow();
        let mut spaced: Vec<Moment> = Vec::new();
        for moment in moments.iter() {
            if spaced.last().is_none_or(|last| moment.at >= last.at + period) {
                spaced.push(*moment);
            }
        }
        // None of it is 0 on an axis by decades.
        let a_second = |of: fn(Moment) -> u64| {
            let rate = |pair: &[Moment]| {
                let count = of(pair[1]).saturating_sub(of(pair[0])) as f64;
                (minute(pair[1].at), (count / (pair[1].at - pair[0].at).as_secs_f64()).max(1.0))
            };
            spaced.windows(2).map(rate).collect::<Vec<(f64, f64)>>()
        };
        let waits = spaced.iter().map(|moment| (minute(moment.at), (moment.waits as f64).max(1.0))).collect();
        let sizes = self.sizes.borrow().iter().map(|(at, size)| (minute(*at), (size * 100.0).max(1.0))).collect();
        let line = |name: &str, dashed, points| Line { name: name.into(), points, dashed };
        let lines = vec![
            line("come a second", true, a_second(|moment| moment.came)),
            line("answered a second", false, a_second(Moment::answered)),
            line("wait", false, waits),
            line("size, % of the input", false, sizes),
        ];
        Chart { title: title.into(), x: "minutes of a cluster".into(), y: "questions".into(), from_zero: false, lines }
    }

    pub(super) fn draw(&self, title: &str, period: Duration, file: &Path) -> Result<()> {
        std::fs::write(file, self.chart(title, period).svg()).context(|| file.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_a_period_and_tells_what_came_and_was_answered_in_it() {
        let (curve, period) = (Curve::default(), Duration::from_millis(250));
        let moment = |ms, came, refused, waits| Moment { at: Duration::from_millis(ms), came, refused, waits };
        [moment(0, 0, 0, 0), moment(100, 40, 0, 40), moment(250, 100, 10, 50), moment(500, 200, 10, 20)]
            .into_iter()
            .for_each(|moment| curve.saw(moment));
        curve.is_at(Duration::from_millis(250), 0.4);
        let lines = curve.chart("a load", period).lines;
        let heights = |line: &Line| line.points.iter().map(|point| point.1).collect::<Vec<f64>>();
        assert_eq!(heights(&lines[0]), [400.0, 400.0]);
        assert_eq!(heights(&lines[1]), [160.0, 520.0]);
        assert_eq!(heights(&lines[2]), [1.0, 50.0, 20.0]);
        assert_eq!(lines[3].points, [(10.0 / 60.0, 40.0)]);
    }
}
