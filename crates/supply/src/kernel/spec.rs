// SPDX-License-Identifier: MIT OR Apache-2.0
//! `linux/<version>/kernel.toml`: where a kernel's source comes from, and which variants it has.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use toml::Spanned;

use super::config::{self, RequestedSymbol};
use super::folders::Folders;
use super::machine::ForMachine;
use super::options;
use super::patch::{self, Patch};
use base::paths::{folders_with, shown};
use base::suggest::did_you_mean;
use base::toml_file;

/// Layouts of the code that a kernel's name can select, see `patches/layout`.
pub const LAYOUTS: RangeInclusive<u32> = 1..=999;

/// Content of `kernel.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Another version. This version also uses that version's fragments, series, device trees and lists. A file with an
    /// equal name in this version's own folder takes precedence. `fixups` has this version's changes to patches.
    #[serde(default)]
    pub from: Option<String>,
    /// Debian's source package.
    pub source: SourceSpec,
    /// How to build the kernel.
    pub build: BuildSpec,
    /// The variants, by name. A name's span gives its place in the file.
    pub variant: BTreeMap<Spanned<String>, Variant>,
}

/// Table `[source]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceSpec {
    /// Binary package that holds the source.
    pub package: String,
    /// The tar file inside the package.
    pub member: String,
    /// Suites of Debian's archive that may carry the package.
    pub suites: Vec<String>,
    /// Only versions that begin with this text are accepted.
    pub series: String,
    /// The version that the project was tested with.
    pub tested: String,
    /// SHA-256 of the tested version's .deb.
    pub tested_sha256: String,
}

/// Table `[build]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BuildSpec {
    /// The kernel's name for the architecture.
    pub arch: String,
    /// Prefix of the cross tools.
    pub prefix: String,
    /// The source of the device tree, relative to `kernel.toml`.
    pub dts: String,
    /// The machine of this device tree, as `compatible` in machine files.
    pub compatible: String,
    /// Number of lines that a complete build prints, for the progress bar.
    pub steps: u64,
}

/// One table `[variant.<name>]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// One line for lists.
    pub title: String,
    /// The variant whose build this variant uses. Only the command line differs.
    #[serde(default)]
    pub same_as: Option<String>,
    /// Words for the kernel's command line.
    #[serde(default)]
    pub command_line: String,
    /// One of Linux's own configurations, `arch/arm/configs/<defconfig>`, on which `configs` is based. The kernel then
    /// has Linux's own device trees, and the board's machine selects one. Without this key, `configs` is based on the
    /// smallest configuration.
    #[serde(default)]
    pub defconfig: Option<String>,
    /// Names of files `configs/<name>.config`, in order.
    #[serde(default)]
    pub configs: Vec<String>,
    /// Names of additional configuration files, in order. Their values replace the values from `configs`.
    #[serde(default)]
    pub overrides: Vec<String>,
    /// Names of directories `patches/<name>/`, in order.
    #[serde(default)]
    pub patches: Vec<String>,
    /// Names of directories `../modules/<name>/`: out-of-tree modules.
    #[serde(default)]
    pub modules: Vec<String>,
    /// The variant's device tree, if it differs from the device tree in `[build]`. With `defconfig`, it has the form
    /// `dts/FOLDER/NAME.dts`, and replaces Linux's device tree NAME, such as `microchip/at91sam9263ek`.
    #[serde(default)]
    pub dts: Option<String>,
    /// Number of lines that a complete build of the variant prints, if it differs from the number in `[build]`.
    #[serde(default)]
    pub steps: Option<u64>,
    /// The variant's list of mutants, if it is not `mutants.toml`.
    #[serde(default)]
    pub mutants: Option<String>,
    /// Whether the variant is built only when requested by name.
    #[serde(default)]
    pub on_demand: bool,
    /// The core for which the variant is the default kernel, by its name in board files.
    #[serde(default)]
    pub default_for: Option<String>,
    /// The variant in whose configuration prefixes of the series are built. It is given if this variant's own
    /// configuration needs the complete series.
    #[serde(default)]
    pub prefixes_as: Option<String>,
}

impl Variant {
    /// Returns a key of this table that affects the build, if there is one.
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
            .or(self.defconfig.as_ref().map(|_| "defconfig"))
    }
}

