// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the kernel mutants.

use super::change::{branch_target, immediate};
use super::*;
use arm::Victims;
use std::path::PathBuf;

fn list_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../linux/6.12/mutants.toml")
}

/// Returns the directory of a plain 6.12 kernel in the cache, if there is one.
fn built() -> Option<PathBuf> {
    let kernels = crate::cache::dir().ok()?.join("kernel");
    let names = base::paths::names_in(&kernels, |path| {
        let name = path.file_name()?.to_str()?.to_string();
        (name.starts_with("6.12-plain-") && path.join("vmlinux").is_file()).then_some(name)
    });
    Some(kernels.join(names.first()?))
}

fn change(text: &str) -> Change {
    let text = format!(
        "[[mutant]]\nname='m'\nfunction='f'\nwhy='w'\nexpect='stale-translation'\ntest='t'\nchange={text}\n"
    );
    toml::from_str::<List>(&text)
        .unwrap()
        .mutant
        .remove(0)
        .change
}

/// Makes a mutant with a change in a function.
fn mutant(function: &str, text: &str) -> Mutant {
    Mutant {
        name: "m".into(),
        function: function.into(),
        change: change(text),
        why: String::new(),
        expect: Kind::StaleTranslation,
        test: None,
        append: String::new(),
        suite: None,
        chance: None,
        survives: None,
        board: None,
        beside: None,
        late: None,
        unnamed: None,
    }
}

#[test]
fn what_is_expected_may_depend_on_how_victims_are_chosen() {
    let plain = mutant("f", "{ skip-call = { callee = 'c', which = 1 } }");
    let plain = Mutant {
        test: Some("t".into()),
        ..plain
    };
    for victims in [Victims::Random, Victims::Late] {
        assert_eq!(plain.expected(victims), Expected::Test("t"));
    }
    let survives = Mutant {
        late: Some(Late::Survives("w".into())),
        ..plain.clone()
    };
    assert_eq!(survives.expected(Victims::Random), Expected::Test("t"));
    assert_eq!(survives.expected(Victims::Late), Expected::Nothing("w"));
    let shown = Mutant {
        test: None,
        survives: Some("w".into()),
        late: Some(Late::Test("t".into())),
        ..plain.clone()
    };
    assert_eq!(shown.expected(Victims::Random), Expected::Nothing("w"));
    assert_eq!(shown.expected(Victims::Late), Expected::Test("t"));
    let suite = Mutant {
        test: None,
        suite: Some("s".into()),
        ..plain
    };
    for victims in [Victims::Random, Victims::Late] {
        assert_eq!(suite.expected(victims), Expected::Suite);
    }
}

#[test]
fn the_list_of_this_tree_is_read_and_has_at_least_25() {
    assert!(load(&list_path()).unwrap().len() >= 25);
}

#[test]
fn every_test_that_a_mutant_names_is_in_the_suite() {
    let suite = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guest/mm_suite");
    let sources: String = base::paths::names_in(&suite, |path| {
        let is_c = path.extension()? == "c";
        is_c.then(|| fs::read_to_string(path).unwrap())
    })
    .concat();
    for mutant in load(&list_path()).unwrap() {
        if let Some(test) = mutant.test {
            assert!(
                sources.contains(&format!("{{ \"{test}\",")),
                "{}: {test}",
                mutant.name
            );
        }
    }
}

#[test]
fn every_mutant_applies_to_the_built_kernel_and_changes_words_once() {
    let Some(dir) = built() else {
        eprintln!("skipped: no plain 6.12 in the cache");
        return;
    };
    let image = fs::read(dir.join("Image")).unwrap();
    let vmlinux = fs::read(dir.join("vmlinux")).unwrap();
    let kernel = Kernel::parse(&vmlinux).unwrap();
    for mutant in load(&list_path()).unwrap() {
        let mut mutated = image.clone();
        let patches = kernel.apply(&mut mutated, &mutant).unwrap();
        let differ = image.iter().zip(&mutated).any(|(a, b)| a != b);
        assert!(differ && !patches.is_empty(), "{}", mutant.name);
        assert!(
            patches.iter().all(|p| p.old != p.new),
            "{}: {patches:x?}",
            mutant.name
        );
        // The mutated image differs from vmlinux: a second application fails.
        assert!(kernel.apply(&mut mutated, &mutant).is_err());
    }
}

