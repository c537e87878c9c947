// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs that the checker once judged wrongly, as the reducer printed them, and cases that random programs rarely
//! contain.

use super::program::Program;
use super::run::{Tally, run};

/// Runs a program on which checker and reference must agree, and returns the kind of every report.
fn reports(text: &str) -> Vec<&'static str> {
    let program = Program::parse(text).expect("a program");
    let mut tally = Tally::new();
    if let Err(failure) = run(&program, &mut tally) {
        panic!("{}:\n{}", failure.sort, failure.text);
    }
    let kinds = super::ReportKind::ALL.map(|kind| kind.name());
    let reports = tally.into_iter().filter(|(name, _)| kinds.contains(name));
    reports
        .flat_map(|(name, count)| std::iter::repeat_n(name, count as usize))
        .collect()
}

#[test]
fn a_write_back_of_the_newest_words_destroys_nothing() {
    let kinds = reports(
        "victims 272a2859 1
        ldrbt 8002243b 0
        strd 70022420 e3a02000
        swpb 90021422 e3a0
        d-clean 90021420 0
        swp 80022424 e3a02002",
    );
    assert_eq!(kinds, ["stale-read"]);
}

#[test]
fn an_old_line_destroys_words_even_after_a_write_back_of_the_newest() {
    let kinds = reports(
        "victims 1c90676c 1
        ldr 80020400 0
        strd 80020400 e3a02000
        stm8 50020400 e3a02001
        ldm8 70020400 0
        str 70020400 e3a02001
        d-clean-invalidate 70020400 0
        d-clean-invalidate 80020400 0",
    );
    assert_eq!(kinds, ["old-over-newer"; 3]);
}

#[test]
fn an_entry_depends_on_the_tables_it_is_used_under() {
    let kinds = reports(
        "victims 1b9e279a 1
        str 40006400 c011
        strt 90023064 e3a0202c
        table-base 8000 0
        ldm4 90023060 0
        str 6000c48c 22aa6
        str 90023060 e3a0208e",
    );
    assert_eq!(kinds, ["stale-translation"; 2]);
}

#[test]
fn an_entry_under_tables_of_smaller_pages_is_checked_for_each_page() {
    let kinds = reports(
        "victims 2fbae368 1
        str 4000d214 2143b
        str 60006440 c3a
        ldm8 91020040 0
        table-base 8000 0
        ldrh 9102147e 0
        execute-thumb 91021042",
    );
    assert_eq!(kinds, ["stale-translation"]);
}

#[test]
fn an_entry_that_forbade_an_access_is_checked_when_it_allows_the_next() {
    let kinds = reports(
        "victims 246801fd 1
        str 4000c48c 20aae
        tlb-all 0 0
        ldr 90023440 0 user
        str 4000c48c 21aae
        str 90023440 e3a0200e user
        ldrb 90023440 0 user",
    );
    assert_eq!(kinds, ["stale-translation"]);
}

#[test]
fn an_instruction_past_the_cache_does_not_come_from_an_old_line() {
    let kinds = reports(
        "victims 84c3965 1
        execute 91023040
        tlb-entry 91023040 0
        str 4000d230 22033
        invalidate-all 0 0
        ldrd 80022048 0
        strbt 80022040 e3a0305a
        d-invalidate 80022040 0
        execute 91023040",
    );
    assert_eq!(kinds, ["lost-by-invalidate"]);
}

#[test]
fn an_entry_that_was_good_under_another_table_base_since_is_reported_again() {
    let kinds = reports(
        "victims 1 1
        ldr 40006400 0
        execute 90021000
        str 40006400 c031
        execute 90021000
        table-base 8000 0
        execute 90021000
        table-base 4000 0
        execute 90021000",
    );
    assert_eq!(kinds, ["stale-translation"; 2]);
}

#[test]
fn an_instruction_from_a_line_of_other_memory_is_stale_even_if_the_newest_is_lost() {
    let kinds = reports(
        "victims 1 1
        execute 90021000
        str 4000c484 23ffe
        tlb-entry 90021000 0
        ldr 80023000 0
        str 80023000 e3a02050
        d-invalidate 80023000 0
        execute 90021000",
    );
    assert_eq!(kinds, ["stale-instruction"]);
}

