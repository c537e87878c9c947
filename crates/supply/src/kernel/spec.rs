// SPDX-License-Identifier: MIT OR Apache-2.0
//! `linux/<series>/kernel.toml`: where a kernel comes from and which variants of it there are.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use super::config::{self, RequestedSymbol};
use super::folders::Folders;
use super::patch::{self, Patch};
use base::paths::{names_in, shown};
use base::suggest::did_you_mean;
use base::toml_file;

/// Layouts of the code that a name can ask for, see `patches/layout`.
pub const LAYOUTS: RangeInclusive<u32> = 1..=999;

/// The whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// The version whose fragments, series, device trees and lists these are, too, where there is none of that name in this
    /// folder; `fixups` says what differs.
    #[serde(default)]
    pub from: Option<String>,
    /// Debian's source package.
    pub source: SourceSpec,
    /// How it is built.
    pub build: BuildSpec,
    /// By name.
    pub variant: BTreeMap<String, Variant>,
}

/// Table `[source]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceSpec {
    /// Binary package that holds the source.
    pub package: String,
    /// The tar file inside it.
    pub member: String,
    /// Suites of Debian's archive that may carry it.
    pub suites: Vec<String>,
    /// Versions that begin so are accepted.
    pub series: String,
    /// The version that the project was tested with.
    pub tested: String,
    /// SHA-256 of its .deb.
    pub tested_sha256: String,
}

/// Table `[build]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BuildSpec {
    /// The kernel's name of the architecture.
    pub arch: String,
    /// Prefix of the cross tools.
    pub prefix: String,
    /// The device tree, relative to the file.
    pub dts: String,
    /// Lines that a whole build prints (for the progress bar).
    pub steps: u64,
}

/// One table `[variant.<name>]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// One line for lists.
    pub title: String,
    /// The variant whose build this is, too: only what it is told differs.
    #[serde(default)]
    pub same_as: Option<String>,
    /// Words for the kernel's command line.
    #[serde(default)]
    pub command_line: String,
    /// Names of files `configs/<name>.config`, in order.
    #[serde(default)]
    pub configs: Vec<String>,
    /// The same; what they say goes before what `configs` say.
    #[serde(default)]
    pub overrides: Vec<String>,
    /// Names of directories `patches/<name>/`, in order.
    #[serde(default)]
    pub patches: Vec<String>,
    /// Names of directories `../modules/<name>/`: modules out of the kernel's tree.
    #[serde(default)]
    pub modules: Vec<String>,
    /// Its device tree, when it is not that of `[build]`.
    #[serde(default)]
    pub dts: Option<String>,
    /// Lines that its whole build prints, when these are not those of `[build]`.
    #[serde(default)]
    pub steps: Option<u64>,
    /// Its list of mutants, when it is not `mutants.toml`.
    #[serde(default)]
    pub mutants: Option<String>,
    /// Nothing builds it unless it is named.
    #[serde(default)]
    pub on_demand: bool,
    /// The core whose boards boot it when no kernel is named, as board files call it.
    #[serde(default)]
    pub default_for: Option<String>,
    /// The variant whose configuration a part of its series is built in, when only all of it makes its own possible.
    #[serde(default)]
    pub prefixes_as: Option<String>,
}

impl Variant {
    /// A key it has that says how to build.
    fn builds(&self) -> Option<&'static str> {
        let keys = [
            ("configs", &self.configs),
            ("overrides", &self.overrides),
            ("patches", &self.patches),
            ("modules", &self.modules),
        ];
        let set = keys.iter().find(|(_, names)| !names.is_empty());
        set.map(|(key, _)| *key)
            .or(self.dts.as_ref().map(|_| "dts"))
    }
}

/// One variant with everything that belongs to it.
#[derive(Debug)]
pub struct Chosen {
    /// `6.12/plain`.
    pub name: String,
    /// The variant that is built for it, which is itself for most.
    pub built: String,
    /// Of several layouts of the code the name that they share: `6.12/plain`.
    pub laid_out: Option<String>,
    /// Words for the kernel's command line.
    pub command_line: String,
    /// `linux/6.12`.
    pub folders: Folders,
    /// The file.
    pub spec: Spec,
    /// All fragments, one behind the other.
    pub fragments: String,
    /// The user's configuration instead.
    pub configuration: Option<config::Own>,
    /// The fragments, read.
    pub asked: Vec<RequestedSymbol>,
    /// The patches in the order in which they apply.
    pub patches: Vec<Patch>,
    /// The modules out of its tree.
    pub modules: Vec<PathBuf>,
    /// The device tree's source.
    pub dts: PathBuf,
    /// That of `[build]`, which it includes when it is another one.
    pub common_dts: PathBuf,
    /// The list of mutants.
    pub mutants: PathBuf,
}

