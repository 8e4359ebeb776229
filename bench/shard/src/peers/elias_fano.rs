//! Compressed lists of ascending numbers, so that the peer's postings are as small as good ones are.

/// Ascending numbers in `2 + log2(universe / count)` bits each (Elias, 1974; Fano, 1971).
pub(crate) struct EliasFano {
    count: usize,
    low_bits: u32,
    low: Vec<u64>,
    /// Unary: a one for each number, after as many zeros as its high part is larger than the one before.
    high: Vec<u64>,
    /// The place in `high` of every 64th one.
    samples: Vec<u32>,
}

const SAMPLE: usize = 64;

impl EliasFano {
    /// Of ascending numbers below `universe`.
    pub(crate) fn new(numbers: impl ExactSizeIterator<Item = u64>, universe: u64) -> Self {
        let count = numbers.len();
        let low_bits = if count == 0 { 0 } else { (universe / count as u64).checked_ilog2().unwrap_or(0) };
        let highs = (universe >> low_bits) as usize + count + 1;
        let mut made = Self {
            count,
            low_bits,
            low: vec![0; (count * low_bits as usize).div_ceil(64) + 1],
            high: vec![0; highs.div_ceil(64)],
            samples: Vec::new(),
        };
        for (at, number) in numbers.enumerate() {
            let place = (number >> low_bits) as usize + at;
            made.high[place / 64] |= 1 << (place % 64);
            if at % SAMPLE == 0 {
                made.samples.push(u32::try_from(place).expect("small enough"));
            }
            let bit = at * low_bits as usize;
            let low = number & ((1 << low_bits) - 1);
            made.low[bit / 64] |= low << (bit % 64);
            if bit % 64 + low_bits as usize > 64 {
                made.low[bit / 64 + 1] |= low >> (64 - bit % 64);
            }
        }
        made
    }

    fn low(&self, at: usize) -> u64 {
        if self.low_bits == 0 {
            return 0;
        }
        let bit = at * self.low_bits as usize;
        let (word, shift) = (bit / 64, bit % 64);
        let wide = u128::from(self.low[word]) | u128::from(self.low[word + 1]) << 64;
        (wide >> shift) as u64 & ((1 << self.low_bits) - 1)
    }

    pub(crate) fn get(&self, at: usize) -> u64 {
        self.from(at).next().expect("in bounds")
    }

    pub(crate) fn from(&self, at: usize) -> impl Iterator<Item = u64> + '_ {
        let (mut word, mut bits) = (0, 0);
        if at < self.count {
            let place = self.samples[at / SAMPLE] as usize;
            let mut left = (at % SAMPLE) as u32;
            word = place / 64;
            bits = self.high[word] >> (place % 64) << (place % 64);
            while left >= bits.count_ones() {
                left -= bits.count_ones();
                word += 1;
                bits = self.high[word];
            }
            for _ in 0..left {
                bits &= bits - 1;
            }
        }
        (at..self.count).map(move |at| {
            while bits == 0 {
                word += 1;
                bits = self.high[word];
            }
            let place = word * 64 + bits.trailing_zeros() as usize;
            bits &= bits - 1;
            ((place - at) as u64) << self.low_bits | self.low(at)
        })
    }

    /// The place of the first number that is not below `number`.
    pub(crate) fn lower_bound(&self, number: u64) -> usize {
        // By every 64th number, then one by one.
        let blocks = self.count.div_ceil(SAMPLE);
        let (mut from, mut to) = (0, blocks);
        while from < to {
            let middle = from.midpoint(to);
            let place = self.samples[middle] as usize;
            let first = ((place - middle * SAMPLE) as u64) << self.low_bits | self.low(middle * SAMPLE);
            if first < number {
                from = middle + 1;
            } else {
                to = middle;
            }
        }
        let start = from.saturating_sub(1) * SAMPLE;
        start + self.from(start).take(SAMPLE).take_while(|&other| other < number).count()
    }

    pub(crate) fn bytes(&self) -> usize {
        (self.low.len() + self.high.len()) * 8 + self.samples.len() * 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        let numbers: Vec<u64> = (0..10_000u64).map(|n| n * n / 7 + n).collect();
        let made = EliasFano::new(numbers.iter().copied(), numbers[numbers.len() - 1] + 1);
        assert!(made.from(0).eq(numbers.iter().copied()));
        for at in [0, 1, 63, 64, 65, 9_999] {
            assert_eq!(made.get(at), numbers[at]);
        }
        for number in [0, 1, 2, 3, 100, 5_000_000, 99_999_999] {
            assert_eq!(made.lower_bound(number), numbers.partition_point(|&other| other < number), "{number}");
        }
    }
}
