//! Chance from a seed: the same seed gives the same run on every machine. Owned by the world of a run.

/// SplitMix64: small, fast, and good enough to draw faults.
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    pub fn new(seed: u64) -> Chance {
        Chance(seed)
    }

    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// Below `end`; 0 if that is 0.
    pub fn below(&mut self, end: usize) -> usize {
        if end == 0 { 0 } else { usize::try_from(self.draw() % end as u64).unwrap_or_default() }
    }

    /// From `from` to `to`, both inclusive.
    pub fn between(&mut self, from: i64, to: i64) -> i64 {
        from + i64::try_from(self.draw() % (to - from + 1).unsigned_abs().max(1)).unwrap_or_default()
    }

    /// True so many times in a thousand.
    pub fn permille(&mut self, times: u64) -> bool {
        self.draw() % 1_000 < times
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        from.get(self.below(from.len()))
    }
}

/// One number from several, the same every time.
pub fn mix_all(parts: &[u64]) -> u64 {
    parts.iter().fold(0x5851_f42d_4c95_7f2d, |sum, part| mix(sum ^ part.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
}

fn mix(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}
