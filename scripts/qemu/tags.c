// SPDX-License-Identifier: MIT OR Apache-2.0
// A plugin of QEMU that looks up the tags of two caches, and does nothing else. Its time is the least that a model of
// caches costs in QEMU. It counts accesses and misses. It holds no data, and it ignores its options.
#include <inttypes.h>
#include <qemu-plugin.h>
#include <stdio.h>
#include <string.h>

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

// Caches of the default board: 16 KB each, 4 ways, lines of 32 bytes.
enum { WAYS = 4, SETS = 128, LINE_BITS = 5 };

typedef struct {
    uint64_t tags[SETS][WAYS];
    uint64_t accesses, misses;
    unsigned next;
} Cache;

static Cache code, data;

static inline void look_up(Cache *cache, uint64_t address)
{
    uint64_t tag = address >> LINE_BITS;
    uint64_t *set = cache->tags[tag % SETS];

    cache->accesses++;
    for (int way = 0; way < WAYS; way++)
        if (set[way] == tag)
            return;
    cache->misses++;
    set[cache->next++ % WAYS] = tag;
}

static void at_instruction(unsigned cpu, void *address)
{
    look_up(&code, (uintptr_t)address);
}

static void at_access(unsigned cpu, qemu_plugin_meminfo_t info, uint64_t address, void *unused)
{
    look_up(&data, address);
}

static void at_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *block)
{
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(block); i++) {
        struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(block, i);

        qemu_plugin_register_vcpu_mem_cb(instruction, at_access, QEMU_PLUGIN_CB_NO_REGS,
                                         QEMU_PLUGIN_MEM_RW, NULL);
        qemu_plugin_register_vcpu_insn_exec_cb(
            instruction, at_instruction, QEMU_PLUGIN_CB_NO_REGS,
            (void *)(uintptr_t)qemu_plugin_insn_vaddr(instruction));
    }
}

static void at_end(qemu_plugin_id_t id, void *unused)
{
    char text[200];

    snprintf(text, sizeof text,
             "code: %" PRIu64 " accesses, %" PRIu64 " misses; data: %" PRIu64 " accesses, %" PRIu64
             " misses\n",
             code.accesses, code.misses, data.accesses, data.misses);
    qemu_plugin_outs(text);
}

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc,
                                           char **argv)
{
    qemu_plugin_register_vcpu_tb_trans_cb(id, at_translation);
    qemu_plugin_register_atexit_cb(id, at_end, NULL);
    return 0;
}
