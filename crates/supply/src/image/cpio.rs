// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes and lists cpio archives in the `newc` format, which the kernel unpacks as its first root file system
//! (Documentation/driver-api/early-userspace/buffer-format.rst).
//!
//! Equal entries give equal bytes, because entries are sorted by path, numbered in that order, owned by root and dated
//! 1970.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;

use anyhow::{Result, bail};

/// Length of a member's header, before its name, in bytes.
const HEADER: usize = 110;
/// Bits of a mode that hold the type of a member.
const FORMAT: usize = 0o170_000;
/// Size of a page, in bytes.
pub const PAGE: u64 = 4096;
/// A symbolic link takes a page if its target has at least this many bytes.
const SHORT_LINK: u64 = 128;
/// First inode number of files with several names. Other entries are numbered by their position.
const FIRST_SHARED: u32 = 1 << 24;
/// The name of the member that ends an archive.
const TRAILER: &str = "TRAILER!!!";

/// Content of one path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Entry {
    Directory,
    File {
        executable: bool,
        content: Vec<u8>,
    },
    /// A hard link. All names of one file have an equal number `file`.
    Name {
        file: u32,
        executable: bool,
        content: Rc<[u8]>,
    },
    Link {
        target: String,
    },
    CharacterDevice {
        major: u32,
        minor: u32,
    },
}

/// An archive to be filled.
#[derive(Debug, Default)]
pub struct Archive {
    entries: BTreeMap<String, Entry>,
}

impl Archive {
    /// Adds a directory, and the directories above it.
    pub fn directory(&mut self, path: &str) -> Result<()> {
        self.add(path, Entry::Directory)
    }

    /// Adds a file with its content.
    pub fn file(&mut self, path: &str, executable: bool, content: Vec<u8>) -> Result<()> {
        self.add(
            path,
            Entry::File {
                executable,
                content,
            },
        )
    }

    /// Adds one of several names of a file. Names with equal numbers are one file in the guest.
    pub fn name_of(
        &mut self,
        path: &str,
        file: u32,
        executable: bool,
        content: &Rc<[u8]>,
    ) -> Result<()> {
        let content = content.clone();
        self.add(
            path,
            Entry::Name {
                file,
                executable,
                content,
            },
        )
    }

    /// Adds a symbolic link.
    pub fn link(&mut self, path: &str, target: &str) -> Result<()> {
        self.add(
            path,
            Entry::Link {
                target: target.to_string(),
            },
        )
    }

    /// Adds a character device.
    pub fn character_device(&mut self, path: &str, major: u32, minor: u32) -> Result<()> {
        self.add(path, Entry::CharacterDevice { major, minor })
    }

    fn add(&mut self, path: &str, entry: Entry) -> Result<()> {
        let bad = |part: &str| part.is_empty() || part == "." || part == "..";
        if path.split('/').any(bad) || path.contains('\0') {
            bail!("not a path inside the root file system: \"{path}\"");
        }
        for (at, _) in path.match_indices('/') {
            let above = self
                .entries
                .entry(path[..at].to_string())
                .or_insert(Entry::Directory);
            if *above != Entry::Directory {
                bail!(
                    "\"{path}\" is below \"{}\", which is not a directory",
                    &path[..at]
                );
            }
        }
        match self.entries.insert(path.to_string(), entry.clone()) {
            Some(old) if old != entry => bail!("\"{path}\" is added twice, with different content"),
            _ => Ok(()),
        }
    }

    /// Returns the bytes of the archive.
    pub fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut names: BTreeMap<u32, u32> = BTreeMap::new();
        for entry in self.entries.values() {
            if let Entry::Name { file, .. } = entry {
                *names.entry(*file).or_default() += 1;
            }
        }
        let mut written = BTreeSet::new();
        for (number, (path, entry)) in self.entries.iter().enumerate() {
            let mut inode = number as u32 + 1;
            let (mode, links, device, content): (u32, u32, (u32, u32), &[u8]) = match entry {
                Entry::Directory => (0o040_755, 2, (0, 0), &[]),
                Entry::File {
                    executable,
                    content,
                } => (file_mode(*executable), 1, (0, 0), content),
                Entry::Name {
                    file,
                    executable,
                    content,
                } => {
                    inode = FIRST_SHARED + file;
                    // Only the first name has the content.
                    let content = if written.insert(*file) {
                        &**content
                    } else {
                        &[]
                    };
                    (file_mode(*executable), names[file], (0, 0), content)
                }
                Entry::Link { target } => (0o120_777, 1, (0, 0), target.as_bytes()),
                Entry::CharacterDevice { major, minor } => (0o020_600, 1, (*major, *minor), &[]),
            };
            member(&mut out, inode, mode, links, device, path, content);
        }
        member(&mut out, 0, 0, 1, (0, 0), TRAILER, &[]);
        out
    }
}

