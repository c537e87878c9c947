// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fetches packages of Debian's archive with the machine's apt, but without apt's state on the machine.
//!
//! All directories that apt writes to are below our cache, so apt needs neither root nor changes to the system. This
//! module writes the source list, with the addresses of the machine's own entries and the suites that the caller names.
//! apt checks the archive's signature with Debian's keyring, and each package's hash with the signed lists. We check
//! the package's hash again and store the hash next to the file. Packages in the cache need no network.

pub mod closure;
pub mod source;
pub mod sources;

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, anyhow, bail};
use sha2::{Digest as _, Sha256};

use crate::cache::{self, Lock};
use crate::toolchain::{command, output};
use base::interrupt::{self, Group};
use base::paths::{names_in, shown, write_atomically};
use base::progress::Progress;
use sources::{Archive, KEYRING};

/// One package in the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deb {
    /// Package.
    pub name: String,
    /// Debian's version.
    pub version: String,
    /// Hash of the file, in hexadecimal.
    pub sha256: String,
    /// The file.
    pub path: PathBuf,
}

/// A request for a package.
#[derive(Clone, Debug)]
pub struct Wish<'a> {
    /// Package.
    pub name: &'a str,
    /// Preferred version. If the archive no longer has it, another version is used.
    pub version: Option<&'a str>,
}

/// A file that the archive offers.
#[derive(Debug, PartialEq, Eq)]
struct Offer {
    file: String,
    bytes: u64,
    sha256: String,
}

/// The binary packages of one architecture, or the source packages, in the cache and in the archive.
pub struct Store {
    arch: String,
    of_sources: bool,
    suites: Vec<String>,
    apt: PathBuf,
    debs: PathBuf,
    cache: PathBuf,
}

impl Store {
    /// Prepares a store of binary packages. Writes no file. `arch` is Debian's name of the architecture, or `native`.
    pub fn new(arch: &str, suites: &[String]) -> Result<Store> {
        let cache = cache::dir()?;
        let arch = match arch {
            "native" => output(command("dpkg").arg("--print-architecture"))?
                .trim()
                .to_string(),
            other => other.to_string(),
        };
        Ok(Store {
            apt: cache.join("apt").join(&arch),
            debs: cache.join("packages").join(&arch),
            suites: suites.to_vec(),
            arch,
            of_sources: false,
            cache,
        })
    }

    /// Prepares a store of source packages. Writes no file.
    pub fn of_sources(suites: &[String]) -> Result<Store> {
        let store = Store::new("native", suites)?;
        Ok(Store {
            apt: store.cache.join("apt/source"),
            debs: store.cache.join("packages/source"),
            of_sources: true,
            ..store
        })
    }

    /// Returns the packages in the order of `wishes`. Takes packages from the cache, unless they are missing or
    /// `refresh` asks for the archive's packages.
    pub fn get(&self, wishes: &[Wish], refresh: bool) -> Result<Vec<Deb>> {
        let cached = |wish: &Wish| self.cached(wish);
        if !refresh && wishes.iter().all(|w| cached(w).is_some()) {
            return Ok(wishes.iter().filter_map(cached).collect());
        }
        let _lock = Lock::take(&self.cache, "apt")?;
        // Another process may have fetched the packages while we waited.
        let absent: Vec<&Wish> = wishes
            .iter()
            .filter(|w| refresh || cached(w).is_none())
            .collect();
        if !absent.is_empty() {
            self.fetch(&absent)?;
        }
        let mut all = Vec::new();
        for wish in wishes {
            let deb = cached(wish);
            all.push(deb.with_context(|| format!("package {} was not fetched", wish.name))?);
        }
        Ok(all)
    }

    /// Returns a package in the cache: the preferred version if the cache has it, otherwise the version fetched last.
    fn cached(&self, wish: &Wish) -> Option<Deb> {
        let mut found: Vec<(bool, std::time::SystemTime, Deb)> = Vec::new();
        for file in names_in(&self.debs, |p| Some(p.file_name()?.to_str()?.to_string())) {
            let Some((name, version)) = name_and_version(&file) else {
                continue;
            };
            let path = self.debs.join(&file);
            let Ok(sha256) = fs::read_to_string(path.with_extension("sha256")) else {
                continue;
            };
            let Ok(time) = fs::metadata(&path).and_then(|m| m.modified()) else {
                continue;
            };
            if name == wish.name {
                let preferred = wish.version == Some(&version);
                let sha256 = sha256.trim().to_string();
                found.push((
                    preferred,
                    time,
                    Deb {
                        name,
                        version,
                        sha256,
                        path,
                    },
                ));
            }
        }
        found
            .into_iter()
            .max_by_key(|(preferred, time, _)| (*preferred, *time))
            .map(|f| f.2)
    }

