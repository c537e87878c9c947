// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of kernels' device trees.

use super::*;

fn machine(name: &str, compatible: &str, dtb: Option<&str>) -> ForMachine {
    ForMachine {
        name: name.to_owned(),
        compatible: compatible.to_owned(),
        kernel_options: Vec::new(),
        dtb: dtb.map(str::to_owned),
    }
}

#[test]
fn a_kernel_and_a_machine_without_a_common_tree_are_refused() {
    let versatile = machine("versatilepb", "arm,versatile-pb", None);
    let ek = "microchip/at91sam9263ek.dtb";
    let at91 = machine("sam9263-ek", "atmel,at91sam9263", Some(ek));
    check_machine("plain", &versatile).unwrap();
    check_machine("at91-dt", &at91).unwrap();
    check_machine("at91-dt-fcse-best-effort", &at91).unwrap();
    let problem = |kernel, machine| check_machine(kernel, machine).unwrap_err().to_string();
    let text = problem("plain", &at91);
    assert!(text.contains("for \"arm,versatile-pb\", and the board's machine is sam9263-ek"));
    let text = problem("at91-dt+RSEQ=y", &versatile);
    assert!(
        text.contains("the machine versatilepb has no device tree for it"),
        "{text}"
    );
}

#[test]
fn the_machine_selects_the_tree() {
    let dir = std::env::temp_dir().join(format!("warmswitch-trees-{}", std::process::id()));
    fs::create_dir_all(dir.join("from/microchip/deep")).unwrap();
    for name in ["microchip/at91sam9263ek.dtb", "old.dtb", "microchip/.x.cmd"] {
        fs::write(dir.join("from").join(name), name).unwrap();
    }
    let dtbs = dir.join("dtbs");
    copy_trees(&dir.join("from"), &dtbs).unwrap();
    let of = |dtb| tree_for(&dtbs, &machine("m", "c", dtb));
    let found = of(Some("microchip/at91sam9263ek.dtb")).unwrap();
    assert_eq!(fs::read(found).unwrap(), b"microchip/at91sam9263ek.dtb");
    assert_eq!(of(Some("microchip/old.dtb")).unwrap(), dtbs.join("old.dtb"));
    let problem = of(Some("microchip/at91sam9236ek.dtb"))
        .unwrap_err()
        .to_string();
    assert!(
        problem.contains("did you mean \"microchip/at91sam9263ek.dtb\"?"),
        "{problem}"
    );
    assert!(
        of(None)
            .unwrap_err()
            .to_string()
            .contains("the machine m names none")
    );
    assert!(!dtbs.join("microchip/.x.cmd").exists());
    let one = dtbs.join("old.dtb");
    assert_eq!(tree_for(&one, &machine("m", "c", None)).unwrap(), one);
    fs::remove_dir_all(&dir).unwrap();
}
