// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask bisect-demo [DIR]`: checks that `git bisect run warmswitch coherence` finds a planted bug.
//!
//! Makes two git repositories of the kernel's source ([`DEMOS`]). In one, a commit removes a cache flush of memory
//! management; the configuration is ours. In the other, a commit breaks the DMA of a driver; the configuration is Linux's
//! own `at91_dt_defconfig`, on the whole chip `sam9263-ek`. git searches for these commits with kernels that are built
//! from a user's `.config`. The check fails if git finds another commit. The first kernel of each repository takes some
//! minutes. The next kernels recompile little. `cargo xtask bisect-demo memory` and `... driver` make one of them. Deletes
//! DIR first. Needs 6 GB.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};

use crate::{cargo, must, root};

/// A commit: its subject, its file, the text to replace, and the replacement.
type Change = (&'static str, &'static str, &'static str, &'static str);

/// A repository with a planted bug.
struct Demo {
    name: &'static str,
    /// The named kernel that gives the configuration.
    kernel: &'static str,
    /// Subject of the commit with the bug.
    bug: &'static str,
    /// The commits. All commits except one change only comments or messages.
    series: &'static [Change],
    /// Options of `coherence`.
    options: &'static [&'static str],
    /// The test that reaches the bug.
    test: &'static [&'static str],
}

const DEMOS: [Demo; 2] = [
    Demo {
        name: "memory",
        kernel: "6.12/plain",
        bug: FLUSHED_ONCE,
        series: &MEMORY,
        options: &[],
        test: &["mm_suite", "--only", "shared_and_write"],
    },
    Demo {
        name: "driver",
        kernel: "6.12/at91-dt",
        bug: MAPPED_ALIKE,
        series: &DRIVER,
        options: &["--board", "sam9263-ek"],
        test: &["dma_suite", "--only", "flash_turns"],
    },
];

const FLUSHED_ONCE: &str = "mm: filemap: flush a written folio once";
const MAPPED_ALIKE: &str = "spi: atmel: map both buffers alike";

const MEMORY: [Change; 9] = [
    (
        "pipe: say what the default size is",
        "fs/pipe.c",
        "#define PIPE_MIN_DEF_BUFFERS 2\n",
        "/* Two: one that is written and one that is read. */\n#define PIPE_MIN_DEF_BUFFERS 2\n",
    ),
    (
        "fork: name the new task in the comment",
        "kernel/fork.c",
        "unsigned long total_forks;",
        "/* New tasks are counted in this. */\nunsigned long total_forks;",
    ),
    (
        "mm: mremap: comment on the old pages",
        "mm/mremap.c",
        "\tflush_cache_range(vma, old_addr, old_end);\n",
        "\t/* The old pages, before their entries change. */\n\
         \tflush_cache_range(vma, old_addr, old_end);\n",
    ),
    (
        "ARM: fault: say what kind of fault",
        "arch/arm/mm/fault.c",
        "\tpr_alert(\"Unhandled fault: %s (0x%03x) at 0x%08lx\\n\",\n",
        "\tpr_alert(\"Unhandled memory fault: %s (0x%03x) at 0x%08lx\\n\",\n",
    ),
    (
        FLUSHED_ONCE,
        "mm/filemap.c",
        "\t\tif (mapping_writably_mapped(mapping))\n\t\t\tflush_dcache_folio(folio);\n\n\
         \t\tcopied = copy_folio",
        "\t\tcopied = copy_folio",
    ),
    (
        "mm: mprotect: comment on the flush",
        "mm/mprotect.c",
        "\tBUG_ON(addr >= end);\n",
        "\t/* An empty range is a mistake of the caller. */\n\tBUG_ON(addr >= end);\n",
    ),
    (
        "mm: filemap: mark the end of a write",
        "mm/filemap.c",
        "\tiocb->ki_pos += written;\n\treturn written;\n}\nEXPORT_SYMBOL(generic_perform_write);",
        "\t/* What was written stays written. */\n\
         \tiocb->ki_pos += written;\n\treturn written;\n}\nEXPORT_SYMBOL(generic_perform_write);",
    ),
    (
        "signal: say who may send",
        "kernel/signal.c",
        "static struct kmem_cache *sigqueue_cachep;",
        "/* Queued signals come from here. */\nstatic struct kmem_cache *sigqueue_cachep;",
    ),
    (
        "sched: remark on switching",
        "kernel/sched/core.c",
        "static __always_inline struct rq *\ncontext_switch(",
        "/* Where one task ends and the next begins. */\n\
         static __always_inline struct rq *\ncontext_switch(",
    ),
];

