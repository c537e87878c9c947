// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;
use crate::model::ARM926EJS;

fn tlb(victims: Victims) -> Tlb {
    Tlb::new(&ARM926EJS.tlbs[0], victims)
}

/// Invalidates by MVA. Returns the numbers of the entries.
fn invalidate(tlb: &mut Tlb, mva: u32) -> Vec<usize> {
    let mut from = 0;
    let next = || {
        let n = tlb.invalidate(Mva(mva), from)?;
        from = n + 1;
        Some(n)
    };
    std::iter::from_fn(next).collect()
}

/// A write-back page for all accesses.
const WRITE_BACK: Attributes = Attributes {
    ap: 3,
    domain: 0,
    cb: 3,
    device: false,
    xn: false,
    asid: None,
};

fn small(mva: u32, pa: u32) -> Entry {
    Entry::new(Mva(mva), 4096, Pa(pa), WRITE_BACK)
}

fn pa_of(tlb: &Tlb, mva: u32) -> Pa {
    tlb.entry(tlb.find(Mva(mva)).unwrap()).pa
}

#[test]
fn a_third_page_of_a_set_evicts_the_first() {
    let mut tlb = tlb(Victims::Random);
    for n in 0..3u32 {
        tlb.insert(Mva(n << 17), small(n << 17, n << 12));
    }
    assert!(tlb.find(Mva(0)).is_none());
    assert_eq!(pa_of(&tlb, 1 << 17), Pa(0x1000));
    assert_eq!(pa_of(&tlb, 2 << 17), Pa(0x2000));
}

#[test]
fn late_fills_an_empty_way_then_goes_on_in_the_one_filled_last() {
    let mut tlb = tlb(Victims::Late);
    let mut insert = |n: u32| tlb.insert(Mva(n << 17), small(n << 17, n << 12));
    assert_eq!([0, 1, 2, 3].map(&mut insert), [0, 1, 1, 1]);
    assert_eq!(invalidate(&mut tlb, 0), [0]);
    let mut insert = |n: u32| tlb.insert(Mva(n << 17), small(n << 17, n << 12));
    assert_eq!([4, 5].map(&mut insert), [0, 0]);
    assert!(tlb.find(Mva(3 << 17)).is_some());
}

#[test]
fn invalidate_all_keeps_lockdown_entries_and_invalidate_by_mva_removes_them() {
    let mut tlb = tlb(Victims::Random);
    tlb.set_lockdown_register(1 | 2 << 26);
    tlb.insert(Mva(0x5000), small(0x5000, 0x9000));
    assert_eq!(tlb.lockdown_register(), 1 | 3 << 26);
    tlb.set_lockdown_register(0);
    tlb.insert(Mva(0x6000), small(0x6000, 0xa000));
    tlb.invalidate_all();
    assert!(tlb.find(Mva(0x6000)).is_none());
    assert!(tlb.find(Mva(0x5123)).is_some());
    assert_eq!(invalidate(&mut tlb, 0x5fff), [64 + 2]);
    assert!(tlb.find(Mva(0x5123)).is_none());
}

fn full(victims: Victims) -> Tlb {
    Tlb::new(&crate::model::ARM920T.tlbs[0], victims)
}

#[test]
fn a_full_tlb_goes_round_from_its_base() {
    let mut tlb = full(Victims::Random);
    let mut insert = |n: u32| tlb.insert(Mva(n << 12), small(n << 12, n << 12));
    assert_eq!([0, 1, 2].map(&mut insert), [0, 1, 2]);
    tlb.set_lockdown_register(3 << 26 | 63 << 20);
    let mut insert = |n: u32| tlb.insert(Mva(n << 12), small(n << 12, n << 12));
    assert_eq!([10, 11, 12].map(&mut insert), [63, 3, 4]);
    assert_eq!(tlb.lockdown_register(), 3 << 26 | 5 << 20);
    assert_eq!(tlb.find(Mva(0x1123)).unwrap(), 1, "below the base");
}