fn file_mode(executable: bool) -> u32 {
    if executable { 0o100_755 } else { 0o100_644 }
}

/// Type of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A directory.
    Directory,
    /// A regular file.
    File {
        /// Whether an execute bit is set for the owner, the group or others.
        executable: bool,
    },
    /// A symbolic link, with its target.
    Link(String),
    /// Anything else, such as a device.
    Other,
}

/// Returns the paths of one or more concatenated archives, without a leading `/` or `./`, with their types. `None` if
/// the bytes are not a valid archive.
pub fn names(bytes: &[u8]) -> Option<BTreeMap<String, Kind>> {
    let entry = |member: Member| {
        let kind = match member.mode & FORMAT {
            0o040_000 => Kind::Directory,
            0o100_000 => Kind::File {
                executable: member.mode & 0o111 != 0,
            },
            0o120_000 => {
                let target = bytes.get(member.content).unwrap_or_default();
                Kind::Link(String::from_utf8_lossy(target).into_owned())
            }
            _ => Kind::Other,
        };
        (member.name, kind)
    };
    Some(members(bytes)?.into_iter().map(entry).collect())
}

/// Memory that a kernel needs for the files of archives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unpacked {
    /// Largest number of pages of content at one time.
    pub pages: u64,
    /// Number of names of all types.
    pub names: u64,
}

/// Returns the memory that concatenated archives take when they are unpacked. Returns `None` if the bytes are not a
/// valid archive.
pub fn unpacked(bytes: &[u8]) -> Option<Unpacked> {
    let mut pages_by_name: BTreeMap<String, u64> = BTreeMap::new();
    let (mut now, mut most) = (0, 0);
    for member in members(bytes)? {
        let length = member.content.len() as u64;
        let pages = match member.mode & FORMAT {
            0o100_000 => length.div_ceil(PAGE),
            // Linux keeps short targets with the name (mm/shmem.c).
            0o120_000 if length >= SHORT_LINK => 1,
            _ => 0,
        };
        now += pages;
        now -= pages_by_name.insert(member.name, pages).unwrap_or(0);
        most = now.max(most);
    }
    Some(Unpacked {
        pages: most,
        names: pages_by_name.len() as u64,
    })
}

/// Returns the content of a file in concatenated archives. If several files have the name, the last one counts.
pub fn content<'a>(bytes: &'a [u8], path: &str) -> Option<&'a [u8]> {
    let found = members(bytes)?
        .into_iter()
        .rfind(|member| member.name == path);
    bytes.get(found?.content)
}

struct Member {
    name: String,
    mode: usize,
    content: Range<usize>,
}

fn members(bytes: &[u8]) -> Option<Vec<Member>> {
    let mut members = Vec::new();
    let mut at = 0;
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        // Zeros may separate archives.
        if rest[0] == 0 {
            at += 1;
            continue;
        }
        if !(rest.starts_with(b"070701") || rest.starts_with(b"070702")) {
            return None;
        }
        let field = |n: usize| {
            let digits = rest.get(6 + 8 * n..14 + 8 * n)?;
            usize::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
        };
        let (mode, size, name_size) = (field(1)?, field(6)?, field(11)?);
        let name = rest.get(HEADER..HEADER.checked_add(name_size)?)?;
        let name = String::from_utf8_lossy(name.strip_suffix(b"\0")?);
        let name = name.trim_start_matches("./").trim_start_matches('/');
        let content = (at + HEADER + name_size).next_multiple_of(4);
        at = content.checked_add(size)?.checked_next_multiple_of(4)?;
        // The padding after the last member may be missing.
        if at > bytes.len().checked_next_multiple_of(4)? {
            return None;
        }
        if name != TRAILER {
            members.push(Member {
                name: name.to_string(),
                mode,
                content: content..content + size,
            });
        }
    }
    Some(members)
}

fn member(
    out: &mut Vec<u8>,
    inode: u32,
    mode: u32,
    links: u32,
    device: (u32, u32),
    name: &str,
    content: &[u8],
) {
    out.extend_from_slice(b"070701");
    let (size, name_size) = (content.len() as u32, name.len() as u32 + 1);
    // The fields are inode, mode, uid, gid, links, time, size, the file system's device, device, name and check.
    let fields = [
        inode, mode, 0, 0, links, 0, size, 0, 0, device.0, device.1, name_size, 0,
    ];
    for field in fields {
        out.extend_from_slice(format!("{field:08x}").as_bytes());
    }
    out.extend_from_slice(name.as_bytes());
    out.push(0);
    pad(out);
    out.extend_from_slice(content);
    pad(out);
}