/// One variant with everything that its build needs.
#[derive(Debug)]
pub struct Chosen {
    /// `6.12/plain`.
    pub name: String,
    /// The variant whose build this variant uses. A variant without `same_as` uses its own build.
    pub built: String,
    /// For a layout of the code, the name without the layout: `6.12/plain`.
    pub laid_out: Option<String>,
    /// Words for the kernel's command line.
    pub command_line: String,
    /// The folder of the variant's version, `linux/6.12`, and the folder that this version takes files from.
    pub folders: Folders,
    /// The content of `kernel.toml`.
    pub spec: Spec,
    /// The text of all fragments, in order. The options of the name follow at its end.
    pub fragments: String,
    /// The options in the name: `RSEQ=y`.
    pub options: Vec<String>,
    /// The user's configuration, which replaces the fragments.
    pub configuration: Option<config::Own>,
    /// The machine that boots the kernel, if the request names it.
    pub machine: Option<ForMachine>,
    /// The symbols that the fragments ask for.
    pub asked: Vec<RequestedSymbol>,
    /// The patches in the order in which they apply.
    pub patches: Vec<Patch>,
    /// Directories of the out-of-tree modules.
    pub modules: Vec<PathBuf>,
    /// The device tree's source.
    pub dts: PathBuf,
    /// The device tree of `[build]`, which a variant's own device tree includes.
    pub common_dts: PathBuf,
    /// The list of mutants.
    pub mutants: PathBuf,
}

/// Splits `6.12/plain@3` into the variant's name and the layout of the code. Layout 0 is the linker's own.
fn layout(name: &str) -> Result<(&str, u32)> {
    let Some((variant, number)) = name.split_once('@') else {
        return Ok((name, 0));
    };
    let known = number.parse().ok().filter(|n| LAYOUTS.contains(n));
    match known {
        Some(layout) => Ok((variant, layout)),
        None => bail!(
            "kernel \"{name}\": after @ comes the number of a code layout, from {} to {}",
            LAYOUTS.start(),
            LAYOUTS.end()
        ),
    }
}

/// Finds `6.12/plain`, or `plain` of the first version in [`versions`], below the directory `linux`. A name may have
/// options of the configuration, `plain+RSEQ=y`. A name with `@3` at its end selects another layout of the code.
pub fn choose(linux: &Path, name: &str) -> Result<Chosen> {
    let (name, layout) = layout(name)?;
    let (variant, options) = options::split(name)?;
    let mut chosen = choose_variant(linux, variant)?;
    if !options.is_empty() {
        chosen.set_options(&options)?;
    }
    if layout > 0 {
        chosen.lay_out(layout)?;
    }
    Ok(chosen)
}

impl Chosen {
    /// Returns the variant's table in the file.
    pub fn variant(&self) -> &Variant {
        self.table(&self.name)
    }

    /// Returns the name of Linux's own configuration that the build uses, if it uses one.
    pub fn defconfig(&self) -> Option<&str> {
        self.built_variant().defconfig.as_deref()
    }

    /// Returns the table of the variant whose build is used.
    fn built_variant(&self) -> &Variant {
        self.table(&self.built)
    }

    fn table(&self, name: &str) -> &Variant {
        let name = name.rsplit('/').next().unwrap_or_default();
        &self.spec.variant[name.split(['@', '+']).next().unwrap_or_default()]
    }

    /// Returns the full name of another variant in this file.
    pub fn beside(&self, name: &str) -> String {
        let series = self.name.split('/').next().unwrap_or_default();
        format!("{series}/{name}")
    }

    /// Returns the tree of Linux that the variant's own device tree replaces: `microchip/at91sam9263ek.dtb`.
    pub fn replaced_tree(&self) -> Option<PathBuf> {
        self.defconfig()?;
        replaced_tree(Path::new(self.built_variant().dts.as_ref()?))
    }

    fn set_options(&mut self, options: &[String]) -> Result<()> {
        let fragment = options::fragment(options);
        let asked = config::parse("the kernel's name", &fragment)?;
        self.asked
            .retain(|old| asked.iter().all(|new| new.symbol != old.symbol));
        self.asked.extend(asked);
        self.fragments += &fragment;
        self.options = options.to_vec();
        for name in [&mut self.name, &mut self.built] {
            *name = format!("{name}+{}", options.join("+"));
        }
        Ok(())
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
    check_defconfig(&spec, built).with_context(|| folders.toml())?;
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
        options: Vec::new(),
        configuration: None,
        machine: None,
        asked,
        patches,
        modules,
        dts,
        common_dts,
    })
}

