// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs that measure, built by this machine's C compiler and kept by the hash of what went in.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process_group};
use rustix::thread::{CpuSet, sched_setaffinity};

use base::interrupt;
use base::paths::{self, names_in, shown};
use supply::cache::{self, Inputs};
use supply::image::guest;
use supply::toolchain::{command, install_line, output};

const COMPILER: &str = "cc";
const FLAGS: [&str; 6] = ["-O2", "-g", "-std=gnu11", "-Wall", "-Wextra", "-pthread"];
/// How often a running program is looked after.
const TICK: Duration = Duration::from_millis(100);
/// For how long a program that was asked to end may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// A program that can be built.
pub struct Program {
    name: String,
    dir: PathBuf,
    sources: Vec<String>,
    /// Without libraries of this machine's, to run elsewhere.
    is_static: bool,
}

impl Program {
    /// `host/NAME.c`: what only a PC has, or how a guest's source is built for one.
    pub fn own(name: &str) -> Program {
        Program {
            name: name.to_string(),
            dir: paths::root().join("host"),
            sources: vec![format!("{name}.c")],
            is_static: false,
        }
    }

    /// The guest of that name, of the same sources as the board's.
    pub fn guest(name: &str) -> Result<Program> {
        let guest = guest::all()?.remove(name);
        let guest = guest.with_context(|| format!("no guest \"{name}\""))?;
        let build = guest
            .build
            .with_context(|| format!("guest {name}: nothing to build"))?;
        Ok(Program {
            name: name.to_string(),
            dir: guest.dir,
            sources: build.sources,
            is_static: false,
        })
    }

    /// To run under another kernel, which has no libraries.
    pub fn statically(self) -> Program {
        Program {
            is_static: true,
            ..self
        }
    }

    /// The built program.
    pub fn built(&self) -> Result<PathBuf> {
        let version = output(command(COMPILER).arg("--version"));
        let version = version.with_context(|| {
            let line = install_line(&["gcc", "libc6-dev"]);
            format!("no C compiler for this machine\n  help: {line}")
        })?;
        let mut flags = FLAGS.to_vec();
        if self.is_static {
            flags.push("-static");
        }
        let mut inputs = Inputs::new("host program 1");
        inputs.add("compiler", version.as_bytes());
        inputs.add("flags", format!("{flags:?} {:?}", self.sources).as_bytes());
        for file in self.files() {
            let text = fs::read(&file).with_context(|| format!("cannot read {}", shown(&file)))?;
            inputs.add(
                &file.file_name().unwrap_or_default().to_string_lossy(),
                &text,
            );
        }
        let place = cache::kept("host", &inputs.hash(), |dir| {
            let mut compile = command(COMPILER);
            compile.current_dir(&self.dir).args(&flags);
            compile.arg("-o").arg(dir.join(&self.name));
            output(compile.args(&self.sources))?;
            Ok(())
        })?;
        Ok(place.join(&self.name))
    }

    /// All that its sources may include: C beside them, and of the guest that it is built of.
    fn files(&self) -> Vec<PathBuf> {
        let guest = paths::root().join("guest").join(&self.name);
        let mut dirs = vec![self.dir.clone()];
        if guest != self.dir {
            dirs.push(guest);
        }
        dirs.iter().flat_map(|dir| code_in(dir)).collect()
    }
}

/// C files and headers of a folder.
pub fn code_in(dir: &Path) -> Vec<PathBuf> {
    let is_code = |path: &Path| {
        let code = path.extension().is_some_and(|end| end == "c" || end == "h");
        code.then(|| path.to_string_lossy().into_owned())
    };
    let files = names_in(dir, is_code).into_iter();
    files.map(PathBuf::from).collect()
}

/// Output and exit code of a program that ended.
pub struct ProgramOutput {
    /// Text of its standard output.
    pub output: String,
    /// Text of its standard error.
    pub errors: String,
    /// Exit code; `None` when a signal ended the program.
    pub code: Option<i32>,
}

/// Runs a program to its end, on one processor when `cpu` says so. Ctrl-C reaches it, too: it ends with
/// what it has.
pub fn run(program: &Path, arguments: &[String], cpu: Option<usize>) -> Result<ProgramOutput> {
    let started = thread::scope(|scope| {
        // A child has the processors of the thread that started it.
        let start = scope.spawn(|| -> Result<Child> {
            if let Some(cpu) = cpu {
                pin(cpu)?;
            }
            let mut command = command(program);
            command.args(arguments);
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            command.process_group(0);
            let cannot = || format!("cannot start {}", shown(program));
            command.spawn().with_context(cannot)
        });
        start.join()
    });
    let mut child = started.map_err(|_| anyhow::anyhow!("the thread that starts it failed"))??;
    let said = child.stdout.take().map(read);
    let complained = child.stderr.take().map(read);
    let status = ended(&mut child)?;
    let text = |reader: Option<JoinHandle<String>>| {
        let text = reader.map(JoinHandle::join);
        text.and_then(Result::ok).unwrap_or_default()
    };
    Ok(ProgramOutput {
        output: text(said),
        errors: text(complained),
        code: status.code(),
    })
}

/// This thread runs on one processor from now on.
pub fn pin(cpu: usize) -> Result<()> {
    if cpu >= CpuSet::MAX_CPU {
        bail!("--cpu {cpu}: there are at most {}", CpuSet::MAX_CPU);
    }
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).with_context(|| format!("--cpu {cpu}: no such processor for us"))
}

fn read(mut from: impl std::io::Read + Send + 'static) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = from.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Waits for the end of a program and of what it has left behind: a process that holds its output would
/// be waited for for ever. After Ctrl-C all of them are told, and ended when that does not help.
fn ended(child: &mut Child) -> Result<ExitStatus> {
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    // Whoever is gone needs no signal.
    let tell = |signal: Signal| group.map(|group| kill_process_group(group, signal));
    let mut told: Option<Instant> = None;
    loop {
        if let Some(status) = child.try_wait()? {
            tell(Signal::KILL);
            return Ok(status);
        }
        match told {
            None if interrupt::asked() => {
                told = Some(Instant::now());
                tell(Signal::INT);
            }
            Some(told) if told.elapsed() > PATIENCE => {
                tell(Signal::KILL);
            }
            _ => {}
        }
        thread::sleep(TICK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_runs_on_the_processor_that_it_was_given() {
        let status = ["Cpus_allowed_list", "/proc/self/status"].map(String::from);
        let ran = run(Path::new("/bin/grep"), &status, Some(0)).unwrap();
        assert_eq!(
            (ran.output.as_str(), ran.code),
            ("Cpus_allowed_list:\t0\n", Some(0))
        );
        let error = run(Path::new("/bin/grep"), &[], Some(100_000))
            .err()
            .unwrap();
        assert!(error.to_string().contains("--cpu 100000"), "{error}");
    }

    #[test]
    fn what_a_program_leaves_behind_is_not_waited_for() {
        let line = ["-c", "sleep 600 & echo done"].map(String::from);
        let ran = run(Path::new("sh"), &line, None).unwrap();
        assert_eq!((ran.output.as_str(), ran.code), ("done\n", Some(0)));
    }
}