/// Of `6.12/plain@3` the name without the layout of the code, and which one: 0 as the linker has it.
fn layout(name: &str) -> Result<(&str, u32)> {
    let Some((variant, number)) = name.split_once('@') else {
        return Ok((name, 0));
    };
    let known = number.parse().ok().filter(|n| LAYOUTS.contains(n));
    match known {
        Some(layout) => Ok((variant, layout)),
        None => bail!(
            "kernel \"{name}\": behind @ stands a layout of the code, from {} to {}",
            LAYOUTS.start(),
            LAYOUTS.end()
        ),
    }
}

/// Finds `6.12/plain`, or `plain` of the first of [`versions`], below `linux` (a directory). With `@3` behind
/// it, it is the same with the code in other places.
pub fn choose(linux: &Path, name: &str) -> Result<Chosen> {
    let (variant, layout) = layout(name)?;
    let mut chosen = choose_variant(linux, variant)?;
    if layout > 0 {
        chosen.lay_out(layout)?;
    }
    Ok(chosen)
}

impl Chosen {
    /// Its table of the file.
    pub fn variant(&self) -> &Variant {
        let name = self.name.rsplit('/').next().unwrap_or_default();
        &self.spec.variant[name.split('@').next().unwrap_or_default()]
    }

    /// The name of another variant of the same file.
    pub fn beside(&self, name: &str) -> String {
        let series = self.name.split('/').next().unwrap_or_default();
        format!("{series}/{name}")
    }

    fn lay_out(&mut self, layout: u32) -> Result<()> {
        let fragment = format!("CONFIG_CODE_LAYOUT={layout}\n");
        self.asked.extend(config::parse("the layout", &fragment)?);
        self.fragments += &fragment;
        self.patches
            .extend(patch::series(&self.folders, "layout", "the layout")?);
        self.laid_out = Some(self.built.clone());
        for name in [&mut self.name, &mut self.built] {
            *name = format!("{name}@{layout}");
        }
        Ok(())
    }
}

fn choose_variant(linux: &Path, name: &str) -> Result<Chosen> {
    let all = list(linux)?;
    let names: Vec<String> = all.iter().map(|(name, _)| name.clone()).collect();
    let short = |full: &&String| full.split_once('/').is_some_and(|p| p.1 == name);
    let full = names.iter().find(|full| *full == name);
    let full = full.or_else(|| names.iter().find(short));
    let Some(full) = full else {
        let short = |full: &String| match full.split_once('/') {
            Some((_, short)) if !name.contains('/') => short.to_string(),
            _ => full.clone(),
        };
        let names: Vec<String> = names.iter().map(short).collect();
        bail!(
            "no kernel \"{name}\" in {}{}",
            shown(linux),
            did_you_mean(name, &names)
        );
    };
    let (series, variant) = full.split_once('/').unwrap_or((full, ""));
    let (spec, folders) = version(linux, series)?;
    let built = built(&spec, variant).with_context(|| folders.toml())?;
    let (fragments, asked) = fragments(&folders, &spec, built)?;
    let key = format!("variant.{built}.patches");
    let patches = patches(&folders, &spec.variant[built].patches, &key)?;
    let common_dts = folders.file(&spec.build.dts);
    let own = spec.variant[built].dts.as_ref();
    let dts = own.map_or(common_dts.clone(), |dts| folders.file(dts));
    let modules = modules(&folders, &spec, built)?;
    if !dts.is_file() {
        bail!("{}: dts: no file {}", folders.toml(), shown(&dts));
    }
    let mutants = spec.variant[variant].mutants.as_deref();
    let mutants = folders.file(mutants.unwrap_or("mutants.toml"));
    Ok(Chosen {
        name: full.clone(),
        built: format!("{series}/{built}"),
        laid_out: None,
        command_line: spec.variant[variant].command_line.clone(),
        folders,
        mutants,
        spec,
        fragments,
        configuration: None,
        asked,
        patches,
        modules,
        dts,
        common_dts,
    })
}

/// The versions with their files: first those that take nothing from another one, of these and of the others the newest.
pub fn versions(linux: &Path) -> Result<Vec<(String, Spec)>> {
    let names = names_in(linux, |path| {
        let name = path.file_name()?.to_str()?.to_string();
        path.join("kernel.toml").is_file().then_some(name)
    });
    let mut all = Vec::new();
    for name in names {
        let spec = read(&linux.join(&name).join("kernel.toml"))?;
        all.push((name, spec));
    }
    let number = |name: &str| -> Vec<u32> { name.split('.').flat_map(str::parse).collect() };
    all.sort_by_key(|(name, spec)| (spec.from.is_some(), Reverse(number(name))));
    Ok(all)
}

