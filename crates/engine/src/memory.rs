// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory for code. Two mappings show the same pages: code is written through one, which cannot be executed, and
//! executed through the other, which cannot be written.

use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// Bytes of a memory.
pub const BYTES: usize = 16 << 20;
/// Code begins at multiples of this. A name is a number of such units.
const UNIT: usize = 16;

/// A memory to which code is only appended. Code that is there stays valid as long as the memory does.
pub struct CodeMemory {
    written: *mut u8,
    executed: *mut u8,
    /// Ends of the first part, with what is often executed, and of the second.
    used: [AtomicUsize; 2],
}

// SAFETY: The written mapping is used only by `append`, which reserves its bytes first. The executed mapping is only
// read, where `append` has finished.
unsafe impl Send for CodeMemory {}
// SAFETY: See above.
unsafe impl Sync for CodeMemory {}

impl CodeMemory {
    /// Maps an empty memory.
    ///
    /// # Errors
    ///
    /// Fails if the host refuses executable memory.
    pub fn new() -> std::io::Result<CodeMemory> {
        let file = memfd_create("warmswitch code", MemfdFlags::CLOEXEC)?;
        ftruncate(&file, BYTES as u64)?;
        let map = |protection| {
            // SAFETY: The kernel chooses the address, so no other mapping is replaced.
            unsafe {
                mmap(
                    core::ptr::null_mut(),
                    BYTES,
                    protection,
                    MapFlags::SHARED,
                    &file,
                    0,
                )
            }
        };
        let written = map(ProtFlags::READ | ProtFlags::WRITE)?.cast();
        match map(ProtFlags::READ | ProtFlags::EXEC) {
            Ok(executed) => Ok(CodeMemory {
                written,
                executed: executed.cast(),
                used: [AtomicUsize::new(0), AtomicUsize::new(BYTES / 2)],
            }),
            Err(error) => {
                // SAFETY: The mapping was made above and is not used any more.
                let _ = unsafe { munmap(written.cast(), BYTES) };
                Err(error.into())
            }
        }
    }

    /// Address of the first byte, where code is executed.
    pub fn start(&self) -> *const u8 {
        self.executed
    }

    /// Addresses at which the next code of each part will be.
    pub fn ends(&self) -> [usize; 2] {
        let start = self.executed as usize;
        [0, 1].map(|part| start + self.used[part].load(Ordering::Acquire))
    }

    /// Bytes in use.
    pub fn used(&self) -> usize {
        let [first, second] = self.ends();
        first + second - 2 * self.executed as usize - BYTES / 2
    }

    /// Appends code that was made for the addresses [`CodeMemory::ends`]. Returns the name of the first part, or `None`
    /// if the memory is full. The caller is the only one that appends.
    pub fn append(&self, first: &[u8], second: &[u8]) -> Option<u32> {
        let [at, second_at] = [0, 1].map(|part| self.used[part].load(Ordering::Acquire));
        let after = |at: usize, code: &[u8]| (at + code.len()).next_multiple_of(UNIT);
        if after(at, first) > BYTES / 2 || after(second_at, second) > BYTES {
            return None;
        }
        for (part, at, code) in [(1, second_at, second), (0, at, first)] {
            // SAFETY: The bytes are within the mapping, and nobody reads or writes bytes beyond `used`.
            unsafe {
                core::ptr::copy_nonoverlapping(code.as_ptr(), self.written.add(at), code.len())
            };
            self.publish(at, code.len());
            self.used[part].store(after(at, code), Ordering::Release);
        }
        Some((at / UNIT) as u32)
    }
}

impl CodeMemory {
    /// Makes bytes that were written visible to the fetches of all threads. An x86-64 processor does this itself.
    #[cfg(not(target_arch = "aarch64"))]
    fn publish(&self, _at: usize, _bytes: usize) {}

    /// Makes bytes that were written visible to the fetches of all threads.
    ///
    /// The words go from the D-cache to the point where fetches find them. D-caches behave as physically addressed ones,
    /// so the address of either mapping names them. Then all I-caches drop what they have of the executed addresses. Both
    /// operations reach all processors of the process.
    ///
    /// A processor may have fetched the old words before, and may still hold them decoded. It drops them at an ISB. A
    /// machine learns the name of its code from `translate`, which holds a lock, and cannot learn a name while code runs. A
    /// thread that received a machine with its names received them after that. So the ISB at the start of each run, in
    /// `a64::chain::enter`, follows everything that happens here for the code of the run.
    #[cfg(target_arch = "aarch64")]
    fn publish(&self, at: usize, bytes: usize) {
        use core::arch::asm;

        let sizes: usize;
        // SAFETY: Linux lets programs read this register.
        unsafe {
            asm!("mrs {}, ctr_el0", out(reg) sizes, options(nomem, nostack, preserves_flags))
        };
        let lines = |start: *mut u8, field: usize| {
            let size = 4 << (sizes >> field & 15);
            let start = start as usize + at;
            (start & !(size - 1)..start + bytes).step_by(size)
        };
        for line in lines(self.written, 16) {
            // SAFETY: The address is in the written mapping. The operation changes no data.
            unsafe { asm!("dc cvau, {}", in(reg) line, options(nostack, preserves_flags)) };
        }
        // SAFETY: A barrier changes no data.
        unsafe { asm!("dsb ish", options(nostack, preserves_flags)) };
        for line in lines(self.executed, 0) {
            // SAFETY: The address is in the executed mapping. The operation changes no data.
            unsafe { asm!("ic ivau, {}", in(reg) line, options(nostack, preserves_flags)) };
        }
        // SAFETY: As above.
        unsafe { asm!("dsb ish", "isb", options(nostack, preserves_flags)) };
    }
}

impl Drop for CodeMemory {
    fn drop(&mut self) {
        for mapping in [self.written, self.executed] {
            // SAFETY: `new` made the mapping, and the owner of the memory is the last that used it.
            let _ = unsafe { munmap(mapping.cast(), BYTES) };
        }
    }
}