#[test]
fn a_call_becomes_a_result_of_0_and_a_tail_call_a_return() {
    let skip = change("{ skip-call = { callee = 'c', which = 1 } }");
    // bl, blne and b from 0x100 to 0x108.
    assert_eq!(
        skip.replaced(0x100, 0xeb00_0000, Some(0x108)),
        Some(0xe3a0_0000)
    );
    assert_eq!(
        skip.replaced(0x100, 0x1b00_0000, Some(0x108)),
        Some(0x13a0_0000)
    );
    assert_eq!(
        skip.replaced(0x100, 0xea00_0000, Some(0x108)),
        Some(0xe1a0_f00e)
    );
    assert_eq!(skip.replaced(0x104, 0xeb00_0000, Some(0x108)), None);
    // A branch backwards, to itself.
    assert_eq!(branch_target(0x1000, 0xebff_fffe), 0x1000);
}

#[test]
fn a_cp15_operation_becomes_nothing_and_a_test_loop_finds_a_clean_cache() {
    let skip = change("{ skip-cp15 = { op = '0,c7,c10,4', which = 'all' } }");
    assert_eq!(skip.replaced(0, 0xee07_3f9a, None), Some(0xe1a0_0000));
    assert_eq!(skip.replaced(0, 0x1e07_cf9a, None), Some(0x11a0_0000));
    assert_eq!(skip.replaced(0, 0xee07_3f3a, None), None);
    let any = change("{ skip-cp15 = { op = '0,c8,*,1', which = 'all' } }");
    assert_eq!(any.replaced(0, 0xee08_1f36, None), Some(0xe1a0_0000));
    assert_eq!(any.replaced(0, 0xee08_1f35, None), Some(0xe1a0_0000));
    let test = change("{ skip-cp15 = { op = '0,c7,c14,3', which = 1 } }");
    assert_eq!(test.replaced(0, 0xee17_ff7e, None), Some(0xe150_0000));
}

#[test]
fn a_mask_of_interrupts_is_left_out_and_other_flags_are_not() {
    let skip = change("{ skip-mask = { which = 'all' } }");
    assert_eq!(skip.replaced(0, 0xe121_f00c, None), Some(0xe1a0_0000));
    assert_eq!(skip.replaced(0, 0x1321_f0d3, None), Some(0x11a0_0000));
    for other in [0xe128_f000, 0xe161_f000, 0xe10f_3000, 0xe121_f10c] {
        assert_eq!(skip.replaced(0, other, None), None, "{other:#x}");
    }
}

#[test]
fn a_wrong_address_is_another_register_or_another_step() {
    let other = change("{ wrong-register = { op = '0,c7,c10,1', register = 1, which = 1 } }");
    assert_eq!(other.replaced(0, 0xee07_0f3a, None), Some(0xee07_1f3a));
    let step = change("{ wrong-step = { step = 32, instead = 64, which = 1 } }");
    assert_eq!(step.replaced(0, 0xe280_0020, None), Some(0xe280_0040));
    let pages = change("{ wrong-step = { step = 4096, instead = 8192, which = 1 } }");
    assert_eq!(
        pages.replaced(0, 0xe280_0a01, None).map(immediate),
        Some(8192)
    );
    assert_eq!(pages.replaced(0, 0xe280_1a01, None), None, "other register");
}

#[test]
fn an_aligning_bic_becomes_nothing_and_other_masks_do_not() {
    let skip = change("{ skip-bic = { mask = 31, which = 1 } }");
    assert_eq!(skip.replaced(0, 0xe3c0_001f, None), Some(0xe1a0_0000));
    assert_eq!(skip.replaced(0, 0x13c0_001f, None), Some(0x11a0_0000));
    for other in [0xe3c0_000f, 0xe3c0_101f, 0xe3d0_001f, 0xe380_001f] {
        assert_eq!(skip.replaced(0, other, None), None, "{other:#x}");
    }
}

#[test]
fn an_indirect_call_is_jumped_over() {
    let skip = change("{ skip-indirect = { which = 1 } }");
    // mov lr, pc becomes a branch to the second instruction behind it.
    let new = skip.replaced(0x100, 0xe1a0_e00f, None).unwrap();
    assert_eq!(branch_target(0x100, new), 0x108);
    assert_eq!(skip.replaced(0x100, 0xe1a0_f00e, None), None);
}

#[test]
fn constants_arguments_and_lengths_are_changed() {
    let direction = change("{ wrong-constant = { constant = 1, instead = 2, which = 1 } }");
    // mov r3, #1; movne r3, #1; cmp r2, #1.
    assert_eq!(direction.replaced(0, 0xe3a0_3001, None), Some(0xe3a0_3002));
    assert_eq!(direction.replaced(0, 0x13a0_3001, None), Some(0x13a0_3002));
    assert_eq!(direction.replaced(0, 0xe352_0001, None), Some(0xe352_0002));
    assert_eq!(direction.replaced(0, 0xe3a0_3003, None), None);
    // mov r6, r2 becomes mov r6, #4 or sub r6, r2, #1.
    let argument = change("{ wrong-argument = { register = 2, instead = 4, which = 1 } }");
    assert_eq!(argument.replaced(0, 0xe1a0_6002, None), Some(0xe3a0_6004));
    let length = change("{ short-length = { register = 2, which = 1 } }");
    assert_eq!(length.replaced(0, 0xe1a0_6002, None), Some(0xe242_6001));
    for other in [0xe1a0_6003, 0xe1a0_6102, 0xe1b0_6002] {
        assert_eq!(argument.replaced(0, other, None), None, "{other:#x}");
        assert_eq!(length.replaced(0, other, None), None, "{other:#x}");
    }
}

