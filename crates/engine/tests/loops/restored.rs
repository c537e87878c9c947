// SPDX-License-Identifier: MIT OR Apache-2.0
//! States of other programs, and damaged states, in machines with code.

use super::*;

/// Bytes of each cache.
fn size(core: &Core) -> u32 {
    core.cache_bytes.0.max(16384)
}

/// States of other programs, and damaged ones, go into machines with code.
fn restored(core: &'static Core) {
    let mut random = Random(31);
    let mut pairs = Vec::new();
    for n in 0..6 {
        let code = program(
            &mut random,
            WORDS,
            Mix {
                late: n % 2 == 0,
                rare: n > 3,
                pages: n > 1,
                thumb: false,
            },
        );
        let ram = Ram::with(&code, &mut random);
        let mut other = Cpu::new(
            Config::new(core, size(core), size(core), COST).unwrap(),
            ram,
        );
        crate::program::start(&mut other);
        let mut one = other.clone();
        one.set_engine(Some(engine::translator_for(core, 1).unwrap()));
        for cpu in [&mut one, &mut other] {
            cpu.set_pc(0x1_0000);
        }
        both(&mut one, &mut other, 30_000, "first");
        pairs.push((one, other));
    }
    let trials: u32 = std::env::var("TRIALS").map_or(60, |text| text.parse().unwrap());
    let (mut whole, mut damaged, mut refused) = (0, 0, 0);
    for trial in 0..trials {
        let [from, to] = [(); 2].map(|()| random.below(pairs.len() as u64) as usize);
        let mut bytes = saved(&pairs[from].0);
        if trial % 3 > 0 {
            damaged += 1;
            let end = bytes.len() as u64 - (1 << 18) - 16;
            for _ in 0..1 + random.below(3) {
                let at = if random.below(2) == 0 {
                    random.below(300)
                } else {
                    random.below(end)
                };
                bytes[at as usize] ^= 1 << random.below(8);
            }
        } else {
            whole += 1;
        }
        let (one, other) = &mut pairs[to];
        let results = [one, other].map(|cpu| cpu.restore(&mut Saved::new(&bytes)).is_ok());
        assert_eq!(results[0], results[1]);
        if !results[0] {
            refused += 1;
            let (one, other) = &mut pairs[to];
            let good = saved(&pairs_good(core, &mut random));
            for cpu in [one, other] {
                assert!(cpu.restore(&mut Saved::new(&good)).is_ok());
            }
        }
        let (one, other) = &mut pairs[to];
        if random.below(8) == 0 {
            let engine = engine::translator_for(core, random.below(5) as u32).unwrap();
            one.set_engine(if random.below(3) == 0 {
                None
            } else {
                Some(engine)
            });
        }
        for _ in 0..3 {
            let limit = one.cycles() + 1 + random.below(4000);
            if both(one, other, limit, &format!("trial {trial}")) != Exit::Limit {
                break;
            }
        }
    }
    println!(
        "{} restored: {whole} whole, {damaged} damaged, {refused} refused",
        core.name
    );
}

fn pairs_good(core: &'static Core, random: &mut Random) -> Cpu<Ram> {
    let code = straight(random, WORDS);
    let mut cpu = Cpu::new(
        Config::new(core, size(core), size(core), COST).unwrap(),
        Ram::with(&code, random),
    );
    crate::program::start(&mut cpu);
    cpu.set_pc(0x1_0000);
    cpu
}

#[test]
fn restored_states_of_the_arm926ej_s() {
    restored(&ARM926EJS);
}

#[test]
fn restored_states_of_the_arm920t() {
    restored(&ARM920T);
}

#[test]
fn restored_states_of_the_xscale() {
    restored(&IXP42X);
}
