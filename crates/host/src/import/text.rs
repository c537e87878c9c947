// SPDX-License-Identifier: MIT OR Apache-2.0
//! Converts files to text: encodings, control sequences of terminals, and line ends. Formats errors about a line.

use anyhow::{Context as _, Result, anyhow, bail};

/// Number of characters of a line that an error shows.
const SHOWN: usize = 60;
/// First bytes of files that are not text, each with the kind of file and the remedy.
const MAGIC: [(&[u8], &str); 7] = [
    (b"\x1f\x8b", "compressed by gzip: use gunzip first"),
    (b"\xfd7zXZ", "compressed by xz: use unxz first"),
    (b"BZh", "compressed by bzip2: use bunzip2 first"),
    (b"\x28\xb5\x2f\xfd", "compressed by zstd: use unzstd first"),
    (b"PK\x03\x04", "a ZIP archive: unpack it first"),
    (
        b"\x7fELF",
        "a program or a kernel: give a file with its output",
    ),
    (
        b"\x17\x08\x44tracing",
        "a recording of trace-cmd: use the output of `rtla timerlat hist`",
    ),
];

/// Returns the text of a file, without byte order mark, carriage returns and control sequences of terminals.
pub fn of(bytes: &[u8]) -> Result<String> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        bail!("the file is empty");
    }
    if let Some((_, kind)) = MAGIC.iter().find(|(start, _)| bytes.starts_with(start)) {
        bail!("the file is not text but {kind}");
    }
    let utf16 = |unit: fn([u8; 2]) -> u16| {
        let pairs = bytes[2..].chunks_exact(2);
        let units: Vec<u16> = pairs.map(|pair| unit([pair[0], pair[1]])).collect();
        String::from_utf16_lossy(&units)
    };
    let text = match bytes {
        [0xff, 0xfe, ..] => utf16(u16::from_le_bytes),
        [0xfe, 0xff, ..] => utf16(u16::from_be_bytes),
        _ => String::from_utf8_lossy(bytes).into_owned(),
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    Ok(without_control(&text.replace("\r\n", "\n")).replace('\r', "\n"))
}

/// Removes control sequences such as `ESC [ 1 A` and `ESC c`.
fn without_control(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        plain.push_str(before);
        rest = match after.strip_prefix('[') {
            Some(sequence) => {
                let parameters = |c: char| c.is_ascii_digit() || ";?".contains(c);
                let end = sequence.trim_start_matches(parameters);
                let mut end = end.chars();
                end.next();
                end.as_str()
            }
            None => {
                let mut end = after.chars();
                end.next();
                end.as_str()
            }
        };
    }
    plain + rest
}

/// Returns whether more than a tenth of the first characters are not text.
pub fn is_binary(text: &str) -> bool {
    let is_odd = |c: &char| *c == '\u{fffd}' || (c.is_control() && !c.is_whitespace());
    let odd = text.chars().take(4096).filter(is_odd).count();
    odd * 10 > text.chars().take(4096).count()
}

/// Makes an error about a line. Lines are counted from 1.
pub fn wrong(n: usize, line: &str, problem: &str) -> anyhow::Error {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let mut shown: String = line.trim().chars().take(SHOWN).map(plain).collect();
    if line.trim().chars().count() > SHOWN {
        shown.push_str("...");
    }
    anyhow!("line {n}: \"{shown}\": {problem}")
}

/// Parses a number from 0 to `most`.
pub fn number(word: &str, most: f64) -> Result<f64> {
    let value: f64 = word
        .parse()
        .ok()
        .with_context(|| format!("not a number: {word}"))?;
    if !(0.0..=most).contains(&value) {
        bail!("{word} is not from 0 to {most}");
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_line_ends_and_what_a_terminal_is_told_make_no_difference() {
        let plain = "T: 0\nT: 1\n";
        let of = |bytes: &[u8]| of(bytes).unwrap();
        assert_eq!(of(b"\xef\xbb\xbfT: 0\r\nT: 1\r\n"), plain);
        assert_eq!(of(b"\x1bcT: 0\n\x1b[2;37;40mT: 1\x1b[0;0;0m\n"), plain);
        let units = format!("\u{feff}{plain}");
        let wide = |bytes: fn(u16) -> [u8; 2]| units.encode_utf16().flat_map(bytes).collect();
        let (little, big): (Vec<u8>, Vec<u8>) = (wide(u16::to_le_bytes), wide(u16::to_be_bytes));
        assert_eq!((of(&little), of(&big)), (plain.into(), plain.into()));
        assert_eq!(of(b"x\x1b"), "x");
        assert_eq!(of(b"x\x1b[1"), "x");
        assert_eq!(of(b"1\xff2"), "1\u{fffd}2");
    }

    #[test]
    fn what_is_no_text_is_named() {
        let error = |bytes: &[u8]| of(bytes).unwrap_err().to_string();
        assert!(error(b"").contains("empty") && error(b" \r\n").contains("empty"));
        assert!(error(b"\x1f\x8b\x08\x00").contains("gunzip"));
        assert!(error(b"\x7fELF\x01\x01").contains("a program"));
        assert!(is_binary("\u{0}\u{1}\u{fffd}abc") && !is_binary("Time: 1\n\t2\n"));
        let long = wrong(7, &"x\u{7}".repeat(100), "a number is expected").to_string();
        assert!(
            long.starts_with("line 7: \"x x ") && long.len() < 110,
            "{long}"
        );
        for word in ["-1", "1e99", "nan", "inf", "x", ""] {
            assert!(number(word, 10.0).is_err(), "{word}");
        }
    }
}
