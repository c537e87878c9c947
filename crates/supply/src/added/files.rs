// SPDX-License-Identifier: MIT OR Apache-2.0
//! Collects added files into an archive. Finds each file's path in the guest, and follows the guest's links.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::rc::Rc;

use anyhow::{Context as _, Result, bail};

use super::program::{Program, is_script};
use super::view::View;
use super::{Added, Around};
use crate::image::LIBRARY_DIR;
use crate::image::cpio::{Archive, Kind};
use base::paths::{names_in, shown};
use base::suggest::check_exists;

/// Our /init mounts file systems over these folders.
const COVERED: [&str; 4] = ["dev", "proc", "sys", "tmp"];

/// The files collected so far.
pub struct Files<'a> {
    around: &'a Around,
    view: View,
    pub archive: Archive,
    programs: Vec<Program>,
    /// Bytes read so far.
    bytes: u64,
    /// Files of the host with several names, by device and inode.
    shared: BTreeMap<(u64, u64), Shared>,
    /// Paths at which an added link replaces a program of the guest.
    replaced: Vec<String>,
    /// Notes on files in folders, if the files are left out or cannot run.
    pub notes: Vec<String>,
}

#[derive(Clone)]
struct Shared {
    /// Number of the file in the archive.
    number: u32,
    content: Rc<[u8]>,
    is_program: bool,
}

