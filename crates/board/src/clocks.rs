// SPDX-License-Identifier: MIT OR Apache-2.0
//! Clock rates that a device tree gives to the board's parts (Linux Documentation/devicetree/bindings/clock).
//!
//! A kernel trusts its device tree. If a timer counted a different clock from the one in the tree, the guest's time
//! would silently run fast or slow. Therefore, the SP804 timers count the clock that the tree names.

use crate::fdt::{Node, Tree};
use crate::spec::{DeviceSpec, Peripherals};

const TIMER: &str = "sp804";
/// Longest chain from a clock to the fixed clock from which it is derived.
const DEPTH: usize = 16;
/// Highest clock rate of a part, Hz.
const LARGEST_HZ: u64 = 2_000_000_000;

/// Sets the clock rate of each timer whose clock the tree gives.
///
/// # Errors
/// Fails when the two counters of a timer have different clocks, or when no fixed clock is found for a timer.
pub(crate) fn set(peripherals: &mut Peripherals, tree: &Tree) -> Result<(), String> {
    let timers = peripherals.devices.iter_mut().filter(|d| d.part == TIMER);
    for timer in timers {
        if let Some(hz) = timer_hz(tree, timer)? {
            timer.clock_hz = Some(hz);
        }
    }
    Ok(())
}

/// Returns the clock rate of the device's node, Hz. If the node has three clocks, the third is the bus clock
/// (Documentation/devicetree/bindings/timer/arm,sp804.yaml).
fn timer_hz(tree: &Tree, device: &DeviceSpec) -> Result<Option<u64>, String> {
    let compatible = format!("arm,{}", device.part);
    let is = |node: &Node| {
        let on = !node.texts("status").any(|text| text == "disabled");
        on && cell(node, "reg", 0) == Some(device.base) && node.is(&compatible)
    };
    let Some(node) = tree.root.find(&is) else {
        return Ok(None);
    };
    let Some(first) = cell(node, "clocks", 0) else {
        return Ok(None);
    };
    let hz_of = |phandle| {
        rate(tree, phandle, DEPTH)
            .filter(|hz| (1..=LARGEST_HZ).contains(hz))
            .ok_or(format!(
                "{}: its clock does not lead to a fixed clock of 1 Hz to 2 GHz",
                node.name.escape_debug()
            ))
    };
    let hz = hz_of(first)?;
    let three = cell(node, "clocks", 2).is_some();
    if let Some(second) = cell(node, "clocks", 1).filter(|_| three) {
        let second = hz_of(second)?;
        if second != hz {
            return Err(format!(
                "{}: its two counters have clocks of {hz} Hz and {second} Hz: give both the same clock",
                node.name.escape_debug()
            ));
        }
    }
    Ok(Some(hz))
}

fn rate(tree: &Tree, phandle: u32, depth: usize) -> Option<u64> {
    let clock = tree
        .root
        .find(&|node| node.get_u32("phandle") == Some(phandle))?;
    if clock.is("fixed-clock") {
        return clock.get_u32("clock-frequency").map(u64::from);
    }
    if !clock.is("fixed-factor-clock") {
        return None;
    }
    let parent = rate(tree, cell(clock, "clocks", 0)?, depth.checked_sub(1)?)?;
    let factor = |name| clock.get_u32(name).map(u64::from);
    let (mult, div) = (factor("clock-mult")?, factor("clock-div")?);
    parent.checked_mul(mult)?.checked_div(div)
}

fn cell(node: &Node, property: &str, index: usize) -> Option<u32> {
    let bytes = node.get(property)?.chunks_exact(4).nth(index)?;
    Some(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{BoardSpec, DEFAULT_BOARD};

    /// Makes a tree with an oscillator of 24 MHz, a clock that divides clock `parent` by `div`, and a timer at `base`
    /// that counts the divided clock.
    fn tree(base: u32, div: u32, parent: u32) -> Tree {
        let mut tree = Tree::default();
        let oscillator = tree.root.child_or_new("clock-24000000");
        oscillator.set_text("compatible", "fixed-clock");
        oscillator.set_u32("clock-frequency", 24_000_000);
        oscillator.set_u32("phandle", 1);
        let divided = tree.root.child_or_new("core-module").child_or_new("clock");
        divided.set_text("compatible", "fixed-factor-clock");
        divided.set_u32("clock-mult", 1);
        divided.set_u32("clock-div", div);
        divided.set_u32("clocks", parent);
        divided.set_u32("phandle", 2);
        let timer = tree.root.child_or_new("amba").child_or_new("timer");
        timer.set("compatible", b"arm,sp804\0arm,primecell\0".to_vec());
        timer.set(
            "reg",
            [base, 0x1000]
                .iter()
                .flat_map(|w| w.to_be_bytes())
                .collect(),
        );
        timer.set(
            "clocks",
            [2u32, 2, 1].iter().flat_map(|w| w.to_be_bytes()).collect(),
        );
        tree
    }

    fn clock(tree: &Tree) -> Result<Option<u64>, String> {
        let mut peripherals = BoardSpec::named(DEFAULT_BOARD).unwrap().peripherals;
        let timer = |p: &Peripherals| p.devices.iter().position(|d| d.part == TIMER).unwrap();
        let at = timer(&peripherals);
        peripherals.devices[at].clock_hz = None;
        set(&mut peripherals, tree)?;
        Ok(peripherals.devices[at].clock_hz)
    }

    #[test]
    fn a_timer_counts_what_its_node_says() {
        assert_eq!(clock(&tree(0x101e_2000, 24, 1)), Ok(Some(1_000_000)));
        assert_eq!(clock(&tree(0x101e_2000, 1, 1)), Ok(Some(24_000_000)));
    }

    #[test]
    fn a_tree_that_says_nothing_of_it_changes_nothing() {
        assert_eq!(clock(&tree(0x101e_9000, 24, 1)), Ok(None), "another place");
        assert_eq!(clock(&Tree::default()), Ok(None));
        let mut off = tree(0x101e_2000, 24, 1);
        off.node("/amba/timer")
            .unwrap()
            .set_text("status", "disabled");
        assert_eq!(clock(&off), Ok(None));
    }

    #[test]
    fn what_the_timers_cannot_count_is_an_error() {
        let says = |tree: &Tree, part: &str| {
            let error = clock(tree).unwrap_err();
            assert!(
                error.starts_with("timer: ") && error.contains(part),
                "{error}"
            );
        };
        says(&tree(0x101e_2000, 0, 1), "does not lead to a fixed clock");
        says(&tree(0x101e_2000, 24, 2), "does not lead to a fixed clock");
        says(&tree(0x101e_2000, 24, 9), "does not lead to a fixed clock");
        let mut two = tree(0x101e_2000, 24, 1);
        let clocks = [2u32, 1, 1].iter().flat_map(|w| w.to_be_bytes()).collect();
        two.node("/amba/timer").unwrap().set("clocks", clocks);
        says(&two, "1000000 Hz and 24000000 Hz");
    }
}
