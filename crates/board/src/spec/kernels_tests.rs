// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of what a machine file says about kernels.

use super::MachineKernels;
use crate::spec::{BoardSpec, DEFAULT_BOARD, Peripherals};

const MACHINE: &str = include_str!("../../../../boards/machine/versatilepb.toml");

/// Reads the machine file with more lines in its table `[boot]`.
fn with(lines: &str) -> Result<MachineKernels, String> {
    let text = MACHINE.replacen("[boot]\n", &format!("[boot]\n{lines}\n"), 1);
    let read = Peripherals::parse("m.toml", &text);
    read.map(|machine| machine.kernels)
        .map_err(|error| error.to_string())
}

#[test]
fn the_keys_are_optional_and_checked() {
    assert_eq!(with(""), Ok(MachineKernels::default()));
    let all = with("tty = \"ttyS0\"\nkernel = \"at91-dt\"\ndtb = \"microchip/x.dtb\"").unwrap();
    assert_eq!(all.tty, "ttyS0");
    assert_eq!(all.kernel.as_deref(), Some("at91-dt"));
    assert_eq!(all.dtb.as_deref(), Some("microchip/x.dtb"));
    let problem = with("tty = \"ttyS0 root=x\"").unwrap_err();
    assert!(problem.starts_with("m.toml: boot.tty: "), "{problem}");
    for bad in ["microchip/x.dts", "/x.dtb", "../x.dtb"] {
        let problem = with(&format!("dtb = {bad:?}")).unwrap_err();
        assert!(problem.starts_with("m.toml: boot.dtb: "), "{problem}");
    }
}

#[test]
fn a_kernel_does_not_change_the_identity_of_a_board() {
    let board = BoardSpec::named(DEFAULT_BOARD).unwrap();
    let mut other = board.clone();
    other.peripherals.kernels.tty = "ttyS0".to_owned();
    assert_eq!(other.identity(), board.identity());
}
