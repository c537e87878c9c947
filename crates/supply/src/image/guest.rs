// SPDX-License-Identifier: MIT OR Apache-2.0
//! The guests: our own small programs below `guest/`, each with a `workload.toml` that says how it
//! is built and called.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use super::Programs;
use super::sysroot::Sysroot;
use crate::cache::{self, Inputs};
use crate::toolchain::{PREFIX, command, output};
use base::paths::{self, names_in, shown};
use base::toml_file;

/// Every guest is built so; the compiler's script knows for which core.
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
    /// The kind of output that it prints, if that can be measured: a name that `results::outputs` knows.
    pub output: Option<String>,
    /// How it is built; a program of Debian's is not.
    pub build: Option<BuildSpec>,
    /// Shell scripts beside the `workload.toml` that come with it.
    #[serde(default)]
    pub scripts: Vec<String>,
    /// Programs among which it is, by default Debian's, and those for ARMv4T that `armv4t.toml` names. With
    /// none nothing of it is in a root file system: it calls what every one has.
    pub among: Option<Vec<Programs>>,
    /// Command lines by name; `{words}` are filled in from the experiment.
    pub call: BTreeMap<String, String>,
    /// Its directory.
    #[serde(skip)]
    pub dir: PathBuf,
}

/// Table `[build]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BuildSpec {
    /// C files beside the `workload.toml`.
    pub sources: Vec<String>,
    /// Names behind `-l`.
    #[serde(default)]
    pub libraries: Vec<String>,
    /// For the compiler, behind those of all guests.
    #[serde(default)]
    pub flags: Vec<String>,
    /// Several programs from the same sources, with more flags each.
    #[serde(default)]
    pub forms: BTreeMap<String, Vec<String>>,
}

/// All guests by name.
pub fn all() -> Result<BTreeMap<String, Workload>> {
    read_all(&paths::root().join("guest"))
}

fn read_all(dir: &Path) -> Result<BTreeMap<String, Workload>> {
    let names = names_in(dir, |path| {
        let name = path.file_name()?.to_str()?.to_string();
        path.join("workload.toml").is_file().then_some(name)
    });
    names
        .into_iter()
        .map(|name| Ok((name.clone(), read(&dir.join(&name))?)))
        .collect()
}

fn read(dir: &Path) -> Result<Workload> {
    let path = dir.join("workload.toml");
    let mut workload: Workload = toml_file::read(&path)?;
    workload.dir = dir.to_path_buf();
    let sources: &[String] = match &workload.build {
        Some(build) if build.sources.is_empty() => {
            bail!("{}: build.sources: no file named", shown(&path))
        }
        Some(build) => &build.sources,
        None => &[],
    };
    for (key, names) in [("build.sources", sources), ("scripts", &workload.scripts)] {
        for name in names {
            if name.contains('/') || !dir.join(name).is_file() {
                bail!("{}: {key}: no file {name} beside it", shown(&path));
            }
        }
    }
    Ok(workload)
}

/// The program of a guest that is in no root file system, to be added to Debian's.
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
        // Without debug information, in place of the one with it.
        fs::write(&program, bytes)?;
        Ok(())
    })?;
    Ok(place.join(name))
}

impl Workload {
    /// Whether something of it is in the root file system of these programs.
    pub fn is_among(&self, programs: Programs) -> bool {
        let named = self.among.as_ref();
        named.is_none_or(|among| among.contains(&programs))
    }

    /// Adds what decides the built program.
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
        }
        for file in files {
            inputs.add(file, &self.file(file)?);
        }
        Ok(())
    }

    fn file(&self, name: &str) -> Result<Vec<u8>> {
        let path = self.dir.join(name);
        fs::read(&path).with_context(|| format!("cannot read {}", shown(&path)))
    }

    /// Its scripts, by name.
    pub fn scripts(&self) -> Result<Vec<(String, Vec<u8>)>> {
        let script = |name: &String| Ok((name.clone(), self.file(name)?));
        self.scripts.iter().map(script).collect()
    }

    /// The programs that are built of the guest `name`, each with its flags.
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

    /// Compiles to `program`, with debug information; gives the bytes without it. `None` when
    /// there is nothing to compile.
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
        compile.arg("-o").arg(program).args(&build.sources);
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
            ("title='x'\nscripts=['a']\n[call]\n", "scripts"),
            ("title='x'\noutput='lat_cxt'\n[call]\n", "lat_cxt"),
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