/// Lockdown as in the manual: base and victim point at the entry, and P is set. Then the base moves above the entry.
#[test]
fn a_preserved_entry_survives_all_but_its_own_address() {
    let mut tlb = full(Victims::Random);
    tlb.set_lockdown_register(1);
    tlb.insert(Mva(0x5000), small(0x5000, 0x9000));
    tlb.set_lockdown_register(1 << 26 | 1 << 20);
    for n in 8..100 {
        tlb.insert(Mva(n << 12), small(n << 12, n << 12));
    }
    assert_eq!([0, 1].map(|n| tlb.is_locked(n)), [true, false]);
    tlb.invalidate_all();
    assert_eq!(tlb.find(Mva(0x5123)).unwrap(), 0);
    assert!((8..100).all(|n| tlb.find(Mva(n << 12)).is_none()));
    assert_eq!(invalidate(&mut tlb, 0x5000), [0]);
}

#[test]
fn late_fills_empty_entries_of_a_full_tlb_then_goes_on_in_the_one_filled_last() {
    let mut tlb = full(Victims::Late);
    let mut insert = |n: u32| tlb.insert(Mva(n << 12), small(n << 12, n << 12));
    assert_eq!(
        (0..64).map(&mut insert).collect::<Vec<_>>(),
        (0..64).collect::<Vec<_>>()
    );
    assert_eq!([64, 65].map(&mut insert), [63, 63]);
    assert_eq!(invalidate(&mut tlb, 7 << 12), [7]);
    let mut insert = |n: u32| tlb.insert(Mva(n << 12), small(n << 12, n << 12));
    assert_eq!([70, 71].map(&mut insert), [7, 7]);
}

#[test]
fn a_large_page_stays_before_a_quarter_locked_later() {
    let mut tlb = tlb(Victims::Random);
    let entry = |mva, size, pa| Entry::new(Mva(mva), size, Pa(pa), WRITE_BACK);
    tlb.insert(Mva(0x1_3000), entry(0x1_3000, 1 << 16, 0x8_0000));
    tlb.set_lockdown_register(1);
    tlb.insert(Mva(0x1_2000), entry(0x1_2000, 1 << 14, 0x4_0000));
    let pa = |mva| {
        let found = tlb.find(Mva(mva)).map(|n| tlb.entry(n));
        found.map(|entry| entry.translate(Mva(mva)))
    };
    assert_eq!(pa(0x1_3818), Some(Pa(0x8_3818)));
    assert_eq!(pa(0x1_2818), Some(Pa(0x4_2818)));
}

#[test]
fn invalidate_by_mva_removes_every_copy_of_a_large_page() {
    let mut tlb = tlb(Victims::Random);
    let large = |mva| Entry::new(Mva(mva), 1 << 16, Pa(0x8_0000), WRITE_BACK);
    for mva in [0x1_0000, 0x1_5000] {
        tlb.insert(Mva(mva), large(mva));
    }
    assert_eq!(invalidate(&mut tlb, 0x1_f000), [32, 42]);
    assert!(
        [0x1_0000, 0x1_5000]
            .iter()
            .all(|mva| tlb.find(Mva(*mva)).is_none())
    );
}

/// Fills a TLB of `victims` and locks two more translations, without an invalidation.
#[test]
fn locked_entries_go_where_software_says_with_late_too() {
    for victims in [Victims::Random, Victims::Late] {
        let insert = |tlb: &mut Tlb, n: u32| tlb.insert(Mva(n << 12), small(n << 12, n << 12));
        let mut tlb = Tlb::new(&crate::model::IXP42X.tlbs[0], victims);
        for n in 0..40 {
            insert(&mut tlb, n);
        }
        let mut lock = |n| {
            let lock = tlb.begin_lock();
            let entry = insert(&mut tlb, n);
            tlb.end_lock(lock, true);
            entry
        };
        assert_eq!([100, 101].map(&mut lock), [0, 1], "{victims:?}");
        // Locks entries as software of the ARM920T does.
        let mut tlb = full(victims);
        for n in 0..80 {
            insert(&mut tlb, n);
        }
        let mut lock = |n: u32| {
            tlb.set_lockdown_register(n << 26 | n << 20 | 1);
            insert(&mut tlb, 100 + n)
        };
        assert_eq!([0, 1].map(&mut lock), [0, 1], "{victims:?}");
    }
}
