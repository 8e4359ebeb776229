//! Draws ranks by Zipf's law without a table, for as many records as there are.

use rand::Rng;

/// Ranks by Zipf's law: rank `r` (from 0) comes with a weight of `1 / (r + 1)^s`.
///
/// Drawn by rejection-inversion (Hormann and Derflinger, 1996): no table, constant time.
pub(crate) struct Zipf {
    items: f64,
    exponent: f64,
    top: f64,
    bottom: f64,
    shift: f64,
}

impl Zipf {
    /// Ranks below `items`; `exponent` is not 1.
    pub(crate) fn new(items: usize, exponent: f64) -> Self {
        assert!(items > 0 && exponent > 0.0 && exponent != 1.0);
        let mut zipf = Self { items: items as f64, exponent, top: 0.0, bottom: 0.0, shift: 0.0 };
        zipf.bottom = zipf.integral(1.5) - 1.0;
        zipf.top = zipf.integral(zipf.items + 0.5);
        zipf.shift = 2.0 - zipf.inverse(zipf.integral(2.5) - 2f64.powf(-exponent));
        zipf
    }

    fn integral(&self, x: f64) -> f64 {
        (x.powf(1.0 - self.exponent) - 1.0) / (1.0 - self.exponent)
    }

    fn inverse(&self, x: f64) -> f64 {
        (1.0 + x * (1.0 - self.exponent)).powf(1.0 / (1.0 - self.exponent))
    }

    pub(crate) fn draw(&self, random: &mut impl Rng) -> usize {
        loop {
            let u = self.top + random.random::<f64>() * (self.bottom - self.top);
            let x = self.inverse(u);
            let rank = x.round().clamp(1.0, self.items);
            if rank - x <= self.shift || u >= self.integral(rank + 0.5) - rank.powf(-self.exponent) {
                return rank as usize - 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn ranks_come_as_often_as_the_law_says() {
        let mut random = rand::rngs::StdRng::seed_from_u64(5);
        let zipf = Zipf::new(100, 0.99);
        let mut counts = [0u32; 100];
        for _ in 0..200_000 {
            counts[zipf.draw(&mut random)] += 1;
        }
        let sum: f64 = (1..=100).map(|rank| f64::from(rank).powf(-0.99)).sum();
        for (rank, count) in counts.iter().enumerate() {
            let expected = 200_000.0 / sum * (rank as f64 + 1.0).powf(-0.99);
            assert!((f64::from(*count) - expected).abs() < 5.0 * expected.sqrt(), "{rank}: {count}, not {expected}");
        }
    }
}
