// SPDX-License-Identifier: MIT OR Apache-2.0
//! Copies files from the guest to the host, as compressed text over the guest's console.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context as _, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;

use base::files::check_written;
use base::paths;
use base::shell::{in_shell, quoted};
use results::runs::markers::Typed;

/// Largest unpacked file, in bytes. A console with 115,200 baud transfers far less.
const LARGEST: u64 = 1 << 30;

/// Longest path in the guest, in bytes. One typed line contains the path twice, with quotes.
const LONGEST_PATH: usize = 300;

/// A file to fetch, `GUEST[:HOST]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    guest: String,
    host: PathBuf,
}

impl FromStr for Fetched {
    type Err = String;

    fn from_str(text: &str) -> Result<Fetched, String> {
        let (guest, host) = match text.split_once(':') {
            Some((guest, host)) => (guest, host),
            None => (text, text.rsplit('/').next().unwrap_or("")),
        };
        if guest.is_empty() || host.is_empty() {
            return Err("not GUEST or GUEST:HOST, both names of files".to_string());
        }
        Ok(Fetched {
            guest: guest.to_string(),
            host: PathBuf::from(host),
        })
    }
}

/// Rejects files that cannot be written on the host, before the guest boots.
pub fn check(files: &[Fetched]) -> Result<()> {
    let hosts = files
        .iter()
        .map(|file| ("fetch", Some(file.host.as_path())));
    check_written(&hosts.collect::<Vec<_>>())
}

/// Runs a command in the guest. Returns its output and status.
pub type Run<'a> = &'a mut dyn FnMut(&Typed) -> Result<(Vec<u8>, i32)>;

/// Fetches all files. If a file fails, still fetches the other files. Returns the first error at the end.
pub fn all(files: &[Fetched], run: Run<'_>) -> Result<()> {
    let mut result = Ok(());
    for file in files {
        let fetched = file.fetch(run);
        result = result.and(fetched.with_context(|| format!("--fetch {}", file.guest)));
    }
    result
}

impl Fetched {
    fn fetch(&self, run: Run<'_>) -> Result<()> {
        if self.guest.len() > LONGEST_PATH || self.guest.contains(char::is_control) {
            bail!(
                "the path cannot be typed: it must have at most {LONGEST_PATH} bytes and no control characters"
            );
        }
        let guest = quoted(&self.guest);
        let line = format!("test -f {guest} && gzip -c {guest} | busybox base64");
        let typed = Typed::own(&in_shell(&line));
        let (text, status) = run(&typed)?;
        let text = String::from_utf8_lossy(&text);
        if status != 0 {
            bail!("the guest has no such plain file{}", reason(&text));
        }
        let content = decoded(&text).context("the text on the console is damaged")?;
        paths::write_atomically(Path::new(&self.host), &content)
    }
}

/// Returns the guest's message, after a colon.
fn reason(text: &str) -> String {
    let text = text.trim();
    if text.is_empty() {
        String::new()
    } else {
        format!(": {text}")
    }
}

/// Decodes and unpacks the text, and checks the checksum.
fn decoded(text: &str) -> Result<Vec<u8>> {
    let text: String = text.split_whitespace().collect();
    let packed = STANDARD.decode(text)?;
    let mut content = Vec::new();
    let mut reader = GzDecoder::new(&*packed).take(LARGEST);
    reader.read_to_end(&mut content)?;
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `printf 'a\\0b\\n' | gzip -nc | base64`.
    const PACKED: &str = "H4sIAAAAAAAAA0tkSOIC\r\nAEGvwBUEAAAA";

    #[test]
    fn a_name_here_is_the_last_part_of_the_one_there_or_another() {
        let one: Fetched = "/tmp/a.csv".parse().unwrap();
        assert_eq!(one.host, Path::new("a.csv"));
        let other: Fetched = "/tmp/a.csv:out/b".parse().unwrap();
        assert_eq!(
            (&*other.guest, &*other.host),
            ("/tmp/a.csv", Path::new("out/b"))
        );
        for bad in ["", "/tmp/", ":x", "/x:"] {
            assert!(bad.parse::<Fetched>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_damaged_text_is_an_error() {
        assert!(decoded("hello").is_err());
        assert!(decoded(&PACKED.replace("0tk", "0tl")).is_err());
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let files = ["/x".parse().unwrap()];
        let error = all(&files, &mut |_| Ok((Vec::new(), 1))).unwrap_err();
        assert_eq!(
            format!("{error:#}"),
            "--fetch /x: the guest has no such plain file"
        );
    }

    #[test]
    fn the_bytes_are_those_of_the_guest() {
        assert_eq!(decoded(PACKED).unwrap(), b"a\0b\n");
    }
}