#[test]
fn each_instruction_that_uses_a_stale_entry_gets_one_report() {
    let text = |alike: &str| {
        format!(
            "victims 1 1
            {alike}
            ldr 90021000 0
            str 4000c484 23ffe
            ldr 90021000 0
            ldr 90021000 0
            ldrb 90021000 0
            ldr 90021000 0"
        )
    };
    assert_eq!(reports(&text("alike")), ["stale-translation"; 2]);
    assert_eq!(reports(&text("")), ["stale-translation"; 4]);
}

#[test]
fn a_user_of_a_stale_entry_gets_another_report_after_a_descriptor_write() {
    let kinds = reports(
        "victims 1 1
        alike
        ldr 90021000 0
        str 4000c484 23ffe
        ldr 90021000 0
        str 4000c484 24ffe
        ldr 90021000 0",
    );
    assert_eq!(kinds, ["stale-translation"; 2]);
}

#[test]
fn a_stale_word_is_reported_again_after_its_loss() {
    let kinds = reports(
        "victims 1 1
        alike
        ldr 80020000 0
        ldr 70020000 0
        str 70020000 e3a02050
        ldr 80020000 0
        ldr 80020000 0
        d-invalidate 70020000 0
        ldr 80020000 0
        ldr 80020000 0",
    );
    assert_eq!(kinds, ["lost-by-invalidate", "stale-read"]);
}

#[test]
fn a_reader_of_an_even_older_line_gets_a_report() {
    let kinds = reports(
        "victims 1 1
        ldr 80020400 0
        str 50020400 e3a02001
        ldr 70020404 0
        str 70020404 e3a02002
        str 50020400 e3a02003
        d-clean 70020400 0
        ldr 70020400 0
        ldr 80020400 0",
    );
    assert_eq!(kinds, ["old-over-newer"; 2]);
}

#[test]
fn an_entry_of_an_old_descriptor_is_reported_after_use_under_another_table_base() {
    let kinds = reports(
        "victims 1 1
        ldr 70006400 0
        str 70006400 c031
        execute 90021000
        execute 90021000
        table-base 8000 0
        execute 90021000
        table-base 4000 0
        execute 90021000",
    );
    assert_eq!(kinds, ["stale-translation", "unseen-descriptor"]);
}

#[test]
fn a_word_that_was_restored_and_destroyed_again_is_reported_again() {
    let kinds = reports(
        "victims 1 1
        ldr 80020400 0
        ldr 70020400 0
        str 70020400 e3a02050
        d-clean 70020400 0
        str 80020404 e3a02005
        d-clean 80020400 0
        str 70020408 e3a02006
        d-clean 70020400 0
        ldr 50020400 0
        str 80020404 e3a02005
        d-clean-invalidate 80020400 0
        ldr 50020400 0",
    );
    assert_eq!(kinds, ["old-over-newer"; 2]);
}

#[test]
fn two_processes_with_one_instruction_address_get_two_reports() {
    let kinds = reports(
        "victims 1 1
        alike
        ldr 80020400 0
        ldr 70020400 0
        str 70020400 e3a02050
        ldr 80020400 0
        pid 2000000 0
        ldr 80020400 0",
    );
    assert_eq!(kinds, ["stale-read"; 2]);
}

#[test]
fn two_kinds_by_one_instruction_are_two_reports() {
    for alike in ["", "alike"] {
        let kinds = reports(&format!(
            "victims 1 1
            {alike}
            ldr 60020400 0
            ldr 80020400 0
            str 80020404 e3a02005
            ldr 70020400 0
            str 70020400 e3a02050
            ldr 60020400 0
            ldr 80020400 0"
        ));
        assert_eq!(kinds, ["stale-read", "two-dirty-aliases"], "{alike}");
    }
}

/// The device writes the upper half of the word, or the whole word.
#[test]
fn bytes_that_a_device_did_not_write_are_not_the_devices() {
    for (device, kind) in [
        ("20402 2 5a5a", "lost-by-invalidate"),
        ("20400 4 5a5a", "stale-after-dma"),
    ] {
        let kinds = reports(&format!(
            "victims 1 1
            ldr 80020400 0
            ldr 70020400 0
            str 70020400 e3a02050
            d-invalidate 70020400 0
            device {device}
            ldrh 80020400 0"
        ));
        assert_eq!(kinds, [kind], "{device}");
    }
}
