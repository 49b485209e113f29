//! Random bytes from the operating system, and a small generator for jitter.

/// Random bytes from the operating system.
pub(crate) fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    let filled = getrandom::fill(&mut bytes);
    assert!(
        filled.is_ok(),
        "the operating system returned no random bytes: {filled:?}"
    );
    bytes
}

/// A generator for jitter (SplitMix64). Don't use it for secrets.
#[derive(Debug)]
pub(crate) struct Jitter {
    state: u64,
}

impl Jitter {
    /// A generator with a random seed.
    pub(crate) fn from_system() -> Self {
        Self {
            state: u64::from_le_bytes(random_bytes()),
        }
    }

    /// The next number, at least 0 and below 1.
    pub(crate) fn next_fraction(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^= mixed >> 31;
        // The upper 53 bits are what a double can hold exactly.
        (mixed >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::{Jitter, random_bytes};

    #[test]
    fn fractions_stay_in_range_and_spread() {
        let mut jitter = Jitter { state: 7 };
        let fractions: Vec<f64> = (0..10_000).map(|_| jitter.next_fraction()).collect();
        assert!(fractions.iter().all(|fraction| (0.0..1.0).contains(fraction)));
        let mean = fractions.iter().sum::<f64>() / 10_000.0;
        assert!((0.49..0.51).contains(&mean), "the mean is {mean}");
    }

    #[test]
    fn two_draws_differ() {
        assert_ne!(random_bytes::<16>(), random_bytes::<16>());
        assert_ne!(
            Jitter::from_system().next_fraction(),
            Jitter::from_system().next_fraction()
        );
    }
}
