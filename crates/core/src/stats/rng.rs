//! The random number generator of this module.

/// A pseudorandom number generator with the same output for the same seed on every platform: xoshiro256++ (Blackman and
/// Vigna 2021), seeded by SplitMix64 (Steele, Lea and Flood 2014). Not cryptographically secure.
///
/// ```
/// use patter_core::stats::Rng;
/// let mut one = Rng::new(7);
/// let mut other = Rng::new(7);
/// assert_eq!(one.next_u64(), other.next_u64());
/// assert!(one.below(6) < 6);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// Creates a generator from a seed. Any seed works, including 0.
    pub fn new(seed: u64) -> Self {
        let mut mixed = seed;
        Self { state: std::array::from_fn(|_| split_mix(&mut mixed)) }
    }

    /// Creates one of many independent streams of a seed, so that the draws of one part do not depend on those of others.
    pub fn stream(seed: u64, path: &[u64]) -> Self {
        Self::new(path.iter().fold(seed, |seed, &part| {
            let mut mixed = seed ^ part.wrapping_add(1).wrapping_mul(0xd1b5_4a32_d192_ed03);
            split_mix(&mut mixed)
        }))
    }

    /// Returns the next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.state;
        let next = a.wrapping_add(*d).rotate_left(23).wrapping_add(*a);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        next
    }

    /// Returns a uniformly distributed number below `bound` (Lemire 2019); 0 if the bound is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        let bound = bound as u64;
        loop {
            let product = u128::from(self.next_u64()) * u128::from(bound);
            let low = product as u64;
            if low >= bound || low >= bound.wrapping_neg().checked_rem(bound).unwrap_or(0) {
                return (product >> 64) as usize;
            }
        }
    }

    /// Returns a uniformly distributed number in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