/// Every `version/variant` with its title: a version behind the other, and its variants by name.
pub fn list(linux: &Path) -> Result<Vec<(String, String)>> {
    let mut all = Vec::new();
    for (version, spec) in versions(linux)? {
        for (name, variant) in spec.variant {
            all.push((format!("{version}/{name}"), variant.title));
        }
    }
    Ok(all)
}

/// A version's file, and where its other files are.
pub fn version(linux: &Path, name: &str) -> Result<(Spec, Folders)> {
    let spec = read(&linux.join(name).join("kernel.toml"))?;
    let folders = Folders::of(linux, name, spec.from.as_deref())?;
    Ok((spec, folders))
}

fn read(path: &Path) -> Result<Spec> {
    toml_file::read(path)
}

/// The variant that says it is for this core, of the first version with one; without the version in its name.
pub fn default_for(linux: &Path, core: &str) -> Result<String> {
    for (_, spec) in versions(linux)? {
        let is_for = |variant: &Variant| variant.default_for.as_deref() == Some(core);
        if let Some((name, _)) = spec.variant.iter().find(|(_, variant)| is_for(variant)) {
            return Ok(name.clone());
        }
    }
    bail!(
        "no kernel in {} says that it is for the core {core}\n  help: --kernel names one",
        shown(linux)
    )
}

/// The variant that is built for `name`.
fn built<'a>(spec: &'a Spec, name: &'a str) -> Result<&'a str> {
    let variant = &spec.variant[name];
    let Some(other) = &variant.same_as else {
        return Ok(name);
    };
    if let Some(key) = variant.builds() {
        bail!("variant.{name}: {key} is that of \"{other}\", which it is the same as");
    }
    let Some((other, found)) = spec.variant.get_key_value(other) else {
        let names: Vec<&String> = spec.variant.keys().collect();
        let hint = did_you_mean(other, &names);
        bail!("variant.{name}.same_as: no variant \"{other}\"{hint}");
    };
    if found.same_as.is_some() {
        bail!("variant.{name}.same_as: \"{other}\" is itself the same as another");
    }
    Ok(other)
}

/// The text of all fragments and what they ask for. Kconfig takes the last of several values.
fn fragments(
    folders: &Folders,
    spec: &Spec,
    variant: &str,
) -> Result<(String, Vec<RequestedSymbol>)> {
    let chosen = &spec.variant[variant];
    let (mut text, asked) = read_fragments(folders, variant, "configs", &chosen.configs)?;
    let (over, overriding) = read_fragments(folders, variant, "overrides", &chosen.overrides)?;
    text.push_str(&over);
    let stays = |asked: &RequestedSymbol| overriding.iter().all(|o| o.symbol != asked.symbol);
    let mut all: Vec<RequestedSymbol> = asked.into_iter().filter(stays).collect();
    all.extend(overriding);
    Ok((text, all))
}

fn read_fragments(
    folders: &Folders,
    variant: &str,
    key: &str,
    names: &[String],
) -> Result<(String, Vec<RequestedSymbol>)> {
    let mut text = String::new();
    let mut asked = Vec::new();
    for name in names {
        let path = folders.file(format!("configs/{name}.config"));
        let fragment = fs::read_to_string(&path).with_context(|| {
            let file = folders.toml();
            format!(
                "{file}: variant.{variant}.{key}: cannot read {}",
                shown(&path)
            )
        })?;
        asked.extend(config::parse(&shown(&path), &fragment)?);
        text.push_str(&fragment);
    }
    config::agree(&asked)?;
    Ok((text, asked))
}

/// The patches of these series, one behind the other; `key` asks for them.
pub fn patches(folders: &Folders, names: &[String], key: &str) -> Result<Vec<Patch>> {
    let series = names.iter().map(|name| patch::series(folders, name, key));
    Ok(series.collect::<Result<Vec<_>>>()?.concat())
}

