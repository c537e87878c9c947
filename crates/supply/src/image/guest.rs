// SPDX-License-Identifier: MIT OR Apache-2.0
//! The guests: our own small programs below `guest/`. Each has a `workload.toml` that says how to build and call it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use super::Programs;
use super::sysroot::Sysroot;
use crate::cache::{self, Inputs};
use crate::toolchain::{PREFIX, command, output};
use base::paths::{self, shown};
use base::toml_file;

/// Compiler options for all guests. The compiler's script adds the options for the core.
const FLAGS: &[&str] = &[
    "-O2",
    "-g",
    "-std=gnu11",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wl,--build-id=none",
];

/// One `workload.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// One line for lists.
    pub title: String,
    /// If the guest's output has measurements: the kind of the output, a name in `results::outputs`.
    pub output: Option<String>,
    /// How to build the guest. `None` for a program from Debian.
    pub build: Option<BuildSpec>,
    /// Shell scripts, in the folder of the `workload.toml`, that go into the root file system.
    #[serde(default)]
    pub scripts: Vec<String>,
    /// The root file systems that contain the guest. Without this key, Debian's root file system contains the guest.
    /// Another root file system contains the guest if its list (`armv4t.toml`, `flat.toml`) names the guest. If this
    /// key is empty, no root file system contains the guest. The guest then only calls programs that all root file
    /// systems have, or it is added on request.
    pub among: Option<Vec<Programs>>,
    /// Command lines by name. The experiment fills in `{words}`.
    pub call: BTreeMap<String, String>,
    /// The guest's directory.
    #[serde(skip)]
    pub dir: PathBuf,
}

/// Table `[build]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BuildSpec {
    /// C files in the folder of the `workload.toml`.
    pub sources: Vec<String>,
    /// Files in `guest/shared` that the guest needs: headers, and C files that are compiled with its own.
    #[serde(default)]
    pub shared: Vec<String>,
    /// Libraries to link, as names after `-l`.
    #[serde(default)]
    pub libraries: Vec<String>,
    /// More compiler options, after the options for all guests.
    #[serde(default)]
    pub flags: Vec<String>,
    /// The forms of the guest, each with its additional options. Each form is a separate program from these sources,
    /// `NAME-FORM`.
    #[serde(default)]
    pub forms: BTreeMap<String, Vec<String>>,
}

/// Reads all guests, by name.
pub fn all() -> Result<BTreeMap<String, Workload>> {
    read_all(&paths::root().join("guest"))
}

fn read_all(dir: &Path) -> Result<BTreeMap<String, Workload>> {
    let names = paths::folders_with(dir, "workload.toml");
    names
        .into_iter()
        .map(|name| Ok((name.clone(), read(&dir.join(&name))?)))
        .collect()
}

/// Returns the folder with the headers that several guests include.
pub fn shared() -> PathBuf {
    paths::root().join("guest/shared")
}

fn read(dir: &Path) -> Result<Workload> {
    let path = dir.join("workload.toml");
    let mut workload: Workload = toml_file::read(&path)?;
    workload.dir = dir.to_path_buf();
    let sources: &[String] = match &workload.build {
        Some(build) if build.sources.is_empty() => {
            bail!("{}: build.sources: the list is empty", shown(&path))
        }
        Some(build) => &build.sources,
        None => &[],
    };
    let headers = workload.build.iter().flat_map(|build| &build.shared);
    let shared = shared();
    let files = sources.iter().map(|name| ("build.sources", dir, name));
    let files = files.chain(workload.scripts.iter().map(|name| ("scripts", dir, name)));
    for (key, folder, name) in files.chain(headers.map(|name| ("build.shared", &*shared, name))) {
        if name.contains('/') || !folder.join(name).is_file() {
            let folder = shown(folder);
            bail!("{}: {key}: no file {name} in {folder}", shown(&path));
        }
    }
    Ok(workload)
}

/// Returns the program of a guest that no root file system contains. The caller adds it to Debian's root file system.
pub fn alone(name: &str) -> Result<PathBuf> {
    let workload = all()?.remove(name);
    let workload = workload.with_context(|| format!("no guest \"{name}\""))?;
    let sysroot = Sysroot::get()?;
    let mut inputs = Inputs::new("guest program 3");
    inputs.add("sysroot", sysroot.hash.as_bytes());
    workload.add_to(name, &mut inputs)?;
    let place = cache::kept("guest", &inputs.hash(), |dir| {
        let program = dir.join(name);
        let flags = workload.build.as_ref().map(|build| build.flags.clone());
        let bytes = workload.build(&program, &flags.unwrap_or_default(), &sysroot.compiler())?;
        let bytes = bytes.with_context(|| format!("guest {name}: nothing to build"))?;
        // Replaces the program with its copy without debug information.
        fs::write(&program, bytes)?;
        Ok(())
    })?;
    Ok(place.join(name))
}

fn contents(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", shown(path)))
}

