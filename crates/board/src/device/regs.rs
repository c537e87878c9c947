// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bus access code that parts share: byte lanes, PrimeCell identification, and the texts of refusals.
//!
//! A PrimeCell is behind the AHB-to-APB bridge. APB has no transfer size, so the part always sees a whole word. A
//! narrow read therefore returns the lanes that it asked for. A narrow write to lane 0 reaches the register as a whole
//! word. Drivers write this way only to registers of 8 or 16 bits. A narrow write to another lane is refused, since its
//! effect depends on the bridge.

use super::Unmodelled;
use arm::Width;

/// Reason for a refusal of an access to a register that the model does not have.
pub(crate) const NO_REGISTER: &str = "the model has no such register";

/// Returns the lanes of `word` that a read of `width` at `offset` asks for.
pub(crate) fn lanes(word: u32, offset: u32, width: Width) -> u32 {
    (word >> ((offset & 3) * 8)) & width.mask()
}

/// Replaces the lanes of `word` that a write of `width` at `offset` reaches, for parts with byte enables.
pub(crate) fn merge(word: u32, offset: u32, width: Width, value: u32) -> u32 {
    let shift = (offset & 3) * 8;
    let mask = width.mask() << shift;
    (word & !mask) | ((value << shift) & mask)
}

/// Returns an identification register at 0xfe0..=0xffc. The first four are the peripheral ID, the last four the
/// PrimeCell ID.
pub(crate) fn primecell_id(periphid: u32, reg: u32) -> Option<u32> {
    const CELL_ID: u32 = 0xb105_f00d;
    match reg {
        0xfe0..=0xfec => Some((periphid >> ((reg - 0xfe0) / 4 * 8)) & 0xff),
        0xff0..=0xffc => Some((CELL_ID >> ((reg - 0xff0) / 4 * 8)) & 0xff),
        _ => None,
    }
}

/// Makes the message of a read that the model does not cover.
pub(crate) fn bad_read(part: &str, offset: u32, width: Width) -> Unmodelled {
    let bits = width.bytes() * 8;
    Unmodelled(format!(
        "{part}: {bits}-bit read of offset {offset:#x}: {NO_REGISTER}"
    ))
}

/// Makes the message of a write that the model does not cover.
pub(crate) fn bad_write(part: &str, offset: u32, value: u32, why: &str) -> Unmodelled {
    Unmodelled(format!(
        "{part}: write of {value:#x} to offset {offset:#x}: {why}"
    ))
}

/// Reads from a part on APB. `get` returns whole registers, and `None` where the part has no register.
pub(crate) fn apb_read(
    part: &str,
    periphid: Option<u32>,
    offset: u32,
    width: Width,
    get: impl FnOnce(u32) -> Option<u32>,
) -> Result<u32, Unmodelled> {
    let reg = offset & !3;
    periphid
        .and_then(|id| primecell_id(id, reg))
        .or_else(|| get(reg))
        .map(|word| lanes(word, offset, width))
        .ok_or_else(|| bad_read(part, offset, width))
}

/// Writes to a part on APB. Writes to identification registers have no effect.
pub(crate) fn apb_write(
    part: &str,
    periphid: Option<u32>,
    offset: u32,
    value: u32,
    set: impl FnOnce(u32, u32) -> Result<(), &'static str>,
) -> Result<(), Unmodelled> {
    if offset & 3 != 0 {
        return Err(bad_write(
            part,
            offset,
            value,
            "narrow write to a lane other than the register's lowest",
        ));
    }
    if periphid.is_some_and(|id| primecell_id(id, offset).is_some()) {
        return Ok(());
    }
    set(offset, value).map_err(|why| bad_write(part, offset, value, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_reads_return_their_lane() {
        assert_eq!(lanes(0x4433_2211, 0x12, Width::Byte), 0x33);
        assert_eq!(lanes(0x4433_2211, 0x12, Width::Half), 0x4433);
        assert_eq!(lanes(0x4433_2211, 0x10, Width::Word), 0x4433_2211);
    }

    #[test]
    fn merged_writes_leave_other_lanes() {
        assert_eq!(merge(0x4433_2211, 1, Width::Byte, 0xaa), 0x4433_aa11);
        assert_eq!(merge(0x4433_2211, 2, Width::Half, 0xbbaa), 0xbbaa_2211);
    }

    #[test]
    fn identification_reads_byte_by_byte() {
        let id: Vec<u32> = (0..8)
            .map(|i| primecell_id(0x0014_1011, 0xfe0 + 4 * i).unwrap())
            .collect();
        assert_eq!(id, [0x11, 0x10, 0x14, 0x00, 0x0d, 0xf0, 0x05, 0xb1]);
    }

    #[test]
    fn a_refusal_names_part_value_and_offset() {
        let e = apb_write("pl011", None, 0x80, 3, |_, _| Err(NO_REGISTER)).unwrap_err();
        assert_eq!(
            e.0,
            "pl011: write of 0x3 to offset 0x80: the model has no such register"
        );
    }
}