const DRIVER: [Change; 6] = [
    (
        "mtd: dataflash: say what the status is",
        "drivers/mtd/devices/mtd_dataflash.c",
        "/* reads can bypass the buffers */\n",
        "/* Reads can bypass the buffers. */\n",
    ),
    (
        "spi: atmel: begin a comment with a capital",
        "drivers/spi/spi-atmel.c",
        "\t\t/* tx_buf is a const void* where we need a void * for the dma\n",
        "\t\t/* Tx_buf is a const void* where we need a void * for the dma\n",
    ),
    (
        MAPPED_ALIKE,
        "drivers/spi/spi-atmel.c",
        "\t\t\t\txfer->rx_buf, xfer->len,\n\t\t\t\tDMA_FROM_DEVICE);\n\
         \t\tif (dma_mapping_error(dev, xfer->rx_dma)) {\n",
        "\t\t\t\txfer->rx_buf, xfer->len,\n\t\t\t\tDMA_TO_DEVICE);\n\
         \t\tif (dma_mapping_error(dev, xfer->rx_dma)) {\n",
    ),
    (
        "tty: atmel: say what is sent",
        "drivers/tty/serial/atmel_serial.c",
        "static void atmel_tx_pdc(struct uart_port *port)\n",
        "/* Sends what is in the ring. */\nstatic void atmel_tx_pdc(struct uart_port *port)\n",
    ),
    (
        "net: macb: say what opens",
        "drivers/net/ethernet/cadence/macb_main.c",
        "static int macb_open(struct net_device *dev)\n",
        "/* The interface goes up. */\nstatic int macb_open(struct net_device *dev)\n",
    ),
    (
        "mm: mprotect: comment on the flush",
        "mm/mprotect.c",
        "\tBUG_ON(addr >= end);\n",
        "\t/* An empty range is a mistake of the caller. */\n\tBUG_ON(addr >= end);\n",
    ),
];

/// Makes the repositories, bisects them and checks the results.
pub fn run(arguments: &[String]) -> Result<ExitCode> {
    let named = |demo: &&Demo| arguments.first().is_some_and(|name| name == demo.name);
    let (demos, rest): (Vec<&Demo>, _) = match DEMOS.iter().find(named) {
        Some(demo) => (vec![demo], &arguments[1..]),
        None => (DEMOS.iter().collect(), arguments),
    };
    let dir = made_anew("bisect-demo", rest)?;
    let program = program(&dir)?;
    for demo in demos {
        demo.run(&program, &dir.join(demo.name))?;
    }
    Ok(ExitCode::SUCCESS)
}

impl Demo {
    fn run(&self, program: &Path, dir: &Path) -> Result<()> {
        fs::create_dir(dir).with_context(|| dir.display().to_string())?;
        // Building a kernel puts Debian's package into the cache.
        let config = own_config(program, self.kernel, dir)?;
        let tree = Tree(unpack(dir)?);
        tree.begin()?;
        let first = tree.git(&["rev-parse", "HEAD"])?;
        for change in self.series {
            tree.commit(*change)?;
        }
        tree.git(&["bisect", "start", "HEAD", first.trim()])?;
        let mut bisect = tree.command(&["bisect", "run"]);
        bisect.arg(program);
        bisect.args(["coherence", "--bisect", "--linux", ".", "--config"]);
        bisect.arg(&config).args(self.options).arg("--");
        must(bisect.args(self.test))?;
        let found = tree.git(&["log", "-1", "--format=%s", "refs/bisect/bad"])?;
        let (found, bug) = (found.trim(), self.bug);
        if found != bug {
            bail!("git bisect found \"{found}\", not \"{bug}\"");
        }
        println!("{}", tree.git(&["bisect", "log"])?);
        println!("{}: found: {bug}", self.name);
        Ok(())
    }
}

/// Makes an empty directory. `arguments` may contain its path. Otherwise, the path is `target/NAME`.
pub fn made_anew(name: &str, arguments: &[String]) -> Result<PathBuf> {
    let dir = match arguments {
        [] => root().join("target").join(name),
        [dir] => std::path::absolute(dir)?,
        _ => bail!("usage: cargo xtask {name} [DIR]"),
    };
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
    Ok(dir)
}

