// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of symbols inside a kernel's Image (Linux scripts/kallsyms.c).
//!
//! The table has no header. Its parts follow each other, and they check each other: a table of 256 tokens, an index of
//! the tokens, the compressed names, and markers with the position of every 256th name. Addresses follow the index of
//! the tokens (from Linux 6.4 on), or come before the number of names. Linux 6.2 and 6.3 have another order, which is
//! not read.

/// A symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Virtual address.
    pub address: u32,
    /// Type, as `nm` prints it: `T` is a global function.
    pub kind: u8,
    /// Name.
    pub name: String,
}

/// Number of tokens.
const TOKENS: usize = 256;
/// Names between two markers.
const STEP: usize = 256;
/// Digits, which are tokens of their own in every kernel.
const DIGITS: &[u8] = b"0\x001\x002\x003\x004\x005\x006\x007\x008\x009\x00";
/// Lowest address of a kernel.
const LOWEST: u32 = 0x4000_0000;
/// Most bytes of 256 compressed names.
const LONGEST_STEP: usize = STEP * 130;

fn word(image: &[u8], at: usize) -> Option<u32> {
    let word = image.get(at..at.checked_add(4)?)?;
    word.first_chunk().copied().map(u32::from_le_bytes)
}

/// Tokens of the names, with the places of their table and of the end of their index.
struct Tokens<'a> {
    texts: Vec<&'a [u8]>,
    start: usize,
    end: usize,
}

impl<'a> Tokens<'a> {
    /// Reads the tokens if their table has the token `0` at this place.
    fn around(image: &'a [u8], zero: usize) -> Option<Tokens<'a>> {
        let mut after = zero;
        for _ in usize::from(b'0')..TOKENS {
            let length = image.get(after..)?.iter().take(128).position(|b| *b == 0)?;
            after += length + 1;
        }
        let index = after.next_multiple_of(4);
        let entries = image.get(index..index + 2 * TOKENS)?.chunks_exact(2);
        let entries = entries.map(|e| usize::from(u16::from_le_bytes([e[0], e[1]])));
        let entries: Vec<usize> = entries.collect();
        let start = zero.checked_sub(entries[usize::from(b'0')])?;
        let mut texts = Vec::with_capacity(TOKENS);
        for (n, entry) in entries.iter().enumerate() {
            let at = start + entry;
            let next = entries.get(n + 1).map_or(after, |next| start + next);
            let text = image.get(at..next.checked_sub(1)?)?;
            let ends = image.get(next - 1) == Some(&0);
            (ends && !text.contains(&0)).then_some(())?;
            texts.push(text);
        }
        let whole = entries[0] == 0 && start.is_multiple_of(4);
        whole.then_some(Tokens {
            texts,
            start,
            end: index + 2 * TOKENS,
        })
    }
}

/// Names of the symbols, with the place of their number.
struct Names<'a> {
    names: Vec<&'a [u8]>,
    number_at: usize,
}

impl<'a> Names<'a> {
    /// Finds the names before their markers, which end at `end`.
    fn before(image: &'a [u8], end: usize) -> Option<Names<'a>> {
        let mut markers = vec![word(image, end.checked_sub(4)?)?];
        while *markers.last()? != 0 {
            let at = end.checked_sub(4 * (markers.len() + 1))?;
            let before = word(image, at)?;
            (before < *markers.last()?).then_some(())?;
            markers.push(before);
        }
        markers.reverse();
        let first = end - 4 * markers.len();
        let last = *markers.last()? as usize;
        let highest = first.checked_sub(last + 4)?;
        let lowest = highest.saturating_sub(LONGEST_STEP);
        let mut places = (lowest..=highest).rev().filter(|at| at.is_multiple_of(4));
        places.find_map(|number_at| {
            let number = word(image, number_at)? as usize;
            let fits = number.div_ceil(STEP) == markers.len();
            let (names, after) = fits.then(|| names(image, number_at + 4, number, &markers))??;
            (after.next_multiple_of(4) == first).then_some(Names { names, number_at })
        })
    }
}

/// Reads compressed names. Returns the names and their end. Fails when a marker is wrong.
fn names<'a>(
    image: &'a [u8],
    start: usize,
    number: usize,
    markers: &[u32],
) -> Option<(Vec<&'a [u8]>, usize)> {
    let mut at = start;
    let mut names = Vec::with_capacity(number);
    for n in 0..number {
        if n.is_multiple_of(STEP) && markers[n / STEP] as usize != at - start {
            return None;
        }
        let mut length = usize::from(*image.get(at)?);
        at += 1;
        if length & 0x80 != 0 {
            length = length & 0x7f | usize::from(*image.get(at)?) << 7;
            at += 1;
        }
        names.push(image.get(at..at + length)?);
        at += length;
    }
    Some((names, at))
}

/// Returns the addresses of `number` symbols, relative to `base`, if they are in order.
fn addresses(image: &[u8], at: usize, number: usize, base: u32) -> Option<Vec<u32>> {
    let words = image.get(at..at.checked_add(4 * number)?)?.chunks_exact(4);
    let words = words.map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]]));
    let all: Vec<u32> = words.map(|word| base.wrapping_add(word)).collect();
    let in_order = all.is_sorted() && all.first().is_some_and(|first| *first >= LOWEST);
    in_order.then_some(all)
}

/// Finds the addresses behind the index of the tokens or before the number of names.
fn places(image: &[u8], names: &Names<'_>, tokens: &Tokens<'_>) -> Option<Vec<u32>> {
    let number = names.names.len();
    let after = tokens.end.next_multiple_of(4);
    let relative = |at: usize, base_at: usize| {
        let base = word(image, base_at).filter(|base| *base >= LOWEST)?;
        addresses(image, at, number, base)
    };
    let before = |words: usize| names.number_at.checked_sub(4 * (number + words));
    relative(after, after + 4 * number)
        .or_else(|| relative(before(1)?, names.number_at.checked_sub(4)?))
        .or_else(|| addresses(image, before(0)?, number, 0))
}

/// Returns the symbols in an Image, by address. Returns `None` if the Image has no table that can be read.
pub fn find(image: &[u8]) -> Option<Vec<Symbol>> {
    let zeros = image.windows(DIGITS.len()).enumerate();
    let mut zeros = zeros.filter(|(_, w)| w[0] == b'0' && *w == DIGITS);
    zeros.find_map(|(zero, _)| {
        let tokens = Tokens::around(image, zero)?;
        let names = Names::before(image, tokens.start)?;
        let addresses = places(image, &names, &tokens)?;
        let symbols = addresses.into_iter().zip(&names.names);
        let symbols = symbols.map(|(address, name)| {
            let text = name
                .iter()
                .flat_map(|token| tokens.texts[usize::from(*token)]);
            let text: Vec<u8> = text.copied().collect();
            let (kind, name) = text.split_first()?;
            Some(Symbol {
                address,
                kind: *kind,
                name: String::from_utf8(name.to_vec()).ok()?,
            })
        });
        symbols.collect()
    })
}

#[cfg(test)]
#[path = "kallsyms_tests.rs"]
mod tests;
