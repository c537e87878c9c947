// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of `kernel.toml`.

use super::*;

fn linux() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../linux")
}

#[test]
fn the_plain_kernel_is_found_by_its_full_and_its_short_name() {
    assert_eq!(choose(&linux(), "6.12/plain").unwrap().name, "6.12/plain");
    let plain = choose(&linux(), "plain").unwrap();
    assert_eq!(plain.name, "6.12/plain");
    assert!(plain.patches.is_empty());
    assert!(plain.asked.iter().any(|a| a.symbol == "CONFIG_CPU_ARM926T"));
}

#[test]
fn an_unknown_kernel_gets_the_nearest_name() {
    let error = choose(&linux(), "6.12/plian").unwrap_err().to_string();
    assert!(error.contains("did you mean \"6.12/plain\"?"), "{error}");
}

#[test]
fn a_variant_can_be_anothers_build_told_something_else() {
    let one = choose(&linux(), "6.12/fcse-best-effort").unwrap();
    let other = choose(&linux(), &one.built).unwrap();
    assert_eq!(other.name, "6.12/fcse-guaranteed");
    assert_eq!(
        (one.fragments, one.patches),
        (other.fragments, other.patches)
    );
    assert_eq!(one.command_line, "fcse=best-effort");
    assert_ne!(one.mutants, other.mutants);
}

#[test]
fn a_number_after_the_name_is_a_layout_of_its_code() {
    let at = |name: &str| choose(&linux(), name);
    let (one, other) = (
        at("fcse-best-effort@7").unwrap(),
        at("fcse-best-effort").unwrap(),
    );
    assert_eq!(
        (&*one.name, &*one.built),
        ("6.12/fcse-best-effort@7", "6.12/fcse-guaranteed@7")
    );
    assert_eq!(one.patches.len(), other.patches.len() + 1);
    assert!(one.fragments.ends_with("CONFIG_CODE_LAYOUT=7\n"));
    assert_eq!(one.command_line, other.command_line);
    for name in ["plain@", "plain@0", "plain@1000", "plain@x", "plain@1@2"] {
        let error = at(name).unwrap_err().to_string();
        assert!(error.contains("from 1 to 999"), "{error}");
    }
}

#[test]
fn options_after_the_name_replace_those_of_the_fragments() {
    let at = |name: &str| choose(&linux(), name);
    let one = at("fcse-best-effort+VMSPLIT_3G=n+CONFIG_RSEQ=y@7").unwrap();
    let built = "6.12/fcse-guaranteed+RSEQ=y+VMSPLIT_3G=n@7";
    assert_eq!(one.built, built);
    assert_eq!(
        one.variant().title,
        at("fcse-best-effort").unwrap().variant().title
    );
    let last = "CONFIG_RSEQ=y\nCONFIG_VMSPLIT_3G=n\nCONFIG_CODE_LAYOUT=7\n";
    assert!(one.fragments.ends_with(last), "{}", one.fragments);
    let asked: Vec<_> = one
        .asked
        .iter()
        .filter(|a| a.symbol == "CONFIG_VMSPLIT_3G")
        .collect();
    assert_eq!((asked.len(), asked[0].value.as_deref()), (1, None));
    let error = at("plian+RSEQ=y").unwrap_err().to_string();
    assert!(error.contains("did you mean \"plain\"?"), "{error}");
}

#[test]
fn kernels_are_listed_in_the_order_of_the_file() {
    let names: Vec<String> = list(&linux())
        .unwrap()
        .into_iter()
        .map(|(n, _)| n)
        .collect();
    let text = fs::read_to_string(linux().join("6.12/kernel.toml")).unwrap();
    let in_file = text
        .lines()
        .filter_map(|line| line.strip_prefix("[variant.")?.strip_suffix(']'));
    let in_file: Vec<String> = in_file.map(|name| format!("6.12/{name}")).collect();
    assert_eq!(names[..in_file.len()], in_file);
    assert!(names[in_file.len()].starts_with("7.3/"), "{names:?}");
}

#[test]
fn a_title_stands_by_itself() {
    for (name, title) in list(&linux()).unwrap() {
        let version = name.split('/').next().unwrap_or_default();
        assert!(
            title.starts_with(&format!("Linux {version}")),
            "{name}: {title}"
        );
        assert!(title.chars().count() <= 90, "{name}: {title}");
    }
}

#[test]
fn a_variant_is_the_same_as_one_that_is_built() {
    let file = fs::read_to_string(linux().join("6.12/kernel.toml")).unwrap();
    let error = |variant: &str| {
        let spec = toml::from_str(&format!("{file}\n[variant.x]\ntitle = \"\"\n{variant}"));
        built(&spec.unwrap(), "x").unwrap_err().to_string()
    };
    let unknown = error("same_as = \"plian\"");
    assert!(unknown.contains("did you mean \"plain\"?"), "{unknown}");
    let twice = error("same_as = \"fcse-best-effort\"");
    assert!(twice.contains("has same_as itself"), "{twice}");
    let both = error("same_as = \"plain\"\npatches = [\"fcse\"]");
    assert!(
        both.contains("variant.x.patches: same_as takes it from \"plain\""),
        "{both}"
    );
}

#[test]
fn a_variant_can_have_modules_and_a_device_tree_of_its_own() {
    let plain = choose(&linux(), "6.12/plain").unwrap();
    assert_eq!((plain.modules.len(), &plain.dts), (0, &plain.common_dts));
    let latency = choose(&linux(), "6.12/fcse-best-effort-latency").unwrap();
    assert!(latency.modules[0].ends_with("uio_latency"));
    assert_ne!(latency.dts, latency.common_dts);
    assert!(latency.command_line.contains("threadirqs"));
}

#[test]
fn a_kernel_of_a_defconfig_can_replace_one_of_linux_own_device_trees() {
    let replaced = |name: &str| choose(&linux(), name).unwrap().replaced_tree();
    let tree = PathBuf::from("microchip/at91sam9263ek.dtb");
    assert_eq!(replaced("6.12/at91-dt-latency"), Some(tree));
    for name in ["6.12/at91-dt", "6.12/plain", "6.12/plain-latency"] {
        assert_eq!(replaced(name), None, "{name}");
    }
    let mut spec = read(&linux().join("6.12/kernel.toml")).unwrap();
    for dts in ["at91sam9263ek.dts", "dts/at91sam9263ek.dts", "dts/x/y.dtb"] {
        spec.variant.get_mut("at91-dt-latency").unwrap().dts = Some(dts.to_string());
        let error = check_defconfig(&spec, "at91-dt-latency")
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("write dts/FOLDER/NAME.dts to replace"),
            "{error}"
        );
    }
}

#[test]
fn an_unknown_key_is_named_with_its_file() {
    let dir = std::env::temp_dir().join(format!("warmswitch-spec-{}", std::process::id()));
    fs::create_dir_all(dir.join("1.0")).unwrap();
    let good = fs::read_to_string(linux().join("6.12/kernel.toml")).unwrap();
    fs::write(dir.join("1.0/kernel.toml"), good.replace("steps", "stepz")).unwrap();
    let error = format!("{:#}", choose(&dir, "plain").unwrap_err());
    assert!(
        error.contains("1.0/kernel.toml") && error.contains("stepz"),
        "{error}"
    );
    fs::write(dir.join("1.0/kernel.toml"), good).unwrap();
    let error = format!("{:#}", choose(&dir, "plain").unwrap_err());
    assert!(error.contains("variant.plain.configs"), "{error}");
    fs::remove_dir_all(&dir).unwrap();
}
