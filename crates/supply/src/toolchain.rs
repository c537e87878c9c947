// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's programs that build kernels and guests. Finds missing programs, reads their versions, and runs them.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context as _, Result, bail, ensure};

use base::interrupt::{self, Group};
use base::paths::shown;

/// Prefix of the cross tools.
pub const PREFIX: &str = "arm-linux-gnueabi-";

/// A program or file that a build needs, and the Debian package that contains it.
struct Need {
    what: &'static str,
    package: &'static str,
}

/// Programs and files that builds need beyond Debian's essential packages. A `what` with a slash is a file.
const NEEDS: &[Need] = &[
    Need {
        what: "make",
        package: "make",
    },
    Need {
        what: "gcc",
        package: "gcc",
    },
    Need {
        what: "/usr/include/stdio.h",
        package: "libc6-dev",
    },
    Need {
        what: "arm-linux-gnueabi-gcc",
        package: "gcc-arm-linux-gnueabi",
    },
    Need {
        what: "arm-linux-gnueabi-ld",
        package: "binutils-arm-linux-gnueabi",
    },
    Need {
        what: "/usr/arm-linux-gnueabi/include/stdio.h",
        package: "libc6-dev-armel-cross",
    },
    Need {
        what: "ccache",
        package: "ccache",
    },
    Need {
        what: "flex",
        package: "flex",
    },
    Need {
        what: "bison",
        package: "bison",
    },
    Need {
        what: "bc",
        package: "bc",
    },
    Need {
        what: "xz",
        package: "xz-utils",
    },
    Need {
        what: "bzip2",
        package: "bzip2",
    },
    Need {
        what: "patch",
        package: "patch",
    },
    Need {
        what: "/usr/share/keyrings/debian-archive-keyring.gpg",
        package: "debian-archive-keyring",
    },
];

/// Returns the packages that this machine lacks, in a fixed order.
pub fn missing() -> Vec<&'static str> {
    missing_of(NEEDS, present)
}

fn missing_of(needs: &[Need], present: impl Fn(&str) -> bool) -> Vec<&'static str> {
    let mut packages = Vec::new();
    for need in needs {
        if !present(need.what) && !packages.contains(&need.package) {
            packages.push(need.package);
        }
    }
    packages
}

fn present(what: &str) -> bool {
    if what.contains('/') {
        return Path::new(what).is_file();
    }
    // It is enough to search PATH. Some users do not have sbin in it, but none of the programs above is in sbin.
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(what).is_file()))
}

/// Returns the command that installs `packages`.
pub fn install_line(packages: &[&str]) -> String {
    format!(
        "sudo apt-get install --no-install-recommends {}",
        packages.join(" ")
    )
}

/// Fails when a package is missing. The error has the command that installs the package.
pub fn require() -> Result<()> {
    let missing = missing();
    if missing.is_empty() {
        return Ok(());
    }
    bail!(
        "this machine lacks packages: {}\n  help: {}",
        missing.join(", "),
        install_line(&missing)
    )
}

/// Returns the version lines of the cross compiler and linker, which are a part of every hash. Runs the programs only
/// once.
pub fn version() -> Result<String> {
    static VERSION: OnceLock<String> = OnceLock::new();
    if let Some(version) = VERSION.get() {
        return Ok(version.clone());
    }
    let mut version = String::new();
    for tool in ["gcc", "ld"] {
        let program = format!("{PREFIX}{tool}");
        let text = output(Command::new(&program).arg("--version"))?;
        version.push_str(text.lines().next().unwrap_or_default());
        version.push('\n');
    }
    Ok(VERSION.get_or_init(|| version).clone())
}

/// Returns a command. Its environment has no variables of a calling make or of the user's locale.
pub fn command<S: AsRef<OsStr> + ?Sized>(program: &S) -> Command {
    let mut command = Command::new(program);
    for name in [
        "MAKEFLAGS",
        "MFLAGS",
        "MAKELEVEL",
        "MAKEFILES",
        "ARCH",
        "CROSS_COMPILE",
    ] {
        command.env_remove(name);
    }
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("KBUILD_") {
            command.env_remove(name);
        }
    }
    command.env("LC_ALL", "C").stdin(Stdio::null());
    command
}