    fn fetch(&self, wishes: &[&Wish]) -> Result<()> {
        let updated = self.update()?;
        let mut words = Vec::new();
        for wish in wishes {
            let exact = wish.version.map(|v| format!("{}={v}", wish.name));
            let word = exact
                .filter(|word| self.offers(std::slice::from_ref(word)).is_ok())
                .unwrap_or_else(|| wish.name.to_string());
            words.push(word);
        }
        let offers = match self.offers(&words) {
            Ok(offers) => offers,
            Err(error) => {
                return Err(self.not_to_be_had(&words, updated.err().unwrap_or(error)));
            }
        };
        self.download(&["download"], &words, &offers, &self.debs)
    }

    /// Fetches the lists of packages.
    fn update(&self) -> Result<Result<String>> {
        self.configure()?;
        let progress = Progress::new("package lists", 0);
        // A missing suite does not matter if another suite has the package.
        let updated = output(self.apt_get().arg("update"));
        if interrupt::asked() {
            bail!("stopped");
        }
        progress.finish(if updated.is_ok() {
            "up to date"
        } else {
            "some lists could not be fetched"
        });
        Ok(updated)
    }

    /// Makes the error for packages that cannot be fetched. `why` contains apt's output.
    fn not_to_be_had(&self, words: &[String], why: anyhow::Error) -> anyhow::Error {
        let why = format!("{why:#}");
        let unsigned = without_key(&why, &self.suites);
        if !unsigned.is_empty() {
            return anyhow!(
                "cannot fetch {} from the suite {}: {KEYRING} does not have the suite's key\n  help: \
                install a newer keyring: {}",
                words.join(", "),
                unsigned.join(", "),
                crate::toolchain::install_line(&["debian-archive-keyring"])
            );
        }
        let why: Vec<&str> = why.lines().take(5).collect();
        let arch = if self.of_sources {
            "source"
        } else {
            &self.arch
        };
        let failed = anyhow!(
            "cannot fetch packages for {arch}: {} (suites {})\n{}\n  help: check the network",
            words.join(", "),
            self.suites.join(", "),
            why.join("\n")
        );
        cache::explained(failed, &self.cache)
    }

    fn offers(&self, words: &[String]) -> Result<Vec<Offer>> {
        let text = output(
            self.apt_get()
                .args(["download", "--print-uris"])
                .args(words),
        )?;
        let offers: Vec<Offer> = text.lines().filter_map(offer).collect();
        if offers.len() != words.len() {
            bail!(
                "apt offers {} files for {} packages",
                offers.len(),
                words.len()
            );
        }
        Ok(offers)
    }

    /// Downloads the offered files into `place` with a subcommand of apt-get.
    fn download(
        &self,
        verb: &[&str],
        words: &[String],
        offers: &[Offer],
        place: &Path,
    ) -> Result<()> {
        const MEGABYTE: u64 = 1_000_000;
        let incoming = self.apt.join("incoming");
        let _ = fs::remove_dir_all(&incoming);
        fs::create_dir_all(&incoming)?;
        fs::create_dir_all(place)?;
        let total: u64 = offers.iter().map(|o| o.bytes).sum();
        cache::check_room(&incoming, total, "packages to fetch")?;
        let mut progress = Progress::new("fetching packages (MB)", total.div_ceil(MEGABYTE));
        let errors = File::create(self.apt.join("download.log"))?;
        let mut apt = self.apt_get();
        apt.current_dir(&incoming).arg("-qq").args(verb).args(words);
        apt.stdout(Stdio::null()).stderr(errors);
        let status = Group::spawn(&mut apt)
            .context("cannot run apt-get")?
            .wait(|| progress.at(bytes_below(&incoming) / MEGABYTE, ""))?;
        if !status.success() {
            let log = fs::read_to_string(self.apt.join("download.log")).unwrap_or_default();
            let failed = anyhow!("the download failed ({status})\n{}", log.trim_end());
            return Err(cache::explained(failed, &incoming));
        }
        for offer in offers {
            take_in(&incoming.join(&offer.file), offer, place)?;
        }
        progress.finish(&format!(
            "{} packages, {} MB",
            offers.len(),
            total.div_ceil(MEGABYTE)
        ));
        Ok(())
    }