/// Builds the program and copies it to `dir`, so that later builds do not change this copy.
pub fn program(dir: &Path) -> Result<PathBuf> {
    must(cargo().args(["build", "--quiet", "--release", "--bin", "warmswitch"]))?;
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    let program = dir.join("warmswitch");
    let built = root().join(target).join("release/warmswitch");
    fs::copy(&built, &program).with_context(|| format!("cannot copy {}", built.display()))?;
    Ok(program)
}

/// Writes a user's configuration. It is a named kernel's configuration with another `LOCALVERSION`.
fn own_config(program: &Path, kernel: &str, dir: &Path) -> Result<PathBuf> {
    let built = Command::new(program)
        .args(["kernel", "build", kernel, "--json"])
        .stderr(std::process::Stdio::inherit())
        .output()?;
    let built: serde_json::Value = serde_json::from_slice(&built.stdout)?;
    let config = built["config"]
        .as_str()
        .context("kernel build --json printed no \"config\"")?;
    let text = fs::read_to_string(config).with_context(|| config.to_string())?;
    let lines = text.lines().map(|line| match line {
        line if line.starts_with("CONFIG_LOCALVERSION=") => "CONFIG_LOCALVERSION=\"-mine\"",
        line => line,
    });
    let own = dir.join("my.config");
    fs::write(&own, lines.collect::<Vec<_>>().join("\n") + "\n")?;
    Ok(own)
}

/// Returns the program's cache directory.
pub fn cache() -> Result<PathBuf> {
    let set = |name| std::env::var_os(name).map(PathBuf::from);
    set("WARMSWITCH_CACHE")
        .or_else(|| Some(set("XDG_CACHE_HOME")?.join("warmswitch")))
        .or_else(|| Some(set("HOME")?.join(".cache/warmswitch")))
        .context("no directory for the cache: set WARMSWITCH_CACHE or HOME")
}

/// Unpacks the kernel's source from Debian's package in the cache. Returns its directory below `dir`.
pub fn unpack(dir: &Path) -> Result<PathBuf> {
    let packages = cache()?.join("packages/amd64");
    let entries = fs::read_dir(&packages).with_context(|| packages.display().to_string())?;
    let package = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.to_string_lossy().contains("linux-source-6.12"))
        .with_context(|| format!("no package linux-source-6.12 in {}", packages.display()))?;
    must(Command::new("dpkg-deb").arg("-x").arg(&package).arg(dir))?;
    let tar = dir.join("usr/src/linux-source-6.12.tar.xz");
    must(Command::new("tar").arg("xJf").arg(&tar).arg("-C").arg(dir))?;
    Ok(dir.join("linux-source-6.12"))
}

/// A git repository of the kernel's source.
struct Tree(PathBuf);

impl Tree {
    fn command(&self, arguments: &[&str]) -> Command {
        let mut git = Command::new("git");
        git.arg("-C").arg(&self.0);
        git.args(["-c", "user.name=demo", "-c", "user.email=demo@localhost"]);
        git.args(["-c", "gc.auto=0", "-c", "advice.detachedHead=false"]);
        git.args(arguments);
        git
    }

    fn git(&self, arguments: &[&str]) -> Result<String> {
        let output = self.command(arguments).output().context("cannot run git")?;
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr).into_owned();
            bail!("git {}: {}", arguments.join(" "), errors.trim());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Makes the first commit.
    fn begin(&self) -> Result<()> {
        self.git(&["init", "--quiet", "--initial-branch=main"])?;
        self.git(&["add", "--all", "--force"])?;
        self.git(&["commit", "--quiet", "--message=Debian's 6.12"])?;
        Ok(())
    }

    fn commit(&self, (subject, file, old, new): Change) -> Result<()> {
        let path = self.0.join(file);
        let text = fs::read_to_string(&path).with_context(|| file.to_string())?;
        if text.matches(old).count() != 1 {
            bail!("\"{subject}\": {file}: the text to replace is not there exactly once: {old:?}");
        }
        fs::write(&path, text.replacen(old, new, 1))?;
        self.git(&["commit", "--quiet", "--all", "--message", subject])?;
        Ok(())
    }
}
