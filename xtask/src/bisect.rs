// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask bisect-demo [DIR]`: checks that `git bisect run warmswitch coherence` finds a planted bug.
//!
//! Makes a git repository of the kernel's source with nine commits. One commit removes a cache flush. git searches for
//! this commit with kernels that are built from a user's `.config`. The check fails if git finds another commit. The
//! first kernel takes some minutes. The next kernels recompile little. Deletes DIR first. Needs 1.5 GB.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};

use crate::{cargo, must, root};

/// A commit: its subject, its file, the text to replace, and the replacement.
type Change = (&'static str, &'static str, &'static str, &'static str);

/// Subject of the commit with the bug.
const BUG: &str = "mm: filemap: flush a written folio once";

/// The commits. All commits except one change only comments or messages.
const SERIES: [Change; 9] = [
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
        BUG,
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

/// The test of the memory suite that reaches the bug.
const TEST: [&str; 3] = ["mm_suite", "--only", "shared_and_write"];

/// Makes the repository, bisects it and checks the result.
pub fn run(arguments: &[String]) -> Result<ExitCode> {
    let dir = made_anew("bisect-demo", arguments)?;
    let program = program(&dir)?;
    // Building a kernel puts the kernel's source into the cache.
    let config = own_config(&program, &dir)?;
    let tree = Tree(dir.join("linux"));
    tree.fill(&source()?)?;
    let first = tree.git(&["rev-parse", "HEAD"])?;
    for change in SERIES {
        tree.commit(change)?;
    }
    tree.git(&["bisect", "start", "HEAD", first.trim()])?;
    let mut bisect = tree.command(&["bisect", "run"]);
    bisect.arg(&program);
    bisect.args(["coherence", "--bisect", "--linux", ".", "--config"]);
    bisect.arg(&config).arg("--");
    must(bisect.args(TEST))?;
    let found = tree.git(&["log", "-1", "--format=%s", "refs/bisect/bad"])?;
    if found.trim() != BUG {
        bail!("git bisect found \"{}\", not \"{BUG}\"", found.trim());
    }
    println!("{}", tree.git(&["bisect", "log"])?);
    println!("found: {BUG}");
    Ok(ExitCode::SUCCESS)
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

/// Writes a user's configuration. It is the plain kernel's configuration with another `LOCALVERSION`.
fn own_config(program: &Path, dir: &Path) -> Result<PathBuf> {
    let built = Command::new(program)
        .args(["kernel", "build", "6.12/plain", "--json"])
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

/// Returns the kernel's source in the cache.
fn source() -> Result<PathBuf> {
    let dir = cache()?.join("source");
    let entries = fs::read_dir(&dir).with_context(|| format!("cannot read {}", dir.display()))?;
    let mut trees: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.join("mm/filemap.c").is_file())
        .filter(|path| path.to_string_lossy().contains("linux-source-6.12"))
        .collect();
    trees.sort();
    trees
        .pop()
        .with_context(|| format!("no source of linux-source-6.12 in {}", dir.display()))
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

    /// Copies the source and makes the first commit.
    fn fill(&self, source: &Path) -> Result<()> {
        must(Command::new("cp").arg("-a").arg(source).arg(&self.0))?;
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
