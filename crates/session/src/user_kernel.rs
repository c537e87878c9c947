// SPDX-License-Identifier: MIT OR Apache-2.0
//! A kernel that the user gives by path: zImage, Image, vmlinux or U-Boot image, perhaps with a device tree behind it.
//! Everything that can be checked without a boot is checked here.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use board::BoardSpec;
use board::boot::{Blob, BootError, Place};
use board::fdt::Tree;

use crate::kernel_files::KernelFiles;
use base::paths::shown;
use supply::kernel_file::{self, KernelFile};
use supply::symbols;

/// A kernel's file and its device tree, checked for a board.
pub struct UserKernel {
    /// The path that the user gave.
    path: PathBuf,
    file: KernelFile,
    /// The device tree of `--dtb`, or the one behind the kernel.
    tree: Blob,
    /// Whether the device tree comes from `--dtb`.
    tree_is_given: bool,
    /// The kernel without its compression. `None` if its compression is not known.
    image: Option<Vec<u8>>,
}

fn option(name: &str, error: BootError) -> anyhow::Error {
    anyhow!("--{name} {error}")
}

impl UserKernel {
    /// Reads a kernel and its device tree, and checks that they fit the board and each other.
    pub fn open(kernel: &str, dtb: Option<&Path>, board: &BoardSpec) -> Result<UserKernel> {
        let path = Path::new(kernel);
        let blob = Blob::read(path).map_err(|e| option("kernel", e))?;
        let wrong = |problem: String| anyhow!("--kernel {kernel}: {problem}");
        let file = KernelFile::of(blob.bytes).map_err(wrong)?;
        let place = place(&file);
        let own = Blob {
            name: blob.name,
            bytes: file.kernel.clone(),
        };
        own.check_kernel(board, place)
            .map_err(|e| option("kernel", e))?;
        let tree = match (dtb, &file.tree) {
            (Some(dtb), _) => Blob::read(dtb).map_err(|e| option("dtb", e))?,
            (None, Some(bytes)) => Blob {
                name: format!("{kernel} (device tree behind the kernel)"),
                bytes: bytes.clone(),
            },
            (None, None) => bail!(
                "--kernel {kernel}: a kernel given by path needs --dtb FILE, as no device tree is behind the kernel"
            ),
        };
        let name = if dtb.is_some() { "dtb" } else { "kernel" };
        tree.clone()
            .check_tree(&board.peripherals)
            .map_err(|e| option(name, e))?;
        let image = file.image();
        let opened = UserKernel {
            path: path.to_path_buf(),
            file,
            tree,
            tree_is_given: dtb.is_some(),
            image,
        };
        opened.check_machine()?;
        Ok(opened)
    }

    /// Fails when the kernel names none of the device tree's machines. Such a kernel prints nothing.
    fn check_machine(&self) -> Result<()> {
        let (Some(image), Ok(tree)) = (&self.image, Tree::parse(&self.tree.bytes)) else {
            return Ok(());
        };
        let machines: Vec<&str> = tree.root.texts("compatible").collect();
        // Code that is too short for Linux, such as a test's, has no list of machines.
        let is_linux = image.windows(LINUX.len()).any(|text| text == LINUX);
        if machines.is_empty() || !is_linux || kernel_file::knows_machine(image, &machines) {
            return Ok(());
        }
        bail!(
            "--kernel {}: the kernel is for another machine: it has no code for {} of {}",
            self.path.display(),
            machines
                .iter()
                .map(|name| format!("\"{name}\""))
                .collect::<Vec<_>>()
                .join(", "),
            self.tree.name
        )
    }

    /// Checks a vmlinux that the user gives for this kernel.
    pub fn check_vmlinux(&self, vmlinux: &Path) -> Result<()> {
        let wrong = |problem: String| anyhow!("--vmlinux {}: {problem}", vmlinux.display());
        match &self.image {
            Some(image) => kernel_file::check_vmlinux(vmlinux, image).map_err(wrong),
            None => Ok(()),
        }
    }

    /// Returns the kernel's files. Parts of the user's file are kept in the cache. Prints notes about the device tree
    /// and the names of functions.
    pub fn files(self, dtb: Option<&Path>, vmlinux: Option<&Path>) -> Result<KernelFiles> {
        let dtb = match dtb {
            Some(dtb) => dtb.to_path_buf(),
            None => kernel_file::kept(&self.tree.bytes, "dtb")?,
        };
        self.note_tree();
        let vmlinux = match vmlinux {
            Some(vmlinux) => {
                self.check_vmlinux(vmlinux)?;
                if self.image.is_none() {
                    let file = vmlinux.display();
                    eprintln!(
                        "note: --vmlinux {file}: not compared with the kernel, which gzip did not compress"
                    );
                }
                Some(vmlinux.to_path_buf())
            }
            None => self.symbols()?,
        };
        let place = place(&self.file);
        let is_whole = place.is_none() && self.file.tree.is_none();
        let part = (!is_whole).then(|| kernel_file::kept(&self.file.kernel, "kernel"));
        Ok(KernelFiles {
            vmlinux,
            part: part.transpose()?,
            place,
            ..KernelFiles::bare(&self.path, &dtb)
        })
    }

    fn note_tree(&self) {
        let file = shown(&self.path);
        match (&self.file.tree, self.tree_is_given) {
            (None, _) => {}
            (Some(_), true) => eprintln!(
                "note: {file}: the device tree behind the kernel is not used, as --dtb gives another one"
            ),
            (Some(_), false) => {
                let tree = Tree::parse(&self.tree.bytes).unwrap_or_default();
                let machine = tree.root.texts("compatible").next().unwrap_or("no machine");
                eprintln!(
                    "note: {file}: the device tree behind the kernel is used; it is for \"{machine}\""
                );
            }
        }
    }

    /// Returns a file with the kernel's symbols: a vmlinux near the kernel, or one made from the kernel's own table.
    fn symbols(&self) -> Result<Option<PathBuf>> {
        let (file, near) = (shown(&self.path), symbols::vmlinux_of(&self.path));
        if let Some(near) = near {
            if near == self.path {
                return Ok(Some(near));
            }
            match self
                .image
                .as_ref()
                .map(|image| kernel_file::check_vmlinux(&near, image))
            {
                None | Some(Ok(())) => return Ok(Some(near)),
                Some(Err(problem)) => {
                    eprintln!("note: {}: {problem}: it is not used", shown(&near));
                }
            }
        }
        let made = self.image.as_deref().map(kernel_file::symbols_in);
        let made = made.transpose()?.flatten();
        if made.is_none() {
            eprintln!(
                "note: {file}: no vmlinux with symbols beside it and no kallsyms in it, so functions have no names; \
                 --vmlinux FILE gives them"
            );
        }
        Ok(made)
    }
}

/// Text that every kernel of Linux contains.
const LINUX: &[u8] = b"Linux version ";

fn place(file: &KernelFile) -> Option<Place> {
    file.place.map(|(load, entry)| Place { load, entry })
}
