//! Seeded chance for tests: the same numbers in every run, and how many rounds the long ones make.

/// SplitMix64: small, and good enough to pick moments.
#[derive(Debug)]
pub struct Chance(u64);

impl Chance {
    pub fn seeded(seed: u64) -> Chance {
        Chance(seed)
    }

    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.draw() % bound
    }
}

/// How many rounds a loop makes; `KEDGE_TEST_ROUNDS` multiplies it.
pub fn rounds(usual: u64) -> u64 {
    let factor = std::env::var("KEDGE_TEST_ROUNDS").ok().and_then(|text| text.parse::<u64>().ok()).unwrap_or(1);
    usual * factor.max(1)
}