/// Formats a command for messages.
fn named(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Runs a command to its end and returns standard output as text. The error has the text of standard error.
pub fn output(command: &mut Command) -> Result<String> {
    let name = named(command);
    let out = interrupt::output(command).with_context(|| format!("cannot run: {name}"))?;
    if !out.status.success() {
        let errors = String::from_utf8_lossy(&out.stderr);
        bail!("failed ({}): {name}\n{}", out.status, errors.trim_end());
    }
    Ok(String::from_utf8_lossy(&out.stdout).into_owned())
}

/// Runs a command to its end with standard output in the file `path`. Standard error goes to the standard error of this
/// program.
pub fn into_file(command: &mut Command, path: &Path) -> Result<()> {
    let name = named(command);
    let file = File::create(path).with_context(|| format!("cannot write {}", shown(path)))?;
    let group = Group::spawn(command.stdout(file));
    let status = group
        .with_context(|| format!("cannot run: {name}"))?
        .wait(|| {})?;
    ensure!(status.success(), "failed ({status}): {name}");
    Ok(())
}

/// Runs a command to its end with all its output in `log`. Calls `line` for each line of standard output. The error
/// quotes lines of the log that look like the cause.
pub fn logged(command: &mut Command, log: &Path, mut line: impl FnMut(&str)) -> Result<()> {
    use std::io::Write as _;
    let name = named(command);
    let open = || OpenOptions::new().create(true).append(true).open(log);
    let mut file: File = open().with_context(|| format!("cannot write {}", shown(log)))?;
    let errors = open().with_context(|| format!("cannot write {}", shown(log)))?;
    let mut group = Group::spawn(command.stdout(Stdio::piped()).stderr(errors))
        .with_context(|| format!("cannot run: {name}"))?;
    let mut pending = Vec::new();
    let status = group.read(|piece| {
        file.write_all(piece)
            .with_context(|| format!("cannot write {}", shown(log)))?;
        pending.extend(piece);
        while let Some(end) = pending.iter().position(|byte| *byte == b'\n') {
            let text: Vec<u8> = pending.drain(..=end).collect();
            line(String::from_utf8_lossy(&text[..end]).as_ref());
        }
        Ok(())
    })?;
    if !status.success() {
        bail!(
            "failed ({status}): {name}\n{}\nthe whole log: {}",
            causes(log),
            shown(log)
        );
    }
    Ok(())
}

/// Returns the end of a log. Leaves out the build's steps, which are indented, and make's lines about its directories.
fn causes(log: &Path) -> String {
    let text = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let causes: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty() && !line.starts_with("  "))
        .filter(|line| !line.starts_with("make"))
        .collect();
    causes[causes.len().saturating_sub(12)..].join("\n")
}

/// Returns the default number of parallel jobs: one per processor.
pub fn default_jobs() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Returns `path`, which must exist, as an absolute path without links.
pub fn absolute(path: &Path) -> Result<PathBuf> {
    path.canonicalize()
        .with_context(|| format!("cannot open {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_writes_comes_into_a_file_byte_for_byte() {
        let file = std::env::temp_dir().join(format!("warmswitch-into-{}", std::process::id()));
        let mut command = command("printf");
        into_file(command.arg("\\377\\000tar"), &file).unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"\xff\0tar");
        let error = into_file(&mut super::command("false"), &file).unwrap_err();
        assert!(error.to_string().contains("false"), "{error}");
        std::fs::remove_file(file).unwrap();
    }

    #[test]
    fn the_missing_packages_are_named_once_and_in_order() {
        let needs = [
            Need {
                what: "a",
                package: "first",
            },
            Need {
                what: "b",
                package: "second",
            },
            Need {
                what: "c",
                package: "first",
            },
        ];
        assert_eq!(missing_of(&needs, |_| false), ["first", "second"]);
        assert_eq!(missing_of(&needs, |what| what == "a"), ["second", "first"]);
        assert!(missing_of(&needs, |_| true).is_empty());
        assert!(install_line(&["x", "y"]).ends_with("apt-get install --no-install-recommends x y"));
    }

    #[test]
    fn a_failing_command_is_quoted_with_what_it_said() {
        let error = output(command("sh").args(["-c", "echo broken >&2; exit 3"])).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("broken") && text.contains('3'), "{text}");
        let error = output(&mut command("no-such-program")).unwrap_err();
        assert!(error.to_string().contains("no-such-program"));
    }

    #[test]
    fn a_log_gives_up_its_error_lines() {
        let log = std::env::temp_dir().join(format!("warmswitch-log-{}", std::process::id()));
        let script = "echo CC a.o; echo 'a.c:1: error: bad' >&2; exit 1";
        let mut lines = Vec::new();
        let ran = logged(command("sh").args(["-c", script]), &log, |l| {
            lines.push(l.to_string())
        });
        assert!(ran.unwrap_err().to_string().contains("a.c:1: error: bad"));
        assert_eq!(lines, ["CC a.o"]);
        std::fs::remove_file(&log).unwrap();
    }
}
