// SPDX-License-Identifier: MIT OR Apache-2.0
//! Comparison of the tags of a set.

/// Returns the way whose tag matches. At most one way matches. The search does not stop at a match, because the host
/// could not predict the branch that stops it.
#[inline(always)]
pub fn way_of(ways: &[u32], matches: impl Fn(u32) -> bool) -> Option<usize> {
    if let [a, b, c, d] = *ways {
        let found = [a, b, c, d].map(|tag| u32::from(matches(tag)));
        let mask = found[0] | found[1] << 1 | found[2] << 2 | found[3] << 3;
        return (mask != 0).then_some(mask.trailing_zeros() as usize);
    }
    ways.iter().position(|tag| matches(*tag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_of_ways_is_searched() {
        for ways in 1..=8u32 {
            let tags: Vec<u32> = (10..10 + ways).collect();
            for n in 0..ways {
                assert_eq!(way_of(&tags, |tag| tag == 10 + n), Some(n as usize));
            }
            assert_eq!(way_of(&tags, |tag| tag == 9), None);
        }
    }
}
