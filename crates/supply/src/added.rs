// SPDX-License-Identifier: MIT OR Apache-2.0
//! Puts the user's own files for the guest into an archive. The kernel unpacks this archive after the root file
//! system's archive. A program that the user named and that cannot start in the guest is an error before the boot.

mod files;
mod program;
mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::Result;

use crate::image::cpio::Kind;
use files::Files;

/// Path in the guest of the file with the user's standard input.
pub const STDIN: &str = ".stdin";

/// Maximum number of notes that are shown. Further notes are only counted.
const SHOWN_NOTES: usize = 5;

/// `HOST[:GUEST]`: a file or folder, and its place in the guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Added {
    host: PathBuf,
    /// Path in the guest, without the leading `/`. A folder's path may end in `/`. The empty path is the root folder.
    guest: Option<String>,
    /// The Debian packages that this tree contains. Empty for the user's own files.
    packages: Vec<String>,
}

impl Added {
    /// Returns the path of the file or folder on the host.
    pub fn host(&self) -> &Path {
        &self.host
    }

    /// Makes an entry for one of our programs, which goes to /bin.
    pub fn program(host: PathBuf) -> Added {
        Added {
            host,
            guest: None,
            packages: Vec::new(),
        }
    }

    /// Makes an entry for the tree of unpacked packages, which goes to the root folder.
    pub fn packages(host: PathBuf, packages: &[String]) -> Added {
        Added {
            host,
            guest: Some(String::new()),
            packages: packages.to_vec(),
        }
    }

    /// Returns the size of the file, or of all files in the folder, in bytes.
    pub fn bytes(&self) -> u64 {
        bytes_of(&self.host)
    }

    /// Returns the command-line options that added this entry.
    pub fn option(&self) -> String {
        if self.packages.is_empty() {
            return format!("--add {self}");
        }
        let options = self.packages.iter();
        let options = options.map(|name| format!("--add-package {name}"));
        options.collect::<Vec<_>>().join(" ")
    }
}

fn bytes_of(path: &Path) -> u64 {
    let entries = || fs::read_dir(path).into_iter().flatten().flatten();
    match fs::symlink_metadata(path) {
        Ok(file) if file.is_dir() => entries().map(|entry| bytes_of(&entry.path())).sum(),
        Ok(file) if file.is_symlink() => 0,
        Ok(file) => file.len(),
        Err(_) => 0,
    }
}

impl FromStr for Added {
    type Err = String;

    fn from_str(text: &str) -> Result<Added, String> {
        let (host, guest) = match text.rsplit_once(":/") {
            Some((host, guest)) => (host, Some(guest)),
            None => (text, None),
        };
        if host.is_empty() {
            return Err("the file's name is missing".to_string());
        }
        if let (None, Some((before, _))) = (guest, text.rsplit_once(':'))
            && Path::new(before).exists()
            && !Path::new(text).exists()
        {
            return Err("a place in the guest begins with /: write HOST:/PATH".to_string());
        }
        Ok(Added {
            host: PathBuf::from(host),
            guest: guest.map(str::to_string),
            packages: Vec::new(),
        })
    }
}

impl fmt::Display for Added {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.host.display())?;
        match &self.guest {
            Some(guest) => write!(f, ":/{guest}"),
            None => Ok(()),
        }
    }
}

/// The guest that files are added to.
pub struct Around {
    /// Paths of the guest's root file system with their types, if they are known.
    pub names: Option<BTreeMap<String, Kind>>,
    /// Whether the root file system is ours.
    pub is_ours: bool,
    /// Whether the kernel has no address spaces.
    pub flat: bool,
    /// Whether the kernel has a loader for bFLT programs, if that is known.
    pub loads_flat: Option<bool>,
    /// Symbol versions of the guest's C library, if they are known.
    pub c_library: Option<BTreeSet<String>>,
    /// Size of the board's RAM.
    pub ram_bytes: u64,
}