impl<'a> Files<'a> {
    /// Collects all files, for the guest `around`.
    pub fn of(added: &[Added], around: &'a Around) -> Result<Files<'a>> {
        let mut files = Files {
            around,
            view: View::of(around.names.clone().unwrap_or_default()),
            archive: Archive::default(),
            programs: Vec::new(),
            bytes: 0,
            shared: BTreeMap::new(),
            replaced: Vec::new(),
            notes: Vec::new(),
        };
        for one in added {
            files.add(one).with_context(|| one.option())?;
        }
        files.check()?;
        Ok(files)
    }

    fn add(&mut self, one: &Added) -> Result<()> {
        check_exists(&one.host)?;
        let whole = one.host.canonicalize()?;
        // A link is added under its own name.
        let own = one.host.file_name().or(whole.file_name());
        let name = own.and_then(|name| name.to_str());
        let name = name.context("its name is not UTF-8")?;
        let is_folder = one.host.is_dir();
        let place = match &one.guest {
            None => usual_place(&one.host, name),
            Some(guest) => {
                let path = guest.trim_end_matches('/');
                let is_directory = self.view.behind(path) == Some(&Kind::Directory);
                let into = path.is_empty() || guest.ends_with('/') || is_directory;
                match into && !is_folder {
                    true => format!("{path}/{name}").trim_start_matches('/').to_string(),
                    false => path.to_string(),
                }
            }
        };
        if place.split('/').any(|part| matches!(part, "." | "..")) {
            bail!("/{place}: a place in the guest cannot contain . or ..");
        }
        let covered = |first| self.around.is_ours && COVERED.contains(&first);
        if place.split('/').next().is_some_and(covered) {
            bail!("/{place} would be hidden: the guest mounts a file system over it");
        }
        self.tree(&one.host, &place, !is_folder)
    }

    /// Adds a file, or a folder with its contents. `by_name` says whether the user named the file or folder itself.
    fn tree(&mut self, host: &Path, guest: &str, by_name: bool) -> Result<()> {
        let metadata = fs::metadata(host)?;
        if metadata.is_file() {
            return self.file(host, guest, &metadata, by_name);
        }
        if !metadata.is_dir() {
            if by_name {
                bail!("neither a file nor a folder");
            }
            self.leave_out(guest, "neither a file nor a folder");
            return Ok(());
        }
        let guest = self.folder(guest)?;
        let mut entries = fs::read_dir(host)?;
        if let Some(Ok(entry)) =
            entries.find(|e| e.as_ref().is_ok_and(|e| e.file_name().to_str().is_none()))
        {
            bail!("{}: its name is not UTF-8", entry.path().display());
        }
        for name in names_in(host, |path| Some(path.file_name()?.to_str()?.to_string())) {
            let host = host.join(&name);
            let guest = match guest.as_str() {
                "" => name,
                above => format!("{above}/{name}"),
            };
            if self.is_covered(&guest) {
                self.leave_out(&guest, "the guest mounts a file system over it");
                continue;
            }
            let added = match host.read_link() {
                Ok(target) => self.link(&target, &guest),
                Err(_) => self.tree(&host, &guest, false),
            };
            added.with_context(|| shown(&host))?;
        }
        Ok(())
    }

    /// Returns whether one of our /init's mounts would hide the path. The mount points themselves are not hidden.
    fn is_covered(&self, guest: &str) -> bool {
        let first = guest.split_once('/').map(|(first, _)| first);
        self.around.is_ours && first.is_some_and(|first| COVERED.contains(&first))
    }

    /// Adds a folder, or follows the guest's link to a folder. Returns the path for the folder's files.
    fn folder(&mut self, guest: &str) -> Result<String> {
        if guest.is_empty() {
            return Ok(String::new());
        }
        let place = self.below(guest, true)?;
        match self.view.at(&place) {
            Some(Kind::File { .. } | Kind::Other) => {
                bail!("/{place} is not a folder in the guest")
            }
            Some(Kind::Directory) => {}
            _ => {
                self.archive.directory(&place)?;
                self.view.put(&place, Kind::Directory);
            }
        }
        Ok(place)
    }

    /// Returns a path after following the guest's links. `last` says whether to follow a link at the path itself.
    fn below(&self, guest: &str, last: bool) -> Result<String> {
        let resolved = self.view.resolved(guest, last);
        resolved.map_err(|file| anyhow::anyhow!("/{file} is not a folder in the guest"))
    }

    fn link(&mut self, target: &Path, guest: &str) -> Result<()> {
        let target = target.to_str().context("the link's target is not UTF-8")?;
        let place = self.below(guest, false)?;
        if self.view.at(&place) == Some(&Kind::Directory) {
            let why = format!("a link to {target}, and the guest has a folder there");
            self.leave_out(&place, &why);
            return Ok(());
        }
        if self.is_program(&place) {
            self.replaced.push(place.clone());
        }
        self.archive.link(&place, target)?;
        self.view.put(&place, Kind::Link(target.to_string()));
        Ok(())
    }

    fn file(
        &mut self,
        host: &Path,
        guest: &str,
        metadata: &fs::Metadata,
        by_name: bool,
    ) -> Result<()> {
        let place = self.below(guest, false)?;
        if self.view.at(&place) == Some(&Kind::Directory) {
            bail!("/{place} is a folder in the guest");
        }
        let known = (metadata.dev(), metadata.ino());
        let runs =
            |content: &[u8]| metadata.permissions().mode() & 0o111 != 0 || is_script(content);
        let shared = match self.shared.get(&known).cloned() {
            Some(shared) => shared,
            None => {
                let content = self.read(host, metadata)?;
                let program = Program::of((host, &place), &content, runs(&content), by_name);
                let shared = Shared {
                    number: self.shared.len() as u32,
                    content: Rc::from(content),
                    is_program: program.is_some(),
                };
                self.programs.extend(program);
                if metadata.nlink() > 1 {
                    self.shared.insert(known, shared.clone());
                }
                shared
            }
        };
        self.check_replaced(&place, shared.is_program)?;
        let executable = runs(&shared.content);
        self.view.put(&place, Kind::File { executable });
        if metadata.nlink() > 1 {
            let (number, content) = (shared.number, &shared.content);
            return self.archive.name_of(&place, number, executable, content);
        }
        let content = shared.content.to_vec();
        self.archive.file(&place, executable, content)
    }

    /// Reads a file. Fails if all added files together are larger than the board's RAM.
    fn read(&mut self, host: &Path, metadata: &fs::Metadata) -> Result<Vec<u8>> {
        let ram = self.around.ram_bytes;
        let left = ram.saturating_sub(self.bytes);
        if metadata.len() > left {
            bail!(
                "{}: {} bytes; the board's whole RAM has {ram}",
                shown(host),
                metadata.len()
            );
        }
        let mut content = Vec::new();
        let file = fs::File::open(host).with_context(|| shown(host))?;
        file.take(left + 1)
            .read_to_end(&mut content)
            .with_context(|| shown(host))?;
        if content.len() as u64 > left {
            bail!(
                "{}: the file does not end, or it grows while it is read",
                shown(host)
            );
        }
        self.bytes += content.len() as u64;
        Ok(content)
    }

    fn is_program(&self, place: &str) -> bool {
        let found = self.view.behind(place);
        self.around.is_ours && found == Some(&Kind::File { executable: true })
    }

    /// Fails when something other than a program replaces a program of the guest. For instance, a guest without its
    /// shell does not start.
    fn check_replaced(&self, place: &str, by_program: bool) -> Result<()> {
        if !by_program && self.is_program(place) {
            bail!("/{place} is a program of the guest: only a program can replace it");
        }
        Ok(())
    }

    fn leave_out(&mut self, guest: &str, why: &str) {
        self.notes.push(format!("/{guest} is left out: {why}"));
    }

    /// Checks that every program can start. Fails for a program that the user named. Makes a note for a program in a
    /// folder.
    fn check(&mut self) -> Result<()> {
        if let Some(place) = self.replaced.iter().find(|place| !self.is_program(place)) {
            bail!("--add: /{place} is a program of the guest: only a program can replace it");
        }
        for program in &self.programs {
            let Some(why) = program.trouble(self.around, &self.view) else {
                continue;
            };
            if program.by_name {
                bail!("--add {}: {why}", shown(&program.host));
            }
            let why = why.split("\n  help: ").next().unwrap_or_default();
            let note = format!("/{} cannot run in the guest: {why}", program.guest);
            self.notes.push(note);
        }
        Ok(())
    }
}

/// Returns the default place of a file. Programs go to a folder of the shell's PATH, libraries to the loader's folder,
/// and other files to the root folder.
fn usual_place(host: &Path, name: &str) -> String {
    // A device may have endless content, so only files are read.
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