fn pad(out: &mut Vec<u8>) {
    while out.len() & 3 != 0 {
        out.push(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_preceded_by_its_directories_and_padded() {
        let mut archive = Archive::default();
        archive.file("a/b/c", true, b"hello".to_vec()).unwrap();
        let bytes = archive.bytes();
        assert_eq!(bytes.len() % 4, 0);
        let text = String::from_utf8_lossy(&bytes);
        let at = |what: &str| text.find(what).unwrap();
        assert!(at("a\0") < at("a/b\0") && at("a/b\0") < at("a/b/c\0"));
        let c = &text[at("a/b/c\0") - 110..];
        assert!(c.starts_with("07070100000003000081ed"), "{}", &c[..30]);
        assert_eq!(&c[54..62], "00000005");
        assert_eq!(at("hello") % 4, 0);
        assert!(text.contains("TRAILER!!!\0"));
    }

    #[test]
    fn the_order_of_adding_does_not_matter() {
        let mut one = Archive::default();
        one.link("bin/sh", "busybox").unwrap();
        one.character_device("dev/console", 5, 1).unwrap();
        let mut two = Archive::default();
        two.character_device("dev/console", 5, 1).unwrap();
        two.directory("bin").unwrap();
        two.link("bin/sh", "busybox").unwrap();
        assert_eq!(one.bytes(), two.bytes());
    }

    #[test]
    fn bad_paths_and_clashes_are_refused() {
        let mut archive = Archive::default();
        for bad in ["", "/a", "a//b", "../a", "a/..", "a\0"] {
            assert!(archive.directory(bad).is_err(), "{bad:?}");
        }
        archive.file("x", false, vec![1]).unwrap();
        assert!(
            archive
                .file("x", false, vec![2])
                .unwrap_err()
                .to_string()
                .contains("twice")
        );
        assert!(
            archive
                .directory("x/y")
                .unwrap_err()
                .to_string()
                .contains("not a directory")
        );
    }

    #[test]
    fn archives_are_listed_and_damaged_ones_are_not() {
        let (mut one, mut two) = (Archive::default(), Archive::default());
        one.file("init", true, b"#!/bin/sh".to_vec()).unwrap();
        two.link("bin/sh", "busybox").unwrap();
        let mut bytes = one.bytes();
        bytes.extend([0; 8]);
        bytes.extend(two.bytes());
        let names = names(&bytes).unwrap();
        let expected = [
            ("bin", Kind::Directory),
            ("bin/sh", Kind::Link("busybox".to_string())),
            ("init", Kind::File { executable: true }),
        ];
        assert_eq!(
            names,
            expected.map(|(name, is)| (name.to_string(), is)).into()
        );
        assert_eq!(unpacked(&bytes), Some(Unpacked { pages: 1, names: 3 }));
        for length in 0..bytes.len() {
            let _ = super::names(&bytes[..length]);
            let _ = unpacked(&bytes[..length]);
        }
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0xff;
            let _ = super::names(&damaged);
        }
        assert_eq!(super::names(b"\x1f\x8b..."), None);
    }

    #[test]
    fn names_of_one_file_share_its_content_and_a_replaced_file_counts_once() {
        let content: Rc<[u8]> = vec![7; 5000].into();
        let mut archive = Archive::default();
        for path in ["b", "a", "c"] {
            archive.name_of(path, 0, true, &content).unwrap();
        }
        archive.file("d", false, vec![1; 4096]).unwrap();
        let mut bytes = archive.bytes();
        assert!(bytes.len() < 10_000, "{}", bytes.len());
        assert_eq!(super::content(&bytes, "a"), Some(&content[..]));
        assert_eq!(unpacked(&bytes), Some(Unpacked { pages: 3, names: 4 }));
        // Inode, mode, links of the second name.
        let text = String::from_utf8_lossy(&bytes);
        let second = &text[text.find("b\0").unwrap() - HEADER..];
        assert!(
            second.starts_with("07070101000000000081ed"),
            "{}",
            &second[..30]
        );
        assert_eq!(&second[38..46], "00000003");
        let mut other = Archive::default();
        other.file("d", false, vec![1; 9000]).unwrap();
        bytes.extend(other.bytes());
        // The old content is freed before the new content is written.
        assert_eq!(unpacked(&bytes), Some(Unpacked { pages: 5, names: 4 }));
    }

    #[test]
    fn the_hosts_cpio_lists_what_was_written() {
        use std::io::Write as _;
        let mut archive = Archive::default();
        archive.file("etc/passwd", false, b"root".to_vec()).unwrap();
        let run = std::process::Command::new("cpio")
            .args(["-t", "--quiet"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn();
        // Not every machine has cpio.
        let Ok(mut run) = run else { return };
        run.stdin
            .take()
            .unwrap()
            .write_all(&archive.bytes())
            .unwrap();
        let out = run.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&out.stdout), "etc\netc/passwd\n");
    }
}
