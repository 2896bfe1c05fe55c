//! `INFO memory`.

use super::lines::Lines;
use super::{View, process};
use crate::shared::Shared;
use std::sync::atomic::Ordering::Relaxed;

/// Where memory is, in bytes. Also what `MEMORY STATS` and `MEMORY DOCTOR` are made from.
#[derive(Clone, Copy, Debug)]
pub struct MemoryUse {
    /// Data, tables and buffers.
    pub used: u64,
    /// The most that `used` ever was.
    pub peak: u64,
    /// What the system says this process holds.
    pub resident: u64,
    /// Tables of the store.
    pub tables: u64,
    /// Entries of the store.
    pub entries: u64,
    /// Nodes of large values.
    pub trees: u64,
    /// What the store holds from the system.
    pub heap_resident: u64,
    /// Buffers of connections.
    pub buffers: u64,
    /// All keys.
    pub keys: u64,
}

impl MemoryUse {
    /// Looks now.
    pub fn of(shared: &Shared) -> Self {
        let used = shared.used_memory();
        let heap = shared.store.heap_use();
        Self {
            used,
            peak: shared.peak_bytes.load(Relaxed).max(used),
            resident: process::resident_bytes(),
            tables: heap.tables_bytes,
            entries: heap.entries_bytes,
            trees: heap.trees_bytes,
            heap_resident: heap.resident_bytes,
            buffers: shared.stats.sum(|party| &party.buffer_bytes),
            keys: (0..shared.store.databases())
                .map(|db| shared.store.dbsize(db))
                .sum(),
        }
    }

    /// What is not data.
    pub fn overhead(&self) -> u64 {
        self.tables + self.buffers
    }

    /// What is data.
    pub fn dataset(&self) -> u64 {
        self.used.saturating_sub(self.overhead())
    }

    /// Bytes of the store in use.
    pub fn heap_used(&self) -> u64 {
        self.tables + self.entries + self.trees
    }
}

/// `part` of `whole`, 0 when there is no whole.
pub fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

/// How much more `larger` is, negative if it is less.
pub fn excess(larger: u64, smaller: u64) -> i64 {
    (larger as i64).saturating_sub(smaller as i64)
}

pub(super) fn memory(view: &View<'_>, lines: &mut Lines) {
    let memory = MemoryUse::of(view.shared);
    let limit = view
        .settings
        .maxmemory
        .bytes(view.shared.facts.machine_bytes);
    lines.size("used_memory", memory.used);
    lines.size("used_memory_rss", memory.resident);
    lines.size("used_memory_peak", memory.peak);
    lines.field(
        "used_memory_peak_perc",
        format_args!("{:.2}%", ratio(memory.used, memory.peak) * 100.0),
    );
    lines.field("used_memory_overhead", memory.overhead());
    lines.field("used_memory_dataset", memory.dataset());
    lines.field(
        "used_memory_dataset_perc",
        format_args!("{:.2}%", ratio(memory.dataset(), memory.used) * 100.0),
    );
    lines.field("allocator_allocated", memory.heap_used());
    lines.field("allocator_active", memory.heap_resident);
    lines.field("allocator_resident", memory.heap_resident);
    lines.size("total_system_memory", view.shared.facts.machine_bytes);
    lines.size("maxmemory", limit);
    lines.field("maxmemory_policy", view.settings.maxmemory_policy.name());
    lines.field(
        "allocator_frag_ratio",
        format_args!("{:.2}", ratio(memory.heap_resident, memory.heap_used())),
    );
    lines.field(
        "allocator_frag_bytes",
        excess(memory.heap_resident, memory.heap_used()),
    );
    lines.field(
        "rss_overhead_ratio",
        format_args!("{:.2}", ratio(memory.resident, memory.heap_resident)),
    );
    lines.field(
        "rss_overhead_bytes",
        excess(memory.resident, memory.heap_resident),
    );
    lines.field(
        "mem_fragmentation_ratio",
        format_args!("{:.2}", ratio(memory.resident, memory.used)),
    );
    lines.field(
        "mem_fragmentation_bytes",
        excess(memory.resident, memory.used),
    );
    lines.field("mem_not_counted_for_evict", 0);
    lines.field("mem_replication_backlog", 0);
    lines.field("mem_total_replication_buffers", 0);
    lines.field("mem_clients_slaves", 0);
    lines.field("mem_clients_normal", memory.buffers);
    lines.field("mem_cluster_links", 0);
    lines.field("mem_aof_buffer", 0);
    lines.field("mem_allocator", "pantala");
    lines.field("active_defrag_running", 0);
    let store = view.shared.store.stats();
    lines.field("lazyfree_pending_objects", store.lazy_waiting);
    lines.field("lazyfreed_objects", store.lazy_freed);
}
