// SPDX-License-Identifier: MIT OR Apache-2.0
//! Event counters of the core. The counters never influence the run.

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Event counts and cycle sums since power-on. Subtract two snapshots to get the counts of a window.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
        pub struct Counters {
            $($(#[$doc])* pub $name: u64,)*
        }

        crate::state!(Counters: $($name),*);

        impl Counters {
            /// Names and values, in declaration order.
            pub fn entries(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name),)*]
            }

            /// Counts since `earlier`.
            pub fn since(&self, earlier: &Counters) -> Counters {
                Counters { $($name: self.$name - earlier.$name,)* }
            }
        }
    };
}

counters! {
    /// Instructions executed, including those whose condition failed.
    instructions,
    /// Cycles spent waiting for an interrupt.
    idle_cycles,
    /// Cycles lost to register interlocks.
    interlock_cycles,
    /// I-cache lines filled.
    icache_fills,
    /// Cycles for which instruction fetch waited for line fills.
    icache_fill_cycles,
    /// Uncached instruction fetches from the bus.
    uncached_fetches,
    /// Cycles for which instruction fetch waited for uncached fetches.
    uncached_fetch_cycles,
    /// D-cache lines filled.
    dcache_fills,
    /// Cycles for which loads waited for line fills.
    dcache_fill_cycles,
    /// Dirty lines that a fill evicted and wrote back. A line counts once even if both halves are dirty.
    dcache_victims,
    /// Dirty lines written back by CP15 operations.
    dcache_cleans,
    /// Half-lines of 16 bytes written back, by evictions and by CP15 operations.
    dcache_halves_written,
    /// Cycles spent in CP15 cache operations, including issue, tests and waits for write-backs.
    cache_op_cycles,
    /// Test-and-clean operations executed.
    test_clean_ops,
    /// Invalidations of the whole I-cache.
    icache_invalidates,
    /// Data reads from uncached pages and devices.
    uncached_reads,
    /// Cycles for which the core waited for uncached reads.
    uncached_read_cycles,
    /// Translation-table walks: slow-path translations that missed the TLB.
    tlb_walks,
    /// Cycles spent in translation-table walks.
    tlb_walk_cycles,
    /// TLB invalidate-all operations.
    tlb_invalidates,
    /// Stores that bypassed the D-cache, through the write buffer or unbuffered.
    buffered_stores,
    /// Cycles for which loads and stores waited for an unbuffered store or for the write buffer. They wait for the
    /// buffer if it is full, has a conflict, or must drain.
    write_wait_cycles,
    /// Exceptions entered: undefined, SWI, aborts, IRQ, FIQ.
    exceptions,
    /// IRQ exceptions entered.
    irqs,
    /// Writes to the translation table base register.
    ttb_writes,
    /// Writes to the FCSE PID register.
    pid_writes,
}
