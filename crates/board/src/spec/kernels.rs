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
#[path = "kernels_tests.rs"]
mod tests;