#[test]
fn the_list_of_dma_names_tests_of_dma_suite_and_keeps_its_program() {
    let path = list_path().with_file_name("mutants-dma.toml");
    assert_eq!(program(&path).unwrap(), "dma_suite");
    assert_eq!(program(&list_path()).unwrap(), "mm_suite");
    let suite = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guest/dma_suite");
    let files = ["network.c", "flash.c", "card.c", "serial.c"].map(|name| suite.join(name));
    let sources = files.map(|file| fs::read_to_string(file).unwrap()).concat();
    let list = load(&path).unwrap();
    assert!(list.len() >= 30);
    for mutant in list {
        if let Some(test) = &mutant.test {
            assert!(sources.contains(&format!("{{ \"{test}\",")), "{test}");
        }
    }
}

#[test]
fn a_list_gives_each_board_its_own_mutants() {
    let path = list_path().with_file_name("mutants-dma.toml");
    let count = |board| load_for(&path, board).map_or(0, |list| list.len());
    assert_eq!(count("sam9x60-ek"), 3);
    assert_eq!(
        count("sam9x60-ek") + count("sam9263-ek"),
        load(&path).unwrap().len()
    );
    let error = load_for(&path, "sam9263").unwrap_err().to_string();
    assert!(
        error.ends_with("no mutant is for the board sam9263"),
        "{error}"
    );
    // A list without boards is for all.
    let all = load(&list_path()).unwrap();
    assert_eq!(load_for(&list_path(), "sam9263").unwrap(), all);
}

#[test]
fn a_mutant_that_does_not_fit_is_named_by_key_and_nearest_name_and_nothing_is_patched() {
    let path = std::env::temp_dir().join(format!("warmswitch-mutants-{}.toml", std::process::id()));
    let good = "[[mutant]]\nname='m'\nfunction='f'\nwhy='w'\nexpect='stale-translation'\ntest='t'\n\
                change={ skip-call = { callee = 'c', which = 1 } }\n";
    for (from, to, part) in [
        ("stale-translation", "stale-tbl", "stale-translation"),
        ("test=", "tset=", "tset"),
        ("test='t'\n", "", "exactly one of test, suite, survives and"),
        ("which = 1", "which = 'some'", "which"),
        ("skip-call", "skip-cal", "skip-call"),
        (
            "skip-call = { callee = 'c',",
            "wrong-register = { op = '0,c7,c10,1', register = 15,",
            "change.register: 15",
        ),
        (
            "skip-call = { callee = 'c',",
            "wrong-step = { step = 32, instead = 257,",
            "change.instead: 257",
        ),
        (
            "skip-call = { callee = 'c',",
            "short-length = { register = 15,",
            "change.register: 15",
        ),
    ] {
        fs::write(&path, good.replace(from, to)).unwrap();
        let error = format!("{:#}", load(&path).unwrap_err());
        assert!(error.contains("mutants") && error.contains(part), "{error}");
    }
    fs::remove_file(&path).unwrap();
    assert!(Cp15::try_from("0,c7,c10".to_string()).is_err());
    assert!(Cp15::try_from("0,c7,c10,4,1".to_string()).is_err());
    assert!(Cp15::try_from("8,c7,c10,4".to_string()).is_err());

    let Some(dir) = built() else { return };
    let image = fs::read(dir.join("Image")).unwrap();
    let calls = "{ skip-call = { callee = 'arm926_flush_user_cache_range', which = 9 } }";
    let typo = "{ skip-call = { callee = 'arm926_flush_user_cache_rang', which = 1 } }";
    for (function, change, part) in [
        (
            "cpu_arm926_swich_mm",
            calls,
            "did you mean \"cpu_arm926_switch_mm\"?",
        ),
        ("change_protection", calls, "found 1"),
        ("change_protection", typo, "change.callee: no function"),
        ("zzzz", calls, "function: no function \"zzzz\""),
    ] {
        let mut mutated = image.clone();
        let error = apply(
            &mut mutated,
            &dir.join("vmlinux"),
            &mutant(function, change),
        );
        let error = format!("{:#}", error.unwrap_err());
        assert!(error.contains(part), "{error}");
        assert!(mutated == image);
    }
}