/// Fails for mistakes that do not depend on the contents of the guest.
pub fn check(added: &[Added], is_ours: bool, ram_bytes: u32) -> Result<()> {
    let around = Around {
        names: None,
        is_ours,
        flat: false,
        loads_flat: None,
        c_library: None,
        ram_bytes: u64::from(ram_bytes),
    };
    Files::of(added, &around).map(drop)
}

/// Returns the archive of added files, and notes for the user. The archive is empty if there are no files.
pub fn archive(
    added: &[Added],
    stdin: Option<&[u8]>,
    around: &Around,
) -> Result<(Vec<u8>, Vec<String>)> {
    let mut files = Files::of(added, around)?;
    if let Some(stdin) = stdin {
        files.archive.file(STDIN, false, stdin.to_vec())?;
    }
    if added.is_empty() && stdin.is_none() {
        return Ok(Default::default());
    }
    let mut notes = std::mem::take(&mut files.notes);
    let more = notes.len().saturating_sub(SHOWN_NOTES);
    notes.truncate(SHOWN_NOTES);
    if more > 0 {
        notes.push(format!("and {more} more notes on added files"));
    }
    Ok((files.archive.bytes(), notes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn added(text: &str) -> Added {
        text.parse().unwrap()
    }

    /// Makes a guest. Names with a dot are files, names with an asterisk are programs, names with `=` are links, and
    /// all other names are folders.
    fn around(names: &[&str]) -> Around {
        let kind = |name: &&str| match name.split_once('=') {
            Some((name, target)) => (name.to_string(), Kind::Link(target.to_string())),
            None if name.contains(['.', '*']) => {
                let executable = name.contains('*');
                (name.replace('*', ""), Kind::File { executable })
            }
            None => (name.to_string(), Kind::Directory),
        };
        Around {
            names: Some(names.iter().map(kind).collect()),
            is_ours: true,
            flat: false,
            loads_flat: Some(false),
            c_library: Some(BTreeSet::from(["GLIBC_2.4".to_string()])),
            ram_bytes: 64 << 20,
        }
    }

    /// Paths of our root file system that matter to the tests.
    const OURS: [&str; 7] = [
        "bin",
        "bin/busybox*",
        "bin/sh=busybox",
        "init*",
        "lib",
        "lib/libc.so.6",
        "etc",
    ];

    /// Adds these entries to our root file system. Returns the paths of the archive, and the notes.
    fn laid(all: &[String]) -> Result<(Vec<String>, Vec<String>)> {
        let all: Vec<Added> = all.iter().map(|text| added(text)).collect();
        let (bytes, notes) = archive(&all, None, &around(&OURS))?;
        let names = crate::image::cpio::names(&bytes).unwrap();
        Ok((names.into_keys().collect(), notes))
    }

    fn dir(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("warmswitch-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        dir
    }

    #[test]
    fn the_guests_path_stands_behind_the_last_colon_and_slash() {
        let a = added("a:b/c:/bin/c");
        assert_eq!((a.host, a.guest), ("a:b/c".into(), Some("bin/c".into())));
        assert_eq!(added("a:b").guest, None);
        assert_eq!(added("tree:/").guest, Some(String::new()));
        assert!("".parse::<Added>().is_err() && ":/x".parse::<Added>().is_err());
    }

    #[test]
    fn scripts_go_to_bin_libraries_to_lib_data_to_the_top_and_folders_with_all() {
        let dir = dir("added");
        let script = dir.join("go");
        fs::write(&script, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(dir.join("table.csv"), "1").unwrap();
        fs::create_dir_all(dir.join("deep/er")).unwrap();
        fs::write(dir.join("deep/er/x"), "1").unwrap();
        std::os::unix::fs::symlink("er/x", dir.join("deep/link")).unwrap();
        let all = ["go", "table.csv", "deep"].map(|name| added(dir.join(name).to_str().unwrap()));
        let (bytes, _) = archive(&all, Some(b"in"), &around(&["bin/sh*"])).unwrap();
        let names = crate::image::cpio::names(&bytes).unwrap();
        let expected = [
            ".stdin",
            "bin",
            "bin/go",
            "deep",
            "deep/er",
            "deep/er/x",
            "deep/link",
            "table.csv",
        ];
        assert_eq!(Vec::from_iter(names.into_keys()), expected);
        // The link keeps its name when it is added to a folder of the guest.
        std::os::unix::fs::symlink("table.csv", dir.join("other")).unwrap();
        let into = added(&format!("{}/other:/etc", dir.display()));
        let (bytes, _) = archive(&[into], None, &around(&["etc"])).unwrap();
        let names = crate::image::cpio::names(&bytes).unwrap();
        assert!(names.contains_key("etc/other"), "{names:?}");
        assert!(archive(&[], None, &around(&[])).unwrap().0.is_empty());
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn what_cannot_work_is_said_with_its_name() {
        let dir = dir("refused");
        let error = |text: String| {
            let error = archive(&[added(&text)], None, &around(&["lib/libc.so.6"])).unwrap_err();
            format!("{error:#}")
        };
        let none = error(format!("{}/none", dir.display()));
        assert!(
            none.contains("/none") && none.contains("there is no such file"),
            "{none}"
        );
        let machine = error("/bin/true".into());
        assert!(machine.contains("not for little-endian ARM"), "{machine}");
        fs::write(dir.join("x"), "1").unwrap();
        // A device with endless content is not read.
        let device = error("/dev/zero".into());
        assert!(device.contains("neither a file nor a folder"), "{device}");
        let covered = error(format!("{}/x:/tmp/x", dir.display()));
        assert!(covered.contains("/tmp/x would be hidden"), "{covered}");
        let below = error(format!("{}/x:/lib/libc.so.6/x", dir.display()));
        assert!(below.contains("/lib/libc.so.6 is not a folder"), "{below}");
        fs::write(dir.join("py"), "#! /usr/bin/python3 -u\n").unwrap();
        let script = error(format!("{}/py", dir.display()));
        assert!(
            script.contains("run by /usr/bin/python3, which is not"),
            "{script}"
        );
        let relative = format!("{}/x:rel", dir.display())
            .parse::<Added>()
            .unwrap_err();
        assert!(relative.contains("begins with /"), "{relative}");
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn case_09_a_tree_is_laid_over_the_root() {
        let dir = dir("tree");
        fs::create_dir_all(dir.join("usr/bin")).unwrap();
        fs::create_dir_all(dir.join("bin")).unwrap();
        fs::create_dir_all(dir.join("tmp")).unwrap();
        fs::write(dir.join("usr/bin/one"), "1").unwrap();
        fs::hard_link(dir.join("usr/bin/one"), dir.join("bin/two")).unwrap();
        fs::write(dir.join("tmp/gone"), "1").unwrap();
        let link = std::os::unix::fs::symlink::<&str, PathBuf>;
        link("/usr/bin/one", dir.join("bin/absolute")).unwrap();
        link("../usr/bin/one", dir.join("bin/relative")).unwrap();
        link("loop", dir.join("loop")).unwrap();
        // This link is left out, because the guest already has a folder /lib.
        link("usr/lib", dir.join("lib")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(dir.join("socket")).unwrap();
        let (names, notes) = laid(&[format!("{}:/", dir.display())]).unwrap();
        let expected = [
            "bin",
            "bin/absolute",
            "bin/relative",
            "bin/two",
            "loop",
            "tmp",
            "usr",
            "usr/bin",
            "usr/bin/one",
        ];
        assert!(
            expected
                .iter()
                .all(|name| names.contains(&name.to_string())),
            "{names:?}"
        );
        assert!(
            !names
                .iter()
                .any(|n| n == "lib" || n == "socket" || n == "tmp/gone"),
            "{names:?}"
        );
        let notes = notes.join("\n");
        for part in [
            "/lib is left out: a link to usr/lib",
            "/socket is left out: neither a file nor a folder",
            "/tmp/gone is left out: the guest mounts a file system",
        ] {
            assert!(notes.contains(part), "{notes}");
        }
        // Adds a file to the root folder, under its own name.
        let (names, _) = laid(&[format!("{}/usr/bin/one:/", dir.display())]).unwrap();
        assert_eq!(names, ["one"]);
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn case_10_what_cannot_run_is_refused_by_name_and_noted_in_a_folder() {
        let dir = dir("foreign");
        fs::create_dir_all(dir.join("usr")).unwrap();
        let script = dir.join("usr/rehash");
        fs::write(&script, "#!/usr/bin/perl\n").unwrap();
        fs::copy("/bin/true", dir.join("usr/foreign")).unwrap();
        let (names, notes) = laid(&[format!("{}/usr:/usr", dir.display())]).unwrap();
        assert!(names.contains(&"usr/rehash".to_string()), "{names:?}");
        let notes = notes.join("\n");
        assert!(
            notes.contains("rehash cannot run in the guest: it is run by /usr/bin/perl"),
            "{notes}"
        );
        assert!(
            notes.contains("foreign cannot run in the guest: "),
            "{notes}"
        );
        let error = laid(&[script.display().to_string()])
            .unwrap_err()
            .to_string();
        assert!(error.contains("run by /usr/bin/perl"), "{error}");
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn case_11_a_program_of_uclinux_is_refused_where_nothing_loads_it() {
        let dir = dir("bflt");
        let program = dir.join("hello.flt");
        fs::write(&program, b"bFLT\0\0\0\x04").unwrap();
        let run = |loads_flat| {
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
            let around = Around {
                loads_flat,
                ..around(&OURS)
            };
            archive(&[added(program.to_str().unwrap())], None, &around)
        };
        let error = run(Some(false)).unwrap_err().to_string();
        assert!(
            error.contains("bFLT program of uClinux") && error.contains("no loader"),
            "{error}"
        );
        assert!(run(Some(true)).is_ok() && run(None).is_ok());
        fs::write(&program, b"MZ\x90\0").unwrap();
        let error = run(None).unwrap_err().to_string();
        assert!(error.contains("a program for Windows"), "{error}");
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn nothing_takes_the_place_of_what_the_guest_starts_with() {
        let dir = dir("replaced");
        let text = dir.join("README.md");
        fs::write(&text, "words").unwrap();
        fs::create_dir_all(dir.join("tree")).unwrap();
        fs::write(dir.join("tree/lib"), "words").unwrap();
        fs::create_dir_all(dir.join("links/bin")).unwrap();
        std::os::unix::fs::symlink("nowhere", dir.join("links/bin/sh")).unwrap();
        let here = |end: &str| format!("{}/{end}", dir.display());
        for (given, part) in [
            (
                here("README.md:/bin/sh/x"),
                "/bin/busybox is not a folder in the guest",
            ),
            (
                here("README.md:/bin/sh"),
                "/bin/sh is a program of the guest",
            ),
            (
                here("README.md:/bin/busybox"),
                "/bin/busybox is a program of the guest",
            ),
            (here("README.md:/init"), "/init is a program of the guest"),
            (here("tree:/init"), "/init is not a folder in the guest"),
            (here("tree:/"), "/lib is a folder in the guest"),
            (here("links:/"), "/bin/sh is a program of the guest"),
            (here("README.md:/../x"), "cannot contain . or .."),
        ] {
            let error = format!("{:#}", laid(std::slice::from_ref(&given)).unwrap_err());
            assert!(error.contains(part), "{given}: {error}");
        }
        fs::write(dir.join("shell"), "#!/bin/busybox sh\n").unwrap();
        assert!(laid(&[here("shell:/bin/sh")]).is_ok());
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn what_no_ram_holds_is_not_read() {
        let dir = dir("huge");
        let file = fs::File::create(dir.join("huge")).unwrap();
        file.set_len(1 << 40).unwrap();
        let error = laid(&[format!("{}/huge", dir.display())]).unwrap_err();
        let error = format!("{error:#}");
        assert!(
            error.contains("huge: 1099511627776 bytes; the board's whole RAM has"),
            "{error}"
        );
        fs::remove_dir_all(&dir).unwrap();
    }
}
