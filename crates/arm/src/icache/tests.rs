// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;
use crate::model::ARM926EJS;
use crate::tag::UNTRANSLATED;
use crate::tests::bus::TestBus;
use crate::tests::core::config;

fn cache() -> ICache<TestBus> {
    let undecoded = Op::undecoded(|_, _| ());
    ICache::new(&config(&ARM926EJS, 4096), undecoded)
}

#[test]
fn lines_with_the_same_address_and_different_words_never_share_a_slot() {
    let mut c = cache();
    let (old, _) = c.allocate(Mva(0x1000));
    c.fill(old, Mva(0x1000), Pa(0x8000), &[1; 8], false);
    let new = (old + 1) % 4;
    c.fill(new, Mva(0x5000), Pa(0x8000), &[2; 8], false);
    let (old, new) = (c.enter(old, false), c.enter(new, false));
    assert_eq!((c.word(old, 0, false), c.word(new, 0, false)), (1, 2));
}

#[test]
fn a_line_that_comes_back_unchanged_finds_its_slot_again() {
    let mut c = cache();
    c.fill(0, Mva(0x1000), Pa(0x8000), &[1; 8], false);
    let first = c.enter(0, false);
    c.fill(0, Mva(0x2000), Pa(0x9000), &[2; 8], false);
    c.fill(3, Mva(0x1000), Pa(0x8000), &[1; 8], false);
    assert_eq!(c.enter(3, false), first);
}

#[test]
fn a_hint_is_forgotten_with_its_line_however_often_all_are() {
    let mut c = cache();
    let slot = c.fill(0, Mva(0x1000), Pa(0x8000), &[1; 8], false);
    c.give_hint(Mva(0x1000), 0, false, slot);
    assert_eq!(c.hint(Mva(0x1000), 0, false), Some(slot));
    assert_eq!(c.enter(0, false), slot);
    for times in 1..=1 << 17 {
        c.invalidate_all();
        assert_eq!(c.hint(Mva(0x1000), 0, false), None, "{times}");
    }
}

#[test]
fn the_prefetch_buffer_keeps_its_words_when_another_line_has_their_slot() {
    let mut c = cache();
    let line = c.prefetch_line();
    c.fill(line, Mva(0x1000), Pa(0x8000), &[1; 8], false);
    // Other lines take both slots of the address.
    for n in 0..4 {
        c.fill(
            n as usize,
            Mva(0x5000 + 0x1000 * n),
            Pa(0x8000),
            &[2 + n; 8],
            false,
        );
    }
    let slot = c.enter(line, false);
    assert_eq!(c.word(slot, 0, false), 1);
}

#[test]
fn a_line_of_zeros_stays_one() {
    for (thumb, apart) in [(false, 1 << 20), (true, 64 << 10)] {
        let mut c = cache();
        c.fill(0, Mva(0x1000), Pa(0x8000), &[0; 8], thumb);
        c.fill(1, Mva(0x5000), Pa(0x8000 + apart), &[7; 8], thumb);
        let slots = [0, 1].map(|line| c.enter(line, thumb));
        assert_eq!(slots.map(|slot| c.word(slot, 0, thumb)), [0, 7]);
    }
}

#[test]
fn a_restored_cache_has_the_prefetch_buffers_words_and_nothing_of_before() {
    use crate::state::{Saved, State};
    let (mut saved, mut c) = (Vec::new(), cache());
    let line = c.prefetch_line();
    c.fill(line, Mva(0x1000), Pa(0x8000), &[1; 8], false);
    c.prefetch = Some((Mva(0x1000), Mva(0x1004)));
    c.save(&mut saved);
    let mut c = cache();
    c.fill(0, Mva(0x2000), Pa(0x9000), &[2; 8], false);
    c.enter(0, false);
    assert_eq!(c.restore(&mut Saved::new(&saved)), Ok(()));
    assert_eq!(
        (
            c.find(Mva(0x2000), UNTRANSLATED),
            c.hint(Mva(0x2000), 0, false)
        ),
        (None, None)
    );
    let slot = c.enter(line, false);
    assert_eq!((c.word(slot, 0, false), c.pa(line)), (1, Pa(0x8000)));
}