    /// Writes apt's configuration, with all directories below our cache.
    fn configure(&self) -> Result<()> {
        if !Path::new(KEYRING).is_file() {
            bail!(
                "{KEYRING} is missing\n  help: {}",
                crate::toolchain::install_line(&["debian-archive-keyring"])
            );
        }
        let archive = Archive::of_this_machine()?;
        let text = configuration(&self.apt, &self.arch, &machine_transport())?;
        for dir in ["state/lists/partial", "cache/archives/partial", "etc/empty"] {
            let dir = self.apt.join(dir);
            fs::create_dir_all(&dir).with_context(|| format!("cannot create {}", shown(&dir)))?;
        }
        let status = self.apt.join("state/status");
        if !status.exists() {
            fs::write(&status, b"")?;
        }
        let arch = (!self.of_sources).then_some(self.arch.as_str());
        let list = archive.list(&self.suites, arch);
        write_atomically(&self.apt.join("etc/sources.list"), list.as_bytes())?;
        write_atomically(&self.apt.join("apt.conf"), text.as_bytes())
    }

    fn apt_get(&self) -> Command {
        self.tool("apt-get")
    }

    /// Returns a command that runs one of apt's programs with our configuration.
    fn tool(&self, program: &str) -> Command {
        let mut apt = command(program);
        apt.env("APT_CONFIG", self.apt.join("apt.conf"));
        apt
    }
}

/// Returns the suites whose signature apt could not check, according to its output.
fn without_key<'a>(printed: &str, suites: &'a [String]) -> Vec<&'a str> {
    let lines: Vec<&str> = printed
        .lines()
        .filter(|l| l.contains("NO_PUBKEY"))
        .collect();
    let named = |suite: &&String| {
        let words = lines.iter().flat_map(|line| line.split([' ', '/']));
        words.into_iter().any(|word| word == suite.as_str())
    };
    suites.iter().filter(named).map(String::as_str).collect()
}

/// Checks one file and moves it into the store. Writes the hash first, because a file without a hash does not count as
/// complete.
fn take_in(incoming: &Path, offer: &Offer, place: &Path) -> Result<()> {
    let sha256 = sha256_of(incoming)?;
    if sha256 != offer.sha256 {
        bail!(
            "{}: SHA-256 is {sha256}, the archive's signed list says {}",
            offer.file,
            offer.sha256
        );
    }
    let place = place.join(&offer.file);
    write_atomically(
        &place.with_extension("sha256"),
        format!("{sha256}\n").as_bytes(),
    )?;
    fs::rename(incoming, &place).with_context(|| format!("cannot move {} to its place", offer.file))
}

fn configuration(dir: &Path, arch: &str, transport: &str) -> Result<String> {
    let Some(at) = dir.to_str().filter(|at| !at.contains(['"', '\n', '\\'])) else {
        bail!(
            "the cache's path cannot be used in apt's configuration: {}",
            dir.display()
        );
    };
    Ok(format!(
        "APT::Architecture \"{arch}\";\nAPT::Architectures {{ \"{arch}\"; }};\n\
         APT::Sandbox::User \"\";\nAcquire::Languages \"none\";\nAcquire::Retries \"3\";\n\
         APT::Update::Error-Mode \"any\";\n\
         Dir::State \"{at}/state\";\nDir::State::status \"{at}/state/status\";\n\
         Dir::Cache \"{at}/cache\";\nDir::Log \"{at}\";\nDir::Etc \"{at}/etc\";\n\
         Dir::Etc::SourceList \"{at}/etc/sources.list\";\nDir::Etc::SourceParts \"{at}/etc/empty\";\n\
         Dir::Etc::Main \"/dev/null\";\nDir::Etc::Parts \"{at}/etc/empty\";\n\
         Dir::Etc::Preferences \"/dev/null\";\nDir::Etc::PreferencesParts \"{at}/etc/empty\";\n\
         Dir::Etc::Trusted \"/dev/null\";\nDir::Etc::TrustedParts \"{at}/etc/empty\";\n{transport}"
    ))
}