impl Workload {
    /// Returns whether, according to the key `among`, the root file system of these programs contains the guest.
    pub fn is_among(&self, programs: Programs) -> bool {
        let named = self.among.as_ref();
        named.is_none_or(|among| among.contains(&programs))
    }

    /// Adds the inputs of the built program. The title and the command lines do not belong to the inputs.
    pub fn add_to(&self, name: &str, inputs: &mut Inputs) -> Result<()> {
        inputs.add("guest", name.as_bytes());
        let mut files: Vec<&String> = self.scripts.iter().collect();
        if let Some(build) = &self.build {
            let flags = format!("{FLAGS:?} {:?}", build.libraries);
            inputs.add("flags", flags.as_bytes());
            let (flags, forms) = (&build.flags, &build.forms);
            if !flags.is_empty() || !forms.is_empty() {
                inputs.add("more flags", format!("{flags:?} {forms:?}").as_bytes());
            }
            files.extend(&build.sources);
            for name in &build.shared {
                inputs.add(name, &contents(&shared().join(name))?);
            }
        }
        for file in files {
            inputs.add(file, &self.file(file)?);
        }
        Ok(())
    }

    fn file(&self, name: &str) -> Result<Vec<u8>> {
        contents(&self.dir.join(name))
    }

    /// Returns the guest's scripts: name and content.
    pub fn scripts(&self) -> Result<Vec<(String, Vec<u8>)>> {
        let script = |name: &String| Ok((name.clone(), self.file(name)?));
        self.scripts.iter().map(script).collect()
    }

    /// Returns the programs that are built from the guest `name`, each with its compiler options.
    pub fn programs(&self, name: &str) -> Vec<(String, Vec<String>)> {
        let Some(build) = &self.build else {
            return Vec::new();
        };
        if build.forms.is_empty() {
            return vec![(name.to_string(), build.flags.clone())];
        }
        let forms = build.forms.iter();
        forms
            .map(|(form, more)| (format!("{name}-{form}"), [&build.flags[..], more].concat()))
            .collect()
    }

    /// Compiles the guest to `program`, with debug information. Returns the bytes of the program without debug
    /// information. Returns `None` if there is nothing to compile.
    pub fn build(
        &self,
        program: &Path,
        flags: &[String],
        compiler: &Path,
    ) -> Result<Option<Vec<u8>>> {
        let Some(build) = &self.build else {
            return Ok(None);
        };
        let mut compile = command(compiler);
        compile.args(FLAGS);
        compile.current_dir(&self.dir).args(flags);
        compile.arg(format!("-ffile-prefix-map={}=.", self.dir.display()));
        if !build.shared.is_empty() {
            let folder = shared();
            compile.arg(format!("-ffile-prefix-map={}=shared", folder.display()));
            compile.arg("-I").arg(folder);
        }
        compile.arg("-o").arg(program).args(&build.sources);
        let shared_sources = build.shared.iter().filter(|name| name.ends_with(".c"));
        compile.args(shared_sources.map(|name| shared().join(name)));
        let libraries = build.libraries.iter();
        compile.args(libraries.map(|library| format!("-l{library}")));
        output(&mut compile)?;
        let stripped = program.with_extension("stripped");
        let mut strip = command(&format!("{PREFIX}strip"));
        output(strip.arg("-o").arg(&stripped).arg(program))?;
        let bytes = fs::read(&stripped)?;
        fs::remove_file(&stripped)?;
        Ok(Some(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guests_of_this_tree_are_read() {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guest");
        let all = read_all(&dir).unwrap();
        assert!(all["lat_ctx"].call["process"].contains("{tasks}"));
        assert!(all.contains_key("cpu_bound"));
        let forms = all["layout"].programs("layout");
        let names: Vec<&str> = forms.iter().map(|(name, _)| &**name).collect();
        assert_eq!(
            names,
            ["layout-dynamic", "layout-dynamic-pie", "layout-static"]
        );
    }

    #[test]
    fn a_bad_workload_is_named_by_file_and_key() {
        let dir = std::env::temp_dir().join(format!("warmswitch-guest-{}", std::process::id()));
        fs::create_dir_all(dir.join("a")).unwrap();
        let path = dir.join("a/workload.toml");
        for (text, key) in [
            ("title='x'\n[build]\nsource=['a.c']\n[call]\n", "source"),
            (
                "title='x'\n[build]\nsources=['a.c']\n[call]\n",
                "build.sources",
            ),
            ("title='x'\n[build]\nsources=[]\n[call]\n", "build.sources"),
            (
                "title='x'\n[build]\nsources=['workload.toml']\nshared=['a.h']\n[call]\n",
                "build.shared: no file a.h in",
            ),
            ("title='x'\nscripts=['a']\n[call]\n", "scripts"),
        ] {
            fs::write(&path, text).unwrap();
            let error = format!("{:#}", read_all(&dir).unwrap_err());
            assert!(
                error.contains("workload.toml") && error.contains(key),
                "{error}"
            );
        }
        fs::remove_dir_all(&dir).unwrap();
    }
}
