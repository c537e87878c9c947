// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a machine file says about the kernels that boot on the machine. Nothing here changes the machine.

use super::reader::{Section, SpecError};

/// Console of a kernel on a machine whose file does not name one.
const TTY: &str = "ttyAMA0";

/// Keys of `[boot]` in a machine file that this part reads.
pub(super) const KEYS: [&str; 3] = ["tty", "kernel", "dtb"];

/// Kernel, device tree and console of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineKernels {
    /// Linux's name of the console, such as `ttyS0`.
    pub tty: String,
    /// Name of the kernel that boots if the user names none. `None` if the board's core selects the kernel.
    pub kernel: Option<String>,
    /// Device tree of Linux for this machine, relative to `arch/arm/boot/dts`: `microchip/at91sam9263ek.dtb`. `None` if
    /// the machine uses only device trees of its own.
    pub dtb: Option<String>,
}

impl Default for MachineKernels {
    fn default() -> MachineKernels {
        MachineKernels {
            tty: TTY.to_owned(),
            kernel: None,
            dtb: None,
        }
    }
}

impl MachineKernels {
    /// Reads the keys, which are all optional.
    pub(super) fn read(boot: &Section<'_>) -> Result<MachineKernels, SpecError> {
        let optional = |key: &str| boot.has(key).then(|| boot.text(key)).transpose();
        let read = MachineKernels {
            tty: optional("tty")?.unwrap_or_else(|| TTY.to_owned()),
            kernel: optional("kernel")?,
            dtb: optional("dtb")?,
        };
        let is_word = |c: char| c.is_ascii_alphanumeric();
        if read.tty.is_empty() || !read.tty.chars().all(is_word) {
            let problem = format!("{:?} is not a name of a console, as ttyS0 is", read.tty);
            return Err(boot.error("tty", problem));
        }
        if let Some(dtb) = &read.dtb
            && (!dtb.ends_with(".dtb") || dtb.starts_with('/') || dtb.split('/').any(|p| p == ".."))
        {
            let problem = format!(
                "{dtb:?} is not a device tree below arch/arm/boot/dts, as microchip/at91sam9263ek.dtb is"
            );
            return Err(boot.error("dtb", problem));
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
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
}
