// SPDX-License-Identifier: MIT OR Apache-2.0
//! The user's own files in the guest: an archive that is unpacked behind the root file system's. A
//! program that could not start there is refused before anything boots.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context as _, Result, bail};

use crate::base::paths::{names_in, shown};
use crate::supply::image::LIBRARY_DIR;
use crate::supply::image::cpio::Archive;
use crate::supply::image::elf;

/// Where what the user gives on standard input stands in the guest.
pub const STDIN: &str = ".stdin";

/// The last architecture before ARMv6, by ARM's number (IHI0045, `Tag_CPU_arch`).
const ARMV5TEJ: u64 = 5;

/// Where cross compilers have libraries that could be added.
const CROSS_LIBRARIES: &str = "/usr/arm-linux-gnueabi/lib";

/// Our /init mounts file systems over these.
const COVERED: [&str; 4] = ["dev", "proc", "sys", "tmp"];

/// `HOST[:GUEST]`: a file or folder, and where it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Added {
    host: PathBuf,
    /// Without the `/` at its beginning; a folder's name may have one at its end.
    guest: Option<String>,
}

impl Added {
    /// The file or folder here.
    pub fn host(&self) -> &Path {
        &self.host
    }

    /// A program of ours, which goes to /bin.
    pub fn program(host: PathBuf) -> Added {
        Added { host, guest: None }
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
            return Err("no file is named".to_string());
        }
        if guest.is_some_and(str::is_empty) {
            return Err("HOST:/PATH says where in the guest it goes, a name included".to_string());
        }
        if let (None, Some((before, _))) = (guest, text.rsplit_once(':'))
            && Path::new(before).exists()
            && !Path::new(text).exists()
        {
            return Err("the place in the guest begins with /: HOST:/PATH".to_string());
        }
        Ok(Added {
            host: PathBuf::from(host),
            guest: guest.map(str::to_string),
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

/// What the guest has besides.
pub struct Around {
    /// Paths of its root file system, if they are known, and whether they are directories.
    pub names: Option<BTreeMap<String, bool>>,
    /// Whether it is our root file system.
    pub is_ours: bool,
    /// Whether the kernel has no address spaces.
    pub flat: bool,
    /// Versions that its C library has, if they are known.
    pub c_library: Option<BTreeSet<String>>,
}

/// Refuses what is wrong with the files, whatever else the guest has.
pub fn check(added: &[Added], is_ours: bool) -> Result<()> {
    let names = None;
    let around = Around {
        names,
        is_ours,
        flat: false,
        c_library: None,
    };
    Files::of(added, &around).map(drop)
}

/// An archive of what is added; empty when nothing is.
pub fn archive(added: &[Added], stdin: Option<&[u8]>, around: &Around) -> Result<Vec<u8>> {
    let mut files = Files::of(added, around)?;
    if let Some(stdin) = stdin {
        files.archive.file(STDIN, false, stdin.to_vec())?;
    }
    if added.is_empty() && stdin.is_none() {
        return Ok(Vec::new());
    }
    Ok(files.archive.bytes())
}

#[derive(Default)]
struct Files {
    archive: Archive,
    paths: BTreeSet<String>,
    /// Where it comes from, and what it needs.
    programs: Vec<(PathBuf, elf::Needs)>,
}

impl Files {
    fn of(added: &[Added], around: &Around) -> Result<Files> {
        let mut files = Files::default();
        for one in added {
            files.add(one, around)?;
        }
        files.check(around)?;
        Ok(files)
    }

    fn add(&mut self, one: &Added, around: &Around) -> Result<()> {
        let shown = format!("--add {one}");
        let whole = one.host.canonicalize().with_context(|| shown.clone())?;
        // A link goes by its own name.
        let own = one.host.file_name().or(whole.file_name());
        let name = own.and_then(|name| name.to_str());
        let name = name.with_context(|| format!("{shown}: its name is not text"))?;
        let is_directory = |path: &str| {
            let known = around.names.as_ref().and_then(|names| names.get(path));
            known.copied()
        };
        let place = match &one.guest {
            None => usual_place(&one.host, name),
            Some(guest) => {
                let path = guest.trim_end_matches('/');
                let into = guest.ends_with('/') || is_directory(path) == Some(true);
                match into && !one.host.is_dir() {
                    true => format!("{path}/{name}"),
                    false => path.to_string(),
                }
            }
        };
        let above = place.match_indices('/').map(|(at, _)| &place[..at]);
        if let Some(file) = above
            .into_iter()
            .find(|path| is_directory(path) == Some(false))
        {
            bail!("{shown}: /{file} is no folder in the guest");
        }
        self.tree(&one.host, &place).with_context(|| shown)
    }

    fn tree(&mut self, host: &Path, guest: &str) -> Result<()> {
        if !fs::metadata(host)?.is_dir() {
            return self.file(host, guest);
        }
        self.archive.directory(guest)?;
        self.paths.insert(guest.to_string());
        let mut entries = fs::read_dir(host)?;
        if let Some(Ok(entry)) =
            entries.find(|e| e.as_ref().is_ok_and(|e| e.file_name().to_str().is_none()))
        {
            bail!("{}: its name is not text", entry.path().display());
        }
        for name in names_in(host, |path| Some(path.file_name()?.to_str()?.to_string())) {
            let (host, guest) = (host.join(&name), format!("{guest}/{name}"));
            match host.read_link() {
                Ok(target) => {
                    let target = target.to_str().with_context(|| {
                        format!("{}: the link's target is not text", shown(&host))
                    })?;
                    self.archive.link(&guest, target)?;
                    self.paths.insert(guest);
                }
                Err(_) => self.tree(&host, &guest).with_context(|| shown(&host))?,
            }
        }
        Ok(())
    }

    fn file(&mut self, host: &Path, guest: &str) -> Result<()> {
        let metadata = fs::metadata(host)?;
        if !metadata.is_file() {
            bail!("neither a file nor a folder");
        }
        let content = fs::read(host)?;
        if content.starts_with(b"\x7fELF") && !is_object(&content) {
            let name = host.file_name().unwrap_or_default().to_string_lossy();
            let needs = elf::needs(&name, &content)?;
            if elf::architecture(&content).is_some_and(|number| number > ARMV5TEJ) {
                bail!(
                    "{name}: a program for ARMv6 or newer; the boards' cores are ARMv5TE: \
                     -march=armv5te makes one for them"
                );
            }
            self.programs.push((host.to_path_buf(), needs));
        }
        self.paths.insert(guest.to_string());
        let script = is_script(&content);
        let executable = metadata.permissions().mode() & 0o111 != 0 || script;
        if script {
            let first = content
                .split(|byte| *byte == b'\n')
                .next()
                .unwrap_or_default();
            let first = String::from_utf8_lossy(&first[2..]).into_owned();
            let interpreter = first.trim_start_matches([' ', '\t']);
            let end = interpreter.find([' ', '\t']).unwrap_or(interpreter.len());
            let needs = elf::Needs {
                loader: Some(interpreter[..end].to_string()),
                ..elf::Needs::default()
            };
            self.programs.push((host.to_path_buf(), needs));
        }
        self.archive.file(guest, executable, content)
    }

    /// What binfmt_elf_fdpic would refuse by ENOEXEC or ENOENT.
    fn check_flat(&self) -> Result<()> {
        for (host, needs) in &self.programs {
            let host = shown(host);
            if !needs.libraries.is_empty() {
                bail!("--add {host}: it is dynamic\n  help: {NOT_FLAT}");
            }
            if needs.fixed {
                bail!("--add {host}: it runs at one address only\n  help: {NOT_FLAT}");
            }
        }
        Ok(())
    }

    /// What the loader would refuse: linked with a newer C library.
    fn check_c_library(&self, versions: &BTreeSet<String>) -> Result<()> {
        for (host, needs) in &self.programs {
            if let Some(missing) = needs.c_library.difference(versions).next() {
                bail!(
                    "--add {}: it needs {missing} of {}, which is newer than the guest's\n  help: `warmswitch cc` \
                     links with the guest's own",
                    shown(host),
                    elf::C_LIBRARY
                );
            }
        }
        Ok(())
    }

    /// Whether everything has a place, and every program its loader and its libraries.
    fn check(&self, around: &Around) -> Result<()> {
        let covered = |path: &&String| {
            let first = path.split('/').next().unwrap_or("");
            COVERED.contains(&first)
        };
        if let Some(path) = self.paths.iter().find(covered).filter(|_| around.is_ours) {
            bail!("--add: /{path} would be out of sight: a file system is mounted over it");
        }
        if around.flat {
            self.check_flat()?;
        }
        if let Some(versions) = &around.c_library {
            self.check_c_library(versions)?;
        }
        // Of another root file system it is not known where its links lead.
        let Some(names) = around.names.as_ref().filter(|_| around.is_ours) else {
            return Ok(());
        };
        let there = |path: &str| names.contains_key(path) || self.paths.contains(path);
        let library = |name: &str| {
            // One with a path is looked for there.
            if name.contains('/') {
                return there(name.trim_start_matches('/'));
            }
            let is = |path: &String| path.rsplit('/').next() == Some(name);
            names.keys().any(is) || self.paths.iter().any(is)
        };
        for (host, needs) in &self.programs {
            let host = shown(host);
            if let Some(loader) = &needs.loader
                && !there(loader.trim_start_matches('/'))
            {
                bail!(
                    "--add {host}: it is run by {}, which is not in the guest",
                    loader.escape_debug()
                );
            }
            if let Some(name) = needs.libraries.iter().find(|name| !library(name)) {
                let cross = Path::new(CROSS_LIBRARIES).join(name);
                let hint = if name.contains('/') {
                    format!("link with the library's name alone, or --add it to /{name}")
                } else if cross.is_file() {
                    format!("--add {} takes it there", cross.display())
                } else {
                    format!("--add FILE:/{LIBRARY_DIR}/{name} takes it there")
                };
                bail!("--add {host}: it needs {name}, which is not in the guest: {hint}");
            }
        }
        Ok(())
    }
}

/// What a program has to be where there are no address spaces.
const NOT_FLAT: &str = "a kernel without address spaces runs static programs that run at any address, and do not fork: \
                        `warmswitch cc --for flat` makes one";

/// Programs go where the shell looks, libraries where the loader does, all else to the top.
fn usual_place(host: &Path, name: &str) -> String {
    // What is no file may never end.
    let file = fs::metadata(host).ok().filter(fs::Metadata::is_file);
    let runs =
        file.is_some_and(|file| file.permissions().mode() & 0o111 != 0 || begins_as_script(host));
    if name.ends_with(".so") || name.contains(".so.") {
        format!("{LIBRARY_DIR}/{name}")
    } else if runs {
        format!("bin/{name}")
    } else {
        name.to_string()
    }
}

fn begins_as_script(file: &Path) -> bool {
    let mut begin = [0; 2];
    let read = fs::File::open(file).and_then(|mut file| file.read_exact(&mut begin));
    read.is_ok() && is_script(&begin)
}

fn is_script(content: &[u8]) -> bool {
    content.starts_with(b"#!")
}

/// A kernel module or another file for a linker.
fn is_object(elf: &[u8]) -> bool {
    elf.get(16..18) == Some(&[1, 0])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(text: &str) -> Added {
        text.parse().unwrap()
    }

    fn around(names: &[&str]) -> Around {
        Around {
            names: Some(
                names
                    .iter()
                    .map(|name| (name.to_string(), !name.contains('.')))
                    .collect(),
            ),
            is_ours: true,
            flat: false,
            c_library: Some(BTreeSet::from(["GLIBC_2.4".to_string()])),
        }
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
        assert!("".parse::<Added>().is_err() && "x:/".parse::<Added>().is_err());
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
        let bytes = archive(&all, Some(b"in"), &around(&["bin/sh"])).unwrap();
        let names = crate::supply::image::cpio::names(&bytes).unwrap();
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
        // Into a folder of the guest, and by a link's own name.
        std::os::unix::fs::symlink("table.csv", dir.join("other")).unwrap();
        let into = added(&format!("{}/other:/etc", dir.display()));
        let bytes = archive(&[into], None, &around(&["etc"])).unwrap();
        let names = crate::supply::image::cpio::names(&bytes).unwrap();
        assert!(names.contains_key("etc/other"), "{names:?}");
        assert!(archive(&[], None, &around(&[])).unwrap().is_empty());
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
            none.contains("/none") && none.contains("No such file"),
            "{none}"
        );
        let own = std::env::current_exe().unwrap();
        let machine = error(own.display().to_string());
        assert!(machine.contains("not for little-endian ARM"), "{machine}");
        fs::write(dir.join("x"), "1").unwrap();
        // Neither read nor waited for.
        let device = error("/dev/zero".into());
        assert!(device.contains("neither a file nor a folder"), "{device}");
        let covered = error(format!("{}/x:/tmp/x", dir.display()));
        assert!(
            covered.contains("/tmp/x would be out of sight"),
            "{covered}"
        );
        let below = error(format!("{}/x:/lib/libc.so.6/x", dir.display()));
        assert!(below.contains("/lib/libc.so.6 is no folder"), "{below}");
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
}
