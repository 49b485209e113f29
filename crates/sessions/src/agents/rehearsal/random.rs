//! A small pseudorandom generator with the same numbers for the same seed on every machine.

/// Draws numbers that depend only on the seed.
#[derive(Clone, Debug)]
pub(super) struct Generator {
    state: u64,
}

impl Generator {
    pub(super) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// A number below `end`, which must not be 0. Scaling slightly favors some numbers, but for the few choices in a
    /// script the bias is far too small to matter.
    pub(super) fn below(&mut self, end: usize) -> usize {
        let scaled = (u128::from(self.next()) * end as u128) >> 64;
        usize::try_from(scaled).unwrap_or(0)
    }

    /// SplitMix64: a counter with an odd step, mixed until neighbors have nothing in common.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::Generator;

    #[test]
    fn a_seed_decides_all_draws_and_every_choice_comes() {
        let draw = |seed| {
            let mut generator = Generator::new(seed);
            (0..600).map(|_| generator.below(3)).collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
        assert_eq!(draw(7)[..12], [1, 0, 2, 1, 1, 0, 1, 0, 0, 1, 0, 2]);
        for choice in 0..3 {
            let times = draw(7).iter().filter(|drawn| **drawn == choice).count();
            assert!((150..250).contains(&times), "{choice} came {times} times");
        }
    }
}
