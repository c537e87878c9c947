// SPDX-License-Identifier: MIT OR Apache-2.0
//! The amount of RAM that a kernel uses. `mem=` on the kernel's command line sets the amount; without it, the kernel
//! uses all RAM of the board (Linux arch/arm/kernel/setup.c, `early_mem`).

/// Returns the bytes that the kernel uses, counted from the start of RAM. The board has `size` bytes at `base`.
///
/// # Errors
/// Fails when a `mem=` names RAM that the board does not have, or when no `mem=` begins at the start of RAM, where the
/// kernel lies.
pub(super) fn usable(command_line: &str, base: u32, size: u32) -> Result<u32, String> {
    let (base, size) = (u64::from(base), u64::from(size));
    let words = command_line.split_whitespace();
    // Words after `--` are arguments of the first process.
    let words = words.take_while(|word| *word != "--");
    let mut end = None;
    for word in words.filter(|word| word.starts_with("mem=")) {
        let (start, bytes) = bank(&word["mem=".len()..], base)
            .ok_or_else(|| format!("{word}: give a size, as in mem=32M"))?;
        // The kernel takes whole pages.
        let bytes = bytes & !0xfff;
        if start < base || start.saturating_add(bytes) > base + size {
            return Err(format!(
                "{word}: the board's RAM is {base:#010x} to {:#010x} ({} MB): stay within it",
                base + size,
                size >> 20
            ));
        }
        let first = if start == base { bytes } else { 0 };
        end = Some(first.max(end.unwrap_or(0)));
    }
    match end {
        Some(0) => Err(format!(
            "mem=: the kernel lies at {base:#010x}: one mem= must give RAM that begins there"
        )),
        Some(bytes) => Ok(bytes as u32),
        None => Ok(size as u32),
    }
}

/// Reads `SIZE[@START]`. Ignores text after a number, as the kernel does. Returns start and size.
fn bank(text: &str, base: u64) -> Option<(u64, u64)> {
    let (bytes, rest) = number(text)?;
    match rest.strip_prefix('@') {
        Some(start) => Some((number(start)?.0, bytes)),
        None => Some((base, bytes)),
    }
}

/// Reads a number as the kernel does, with an optional K, M or G. Returns the number and the text that follows.
fn number(text: &str) -> Option<(u64, &str)> {
    let (radix, digits) = match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &text[2..]),
        [b'0', b'0'..=b'7', ..] => (8, &text[1..]),
        _ => (10, text),
    };
    let end = digits.find(|c: char| !c.is_digit(radix));
    let (digits, rest) = digits.split_at(end.unwrap_or(digits.len()));
    let number = u64::from_str_radix(digits, radix).ok()?;
    let (shift, rest) = match rest.as_bytes().first() {
        Some(b'k' | b'K') => (10, &rest[1..]),
        Some(b'm' | b'M') => (20, &rest[1..]),
        Some(b'g' | b'G') => (30, &rest[1..]),
        _ => (0, rest),
    };
    Some((number.checked_mul(1 << shift)?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u32 = 1 << 20;

    #[test]
    fn mem_says_how_much_of_the_ram_a_kernel_uses() {
        let bytes = |words: &str| usable(words, 0, 64 * MB);
        assert_eq!(bytes("quiet"), Ok(64 * MB));
        assert_eq!(bytes("mem=32M quiet"), Ok(32 * MB));
        assert_eq!(bytes("mem=0x2000k"), Ok(8 * MB));
        assert_eq!(bytes("mem=16M mem=32M@0x0 mem=1M@48M"), Ok(32 * MB));
        assert_eq!(bytes("-- mem=1M"), Ok(64 * MB));
        assert_eq!(bytes("memmap=1M"), Ok(64 * MB));
    }

    #[test]
    fn what_the_board_does_not_have_is_refused_by_the_word() {
        let problem = |words: &str| usable(words, 0, 64 * MB).unwrap_err();
        assert!(
            problem("mem=80M")
                .contains("mem=80M: the board's RAM is 0x00000000 to 0x04000000 (64 MB): ")
        );
        assert!(problem("mem=16M@56M").contains("mem=16M@56M"));
        assert!(problem("mem=lots").contains("mem=lots: give a size"));
        assert!(problem("mem=99999999999999999999G").contains("give a size"));
        assert!(problem("mem=18446744073709551615").contains("the board's RAM is"));
        assert!(problem("mem=16M@16M").contains("the kernel lies at 0x00000000"));
        assert!(problem("mem=0").contains("the kernel lies at"));
        assert!(problem("mem=").contains("mem=: give a size"));
    }
}
