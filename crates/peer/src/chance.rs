//! Chance from a seed, for jitter and for choosing partners: the same seed gives the same run. Owned by a `Node`.

/// SplitMix64: nothing here needs to be secret.
#[derive(Clone, Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    pub fn new(seed: u64) -> Chance {
        Chance(seed)
    }

    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    }

    /// Below `end`; 0 if that is 0.
    pub fn below(&mut self, end: usize) -> usize {
        if end == 0 { 0 } else { usize::try_from(self.draw() % end as u64).unwrap_or_default() }
    }

    /// A duration up to a fifth shorter or longer, so that agents that started together don't stay together.
    pub fn around(&mut self, millis: i64) -> i64 {
        let fifth = millis / 5;
        let width = (2 * fifth + 1).unsigned_abs().max(1);
        millis - fifth + i64::try_from(self.draw() % width).unwrap_or_default()
    }

    /// So many of these, each at most once.
    pub fn some<T: Copy>(&mut self, mut from: Vec<T>, count: usize) -> Vec<T> {
        let mut out = Vec::with_capacity(count.min(from.len()));
        while out.len() < count && !from.is_empty() {
            out.push(from.swap_remove(self.below(from.len())));
        }
        out
    }
}
