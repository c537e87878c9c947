// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the table of symbols in an Image, with invented tables.

use super::*;

/// Order of a table's parts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    /// From Linux 6.4 on.
    AddressesLast,
    /// Before Linux 6.2.
    AddressesFirst,
    /// Before Linux 4.6: addresses, not offsets.
    Absolute,
}

/// Makes an Image with code, a table, and more bytes. The token `0xff` stands for `irq_`.
fn image(symbols: &[(u32, &str)], order: Order) -> Vec<u8> {
    let word = |image: &mut Vec<u8>, word: u32| {
        image.resize(image.len().next_multiple_of(4), 0);
        image.extend(word.to_le_bytes());
    };
    let mut image: Vec<u8> = (0..5000u32).flat_map(|n| (n * 77).to_le_bytes()).collect();
    let base = symbols[0].0;
    let offsets = |image: &mut Vec<u8>| {
        let base = if order == Order::Absolute { 0 } else { base };
        symbols.iter().for_each(|s| word(image, s.0 - base));
    };
    if order != Order::AddressesLast {
        offsets(&mut image);
    }
    if order == Order::AddressesFirst {
        word(&mut image, base);
    }
    word(&mut image, symbols.len() as u32);
    let (start, mut markers) = (image.len(), Vec::new());
    for (n, (_, name)) in symbols.iter().enumerate() {
        if n.is_multiple_of(STEP) {
            markers.push((image.len() - start) as u32);
        }
        let name: Vec<u8> = name
            .replace("irq_", "\u{ff}")
            .chars()
            .map(|c| c as u8)
            .collect();
        match name.len() {
            long @ 0x80.. => image.extend([long as u8 | 0x80, (long >> 7) as u8]),
            short => image.push(short as u8),
        }
        image.extend(name);
    }
    markers.iter().for_each(|marker| word(&mut image, *marker));
    let (table, mut index) = (image.len(), Vec::new());
    for token in 0..TOKENS {
        index.extend(((image.len() - table) as u16).to_le_bytes());
        match token {
            0xff => image.extend(b"irq_"),
            0x20..0x7f => image.push(token as u8),
            _ => {}
        }
        image.push(0);
    }
    image.resize(image.len().next_multiple_of(4), 0);
    image.extend(index);
    if order == Order::AddressesLast {
        offsets(&mut image);
        word(&mut image, base);
    }
    image.extend([0x55; 1000]);
    image
}

#[test]
fn the_table_is_found_in_each_order() {
    let names: Vec<String> = (0..1000).map(|n| format!("tirq_handler_{n}")).collect();
    let mut symbols: Vec<(u32, &str)> = names
        .iter()
        .enumerate()
        .map(|(n, name)| (0xc010_0000 + 8 * n as u32, name.as_str()))
        .collect();
    let long = format!("T{}", "x".repeat(300));
    symbols.push((0xc020_0000, &long));
    for order in [Order::AddressesLast, Order::AddressesFirst, Order::Absolute] {
        let found = find(&image(&symbols, order)).expect("a table");
        assert_eq!(found.len(), symbols.len());
        let texts = found
            .iter()
            .map(|s| format!("{}{}", char::from(s.kind), s.name));
        let pairs: Vec<(u32, String)> = found.iter().map(|s| s.address).zip(texts).collect();
        let pairs: Vec<(u32, &str)> = pairs
            .iter()
            .map(|(at, text)| (*at, text.as_str()))
            .collect();
        assert_eq!(pairs, symbols);
    }
}

#[test]
fn no_damage_to_a_table_panics() {
    let symbols = [
        (0xc010_0000, "Tone"),
        (0xc010_0010, "ttwo"),
        (0xc010_0020, "Dthree"),
    ];
    for order in [Order::AddressesLast, Order::AddressesFirst] {
        let image = image(&symbols, order);
        assert_eq!(find(&image).map(|found| found.len()), Some(3));
        for at in 20_000..image.len() - 1000 {
            for value in [0, 1, 0x7f, 0xff] {
                let mut bad = image.clone();
                bad[at] = value;
                let _ = find(&bad);
            }
        }
        for length in 20_000..image.len() {
            let _ = find(&image[..length]);
        }
    }
    assert_eq!(find(&[]), None);
    assert_eq!(find(DIGITS), None);
}