fn modules(folders: &Folders, spec: &Spec, variant: &str) -> Result<Vec<PathBuf>> {
    let names = spec.variant[variant].modules.iter();
    let path = |name: &String| {
        let path = folders.file(Path::new("../modules").join(name));
        if !path.join("Kbuild").is_file() {
            bail!(
                "{}: variant.{variant}.modules: no {}",
                folders.toml(),
                shown(&path.join("Kbuild"))
            );
        }
        Ok(path)
    };
    names.map(path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn linux() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../linux")
    }

    #[test]
    fn the_plain_kernel_is_found_by_its_full_and_its_short_name() {
        assert_eq!(choose(&linux(), "6.12/plain").unwrap().name, "6.12/plain");
        let plain = choose(&linux(), "plain").unwrap();
        assert_eq!(plain.name, "6.12/plain");
        assert!(plain.patches.is_empty());
        assert!(plain.asked.iter().any(|a| a.symbol == "CONFIG_CPU_ARM926T"));
    }

    #[test]
    fn an_unknown_kernel_gets_the_nearest_name() {
        let error = choose(&linux(), "6.12/plian").unwrap_err().to_string();
        assert!(error.contains("did you mean \"6.12/plain\"?"), "{error}");
    }

    #[test]
    fn a_variant_can_be_anothers_build_told_something_else() {
        let one = choose(&linux(), "6.12/fcse-best-effort").unwrap();
        let other = choose(&linux(), &one.built).unwrap();
        assert_eq!(other.name, "6.12/fcse-guaranteed");
        assert_eq!(
            (one.fragments, one.patches),
            (other.fragments, other.patches)
        );
        assert_eq!(one.command_line, "fcse=best-effort");
        assert_ne!(one.mutants, other.mutants);
    }

    #[test]
    fn a_number_behind_the_name_is_a_layout_of_its_code() {
        let at = |name: &str| choose(&linux(), name);
        let (one, other) = (
            at("fcse-best-effort@7").unwrap(),
            at("fcse-best-effort").unwrap(),
        );
        assert_eq!(
            (&*one.name, &*one.built),
            ("6.12/fcse-best-effort@7", "6.12/fcse-guaranteed@7")
        );
        assert_eq!(one.patches.len(), other.patches.len() + 1);
        assert!(one.fragments.ends_with("CONFIG_CODE_LAYOUT=7\n"));
        assert_eq!(one.command_line, other.command_line);
        for name in ["plain@", "plain@0", "plain@1000", "plain@x", "plain@1@2"] {
            let error = at(name).unwrap_err().to_string();
            assert!(error.contains("from 1 to 999"), "{error}");
        }
    }

    #[test]
    fn a_variant_is_the_same_as_one_that_is_built() {
        let file = fs::read_to_string(linux().join("6.12/kernel.toml")).unwrap();
        let error = |variant: &str| {
            let spec = toml::from_str(&format!("{file}\n[variant.x]\ntitle = \"\"\n{variant}"));
            built(&spec.unwrap(), "x").unwrap_err().to_string()
        };
        let unknown = error("same_as = \"plian\"");
        assert!(unknown.contains("did you mean \"plain\"?"), "{unknown}");
        let twice = error("same_as = \"fcse-best-effort\"");
        assert!(twice.contains("itself the same as another"), "{twice}");
        let both = error("same_as = \"plain\"\npatches = [\"fcse\"]");
        assert!(both.contains("patches is that of \"plain\""), "{both}");
    }

    #[test]
    fn a_variant_can_have_modules_and_a_device_tree_of_its_own() {
        let plain = choose(&linux(), "6.12/plain").unwrap();
        assert_eq!((plain.modules.len(), &plain.dts), (0, &plain.common_dts));
        let latency = choose(&linux(), "6.12/fcse-best-effort-latency").unwrap();
        assert!(latency.modules[0].ends_with("uio_latency"));
        assert_ne!(latency.dts, latency.common_dts);
        assert!(latency.command_line.contains("threadirqs"));
    }

    #[test]
    fn an_unknown_key_is_named_with_its_file() {
        let dir = std::env::temp_dir().join(format!("warmswitch-spec-{}", std::process::id()));
        fs::create_dir_all(dir.join("1.0")).unwrap();
        let good = fs::read_to_string(linux().join("6.12/kernel.toml")).unwrap();
        fs::write(dir.join("1.0/kernel.toml"), good.replace("steps", "stepz")).unwrap();
        let error = format!("{:#}", choose(&dir, "plain").unwrap_err());
        assert!(
            error.contains("1.0/kernel.toml") && error.contains("stepz"),
            "{error}"
        );
        fs::write(dir.join("1.0/kernel.toml"), good).unwrap();
        let error = format!("{:#}", choose(&dir, "plain").unwrap_err());
        assert!(error.contains("variant.plain.configs"), "{error}");
        fs::remove_dir_all(&dir).unwrap();
    }
}