/// Reads the files of all versions. Versions that take no files from another version come first. In both groups, the
/// newest version comes first.
pub fn versions(linux: &Path) -> Result<Vec<(String, Spec)>> {
    let names = folders_with(linux, "kernel.toml");
    let mut all = Vec::new();
    for name in names {
        let spec = read(&linux.join(&name).join("kernel.toml"))?;
        all.push((name, spec));
    }
    let number = |name: &str| -> Vec<u32> { name.split('.').flat_map(str::parse).collect() };
    all.sort_by_key(|(name, spec)| (spec.from.is_some(), Reverse(number(name))));
    Ok(all)
}

/// Returns every `version/variant` with its title. The variants of a version are in the order of its file.
pub fn list(linux: &Path) -> Result<Vec<(String, String)>> {
    let mut all = Vec::new();
    for (version, spec) in versions(linux)? {
        let mut variants: Vec<_> = spec.variant.into_iter().collect();
        variants.sort_by_key(|(name, _)| name.span().start);
        let entries = variants.into_iter();
        all.extend(entries.map(|(name, v)| (format!("{version}/{}", name.get_ref()), v.title)));
    }
    Ok(all)
}

/// Reads a version's `kernel.toml`. Returns its content, and the folders of the version's other files.
pub fn version(linux: &Path, name: &str) -> Result<(Spec, Folders)> {
    let spec = read(&linux.join(name).join("kernel.toml"))?;
    let folders = Folders::of(linux, name, spec.from.as_deref())?;
    Ok((spec, folders))
}

fn read(path: &Path) -> Result<Spec> {
    toml_file::read(path)
}

/// Returns the default variant for a core, from the first version that has one. The name has no version.
pub fn default_for(linux: &Path, core: &str) -> Result<String> {
    for (_, spec) in versions(linux)? {
        let is_for = |variant: &Variant| variant.default_for.as_deref() == Some(core);
        if let Some((name, _)) = spec.variant.iter().find(|(_, variant)| is_for(variant)) {
            return Ok(name.get_ref().clone());
        }
    }
    bail!(
        "no kernel in {} is the default for the core {core}\n  help: name one with --kernel",
        shown(linux)
    )
}

/// Returns the variant whose build `name` uses.
fn built<'a>(spec: &'a Spec, name: &'a str) -> Result<&'a str> {
    let variant = &spec.variant[name];
    let Some(other) = &variant.same_as else {
        return Ok(name);
    };
    if let Some(key) = variant.builds() {
        bail!(
            "variant.{name}.{key}: same_as takes it from \"{other}\": remove one of the two keys"
        );
    }
    let Some((other, found)) = spec.variant.get_key_value(other.as_str()) else {
        let names: Vec<&String> = spec.variant.keys().map(Spanned::get_ref).collect();
        let hint = did_you_mean(other, &names);
        bail!("variant.{name}.same_as: no variant \"{other}\"{hint}");
    };
    if found.same_as.is_some() {
        bail!(
            "variant.{name}.same_as: \"{other}\" has same_as itself: name the variant that it names"
        );
    }
    Ok(other.get_ref())
}

/// Fails when a variant has a `defconfig` that is not a file's name, or a device tree of its own beside it.
fn check_defconfig(spec: &Spec, name: &str) -> Result<()> {
    let variant = &spec.variant[name];
    let Some(defconfig) = &variant.defconfig else {
        return Ok(());
    };
    if !defconfig.ends_with("_defconfig") || defconfig.contains('/') {
        bail!(
            "variant.{name}.defconfig: \"{defconfig}\" is not the name of a file in arch/arm/configs, such as \
             at91_dt_defconfig"
        );
    }
    match &variant.dts {
        Some(dts) if replaced_tree(Path::new(dts)).is_none() => bail!(
            "variant.{name}.dts: \"{dts}\": a kernel with defconfig has Linux's own device trees; write \
             dts/FOLDER/NAME.dts to replace the tree NAME, such as dts/latency/microchip/at91sam9263ek.dts"
        ),
        _ => Ok(()),
    }
}

/// Returns the tree of Linux that the source `dts/FOLDER/NAME.dts` replaces: `NAME.dtb`.
fn replaced_tree(dts: &Path) -> Option<PathBuf> {
    let below = dts.strip_prefix("dts").ok()?;
    let mut parts = below.components();
    parts.next()?;
    let name = parts.as_path();
    (name.extension()? == "dts").then(|| name.with_extension("dtb"))
}

/// Reads the fragments of a variant. Returns their text, and the symbols that they request. Kconfig takes the last of
/// several values for a symbol.
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

/// Returns the patches of these series, in order. `key` is the key in `kernel.toml` that lists the series. Error
/// messages show the key.
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
#[path = "spec_tests.rs"]
mod tests;
