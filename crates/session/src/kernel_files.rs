// SPDX-License-Identifier: MIT OR Apache-2.0
//! Paths of a kernel's files.

use std::path::{Path, PathBuf};

use board::boot::Place;

use supply::kernel::Kernel;

/// A kernel's files.
#[derive(Clone)]
pub struct KernelFiles {
    /// zImage, Image or vmlinux.
    pub image: PathBuf,
    /// The kernel in the cache, if `image` also contains something else.
    pub part: Option<PathBuf>,
    /// Addresses of the kernel, if `image` is a U-Boot image.
    pub place: Option<Place>,
    /// Device tree, or the folder of the device trees among which the machine selects one.
    pub dtb: PathBuf,
    /// Kernel with symbols, if it is known.
    pub vmlinux: Option<PathBuf>,
    /// Command line that belongs to a named kernel.
    pub command_line: String,
    /// Archive of the kernel's modules, if it has any.
    pub modules: Option<PathBuf>,
}

impl From<&Kernel> for KernelFiles {
    fn from(kernel: &Kernel) -> KernelFiles {
        KernelFiles {
            image: kernel.image.clone(),
            part: None,
            place: None,
            dtb: kernel.dtb.clone(),
            vmlinux: Some(kernel.vmlinux.clone()),
            command_line: kernel.command_line.clone(),
            modules: kernel.modules.clone(),
        }
    }
}

impl KernelFiles {
    /// Returns the files of a kernel when only its image and device tree are known.
    pub fn bare(image: &Path, dtb: &Path) -> KernelFiles {
        KernelFiles {
            image: image.to_path_buf(),
            part: None,
            place: None,
            dtb: dtb.to_path_buf(),
            vmlinux: None,
            command_line: String::new(),
            modules: None,
        }
    }
}
