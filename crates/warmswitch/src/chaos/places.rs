// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the places in a kernel at which an interrupt may reveal a bug. Uses the kernel's symbols.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use arm::Mva;
use board::{BoardBus, Machine};
use watch::chaos::Places;
use watch::sections::COUNT_OFFSET;

use base::paths::shown;
use supply::symbols::Symbols;
use supply::variables;

/// Weights of zones or ops, by name.
pub type Weights = BTreeMap<String, u64>;

/// Suffixes of the names of functions that change one or many page-table entries.
const ENTRIES: &[&str] = &[
    "_set_pte_ext",
    "set_ptes",
    "unmap_page_range",
    "move_page_tables",
    "copy_page_range",
    "change_protection",
    "free_pgd_range",
    "tlb_finish_mmu",
    "tlb_flush_mmu",
    "free_pages_and_swap_cache",
    "try_to_unmap_one",
    "do_wp_page",
    "do_swap_page",
    "filemap_map_pages",
    "unmap_mapping_range",
    "update_mmu_cache_range",
];

/// Zones: kinds of memory work in a kernel. Each zone lists prefixes and suffixes of function names.
pub const ZONES: &[(&str, &[&str])] = &[
    (
        "gives-back",
        &[
            "unmap_",
            "zap_",
            "tlb_",
            "free_pgd_range",
            "free_pgtables",
            "free_pages_and_swap_cache",
            "madvise_",
            "do_madvise",
            "do_vmi_",
            "vms_",
            "fcse_flush",
            "flush_cache_range",
        ],
    ),
    // Functions that move pages.
    (
        "moves",
        &[
            "move_",
            "mremap",
            "sys_mremap",
            "userfaultfd_",
            "mfill_",
            "fcse_flush",
            "flush_cache_",
        ],
    ),
    // Functions that copy a process.
    (
        "copies",
        &[
            "copy_page_range",
            "dup_mm",
            "copy_process",
            "copy_mm",
            "fcse_",
            "flush_cache_dup_mm",
        ],
    ),
    // Functions that take rights away.
    (
        "rights",
        &[
            "change_p",
            "mprotect_",
            "do_mprotect",
            "fcse_flush",
            "flush_cache_range",
            "flush_tlb_range",
        ],
    ),
    (
        "faults",
        &[
            "do_wp_page",
            "wp_page_",
            "do_swap_page",
            "do_anonymous_page",
            "do_shared_fault",
            "do_cow_fault",
            "handle_mm_fault",
            "__handle_mm_fault",
            "finish_fault",
            "filemap_map_pages",
            "set_ptes",
            "update_mmu_cache_range",
            "fcse_flush",
            "_copy_user_highpage",
            "_clear_user_highpage",
        ],
    ),
    (
        "files",
        &[
            "truncate_",
            "unmap_mapping_",
            "shmem_",
            "generic_perform_write",
            "generic_file_",
            "filemap_",
            "flush_dcache_",
            "__flush_dcache",
            "splice_",
            "iter_file_splice_write",
        ],
    ),
    // Functions that access memory of other processes.
    (
        "others",
        &[
            "access_remote_vm",
            "__access_remote_vm",
            "process_vm_rw",
            "get_user_pages",
            "__get_user_pages",
            "pin_user_pages",
            "pipe_",
            "vmsplice_",
            "copy_page_",
            "_copy_",
            "iov_iter_",
            "flush_ptrace_access",
            "copy_to_user_page",
            "fcse_",
        ],
    ),
    // Functions that start or end a process.
    (
        "ends",
        &[
            "exec_mmap",
            "begin_new_exec",
            "exit_mmap",
            "exit_mm",
            "do_exit",
            "mmput",
            "__mmput",
            "__mmdrop",
            "free_pgd_range",
            "unmap_vmas",
            "fcse_",
        ],
    ),
    // Functions that change the address space.
    (
        "switches",
        &[
            "switch_mm",
            "_switch_mm",
            "check_and_switch_context",
            "__schedule",
            "fcse_",
            "finish_task_switch",
        ],
    ),
    (
        "reclaims",
        &[
            "shrink_",
            "reclaim_",
            "try_to_unmap",
            "try_to_migrate",
            "swap_",
            "pageout",
            "__swap_",
        ],
    ),
    // Functions that maintain caches and TLB.
    (
        "maintains",
        &[
            "flush_",
            "__flush_",
            "v4wb",
            "vivt_",
            "_cache_range",
            "_set_pte_ext",
            "__sync_icache_dcache",
            "fcse_",
        ],
    ),
];