/// Returns this machine's settings for reaching the archive, such as proxies and certificates. No other setting of
/// the machine is used.
fn machine_transport() -> String {
    let dump = output(command("apt-config").args(["dump", "Acquire"])).unwrap_or_default();
    let keep = |line: &&str| {
        let line = line.to_ascii_lowercase();
        line.starts_with("acquire::http::") || line.starts_with("acquire::https::")
    };
    dump.lines()
        .filter(keep)
        .map(|line| format!("{line}\n"))
        .collect()
}

/// Returns the package and version of `name_version_arch.deb`. apt writes a version's `:` as `%3a`.
fn name_and_version(file: &str) -> Option<(String, String)> {
    let mut parts = file.strip_suffix(".deb")?.splitn(3, '_');
    let (name, version) = (parts.next()?, parts.next()?);
    parts.next()?;
    Some((name.to_string(), version.replace("%3a", ":")))
}

/// Reads a line `'uri' file size SHA256:hash`.
fn offer(line: &str) -> Option<Offer> {
    let mut words = line.strip_prefix('\'')?.split_whitespace().skip(1);
    let (file, bytes, hash) = (words.next()?, words.next()?, words.next()?);
    (!file.contains('/')).then_some(())?;
    Some(Offer {
        file: file.to_string(),
        bytes: bytes.parse().ok()?,
        sha256: hash.strip_prefix("SHA256:")?.to_string(),
    })
}

fn bytes_below(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .filter_map(|e| e.metadata().ok())
        .map(|m| m.len())
        .sum()
}

/// Returns the SHA-256 of a file, in hexadecimal.
pub fn sha256_of(path: &Path) -> Result<String> {
    let mut file = File::open(path).with_context(|| format!("cannot read {}", shown(path)))?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hash.finalize().iter().map(|b| format!("{b:02x}")).collect()),
            n => hash.update(&buffer[..n]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offer_is_read_and_anything_else_is_not() {
        let line = "'http://m.example/p/a_1%3a2-3_armel.deb' a_1%3a2-3_armel.deb 12 SHA256:ab";
        let read = offer(line).unwrap();
        assert_eq!((read.bytes, read.sha256.as_str()), (12, "ab"));
        let expected = ("a".to_string(), "1:2-3".to_string());
        assert_eq!(name_and_version(&read.file), Some(expected));
        assert_eq!(offer("'http://m.example/x' ../x 12 SHA256:ab"), None);
        assert_eq!(offer("'http://m.example/x' x 12 MD5Sum:ab"), None);
        assert_eq!(offer("Reading package lists..."), None);
        assert_eq!(name_and_version("a_1.deb"), None);
    }

    #[test]
    fn a_suite_whose_key_is_not_there_is_named() {
        let suites = ["trixie", "trixie-backports"].map(String::from);
        let printed = "W: GPG error: http://m.example/debian trixie-backports InRelease: The following \
            signatures couldn't be verified because the public key is not available: NO_PUBKEY 6E\n\
            E: The repository 'http://m.example/debian trixie InRelease' is not there.";
        assert_eq!(without_key(printed, &suites), ["trixie-backports"]);
        assert!(without_key("E: no network", &suites).is_empty());
    }

    #[test]
    fn apts_configuration_names_no_directory_of_the_system() {
        let text = configuration(Path::new("/c/apt"), "armel", "").unwrap();
        for line in text.lines().filter(|line| line.starts_with("Dir::")) {
            assert!(
                line.contains("\"/c/apt") || line.contains("\"/dev/null"),
                "{line}"
            );
        }
        assert!(configuration(Path::new("/c/\"; x"), "armel", "").is_err());
    }

    #[test]
    fn the_hash_of_a_file_is_the_known_one() {
        let path = std::env::temp_dir().join(format!("warmswitch-sha-{}", std::process::id()));
        fs::write(&path, b"abc").unwrap();
        let hash = sha256_of(&path).unwrap();
        assert!(hash.starts_with("ba7816bf8f01cfea") && hash.ends_with("f20015ad"));
        fs::remove_file(&path).unwrap();
    }
}
