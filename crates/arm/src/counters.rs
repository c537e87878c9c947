// SPDX-License-Identifier: MIT OR Apache-2.0
//! What happened inside the core. Counters see inside and never influence the run.

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Event counts and cycle sums since power-on. Subtract two snapshots for a window.
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

            /// What was counted since `earlier`.
            pub fn since(&self, earlier: &Counters) -> Counters {
                Counters { $($name: self.$name - earlier.$name,)* }
            }
        }
    };
}

counters! {
    /// Instructions executed, condition failures included.
    instructions,
    /// Cycles spent waiting for interrupt.
    idle_cycles,
    /// Cycles lost to register interlocks.
    interlock_cycles,
    /// I-cache lines filled.
    icache_fills,
    /// Cycles instruction fetch waited for line fills.
    icache_fill_cycles,
    /// Uncached instruction fetches from the bus.
    uncached_fetches,
    /// Cycles waited for uncached instruction fetches.
    uncached_fetch_cycles,
    /// D-cache lines filled.
    dcache_fills,
    /// Cycles loads waited for line fills.
    dcache_fill_cycles,
    /// Dirty lines (either half) written back because they were victims of a fill.
    dcache_victims,
    /// Dirty lines written back by CP15 operations.
    dcache_cleans,
    /// Half-lines of 16 bytes written back, for whatever reason.
    dcache_halves_written,
    /// Cycles spent in CP15 cache operations (issue, test, write-back waits).
    cache_op_cycles,
    /// Test-and-clean operations executed.
    test_clean_ops,
    /// Whole-cache invalidations of the I-cache.
    icache_invalidates,
    /// Uncached or device data reads.
    uncached_reads,
    /// Cycles waited for uncached or device data reads.
    uncached_read_cycles,
    /// Data accesses translated by the TLB in the slow path that missed it (table walks).
    tlb_walks,
    /// Cycles spent in table walks.
    tlb_walk_cycles,
    /// TLB invalidate-all operations.
    tlb_invalidates,
    /// Stores that went to the write buffer.
    buffered_stores,
    /// Cycles stores or loads waited for the write buffer (full, conflicting, unbuffered, drain).
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