/// Places in a kernel at which an interrupt may reveal a bug.
pub struct KernelPlaces {
    /// Places that the symbols give. [`KernelPlaces::now`] adds the current task and the zones.
    places: Places,
    zones: Vec<(&'static str, Vec<Range<u32>>)>,
    current: Option<u32>,
}

impl KernelPlaces {
    /// Finds the places through the kernel's symbols. A place remains unknown if its symbol is missing.
    pub fn of(symbols: &Symbols, vmlinux: Option<&Path>) -> KernelPlaces {
        let variable = |name: &str| Some(variables::of(vmlinux?, name)?.address);
        let plain = |name: &str| name.split('.').next().unwrap_or_default().to_string();
        let is_entry = |name: &str| ENTRIES.iter().any(|entry| plain(name).ends_with(entry));
        let zone = |parts: &[&str]| -> Vec<Range<u32>> {
            let is_in_zone = |name: &str| {
                let name = plain(name);
                let mut parts = parts.iter();
                parts.any(|part| name.starts_with(part) || name.ends_with(part))
            };
            let ends = symbols.functions().iter().skip(1).map(|f| f.0);
            let all = symbols.functions().iter().zip(ends);
            all.filter(|(f, _)| is_in_zone(&f.1))
                .map(|(f, end)| f.0..end)
                .collect()
        };
        let kernel = symbols.functions().iter();
        let entries = kernel.filter(|f| is_entry(&f.1)).map(|f| f.0);
        let switch_to = symbols.address("__switch_to");
        KernelPlaces {
            current: variable("__current"),
            places: Places {
                preemption: switch_to.map(|at| (at, 0, COUNT_OFFSET)),
                entries: entries.collect(),
                zones: Vec::new(),
            },
            zones: ZONES
                .iter()
                .map(|(name, parts)| (*name, zone(parts)))
                .collect(),
        }
    }

    /// Returns whether all places that need symbols are known. The zones are not checked.
    fn is_whole(&self) -> bool {
        self.current.is_some()
            && self.places.preemption.is_some()
            && !self.places.entries.is_empty()
    }

    /// Prints a note if the kernel lacks symbols for some of the places.
    pub fn note_what_lacks(&self, image: &Path) {
        if !self.is_whole() {
            eprintln!(
                "note: {} has no vmlinux with symbols beside it: windows that need symbols are not used",
                shown(image)
            );
        }
    }

    /// Returns the places, with the board's current task and the zones' weights. If `weights` is empty, all zones have
    /// equal weights.
    pub fn now<B: BoardBus>(&self, machine: &Machine<B>, weights: &Weights) -> Places {
        let byte = |at: u32| machine.cpu().debug_read(Mva(at)).unwrap_or_default();
        let mut places = self.places.clone();
        let weight = |name: &str| match weights.is_empty() {
            true => 1,
            false => weights.get(name).copied().unwrap_or(0),
        };
        let zones = self.zones.iter().filter(|(_, zone)| !zone.is_empty());
        places.zones = zones
            .map(|(name, zone)| (weight(name), zone.clone()))
            .collect();
        let task = self.current.map(|at| {
            let bytes = [0, 1, 2, 3].map(|n| byte(at.wrapping_add(n)));
            u32::from_le_bytes(bytes)
        });
        places.preemption = places
            .preemption
            .zip(task)
            .map(|((switch_to, _, offset), task)| (switch_to, task, offset));
        places
    }
}
