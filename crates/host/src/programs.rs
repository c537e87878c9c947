// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measuring programs, built by this machine's C compiler and cached under the hash of their inputs.

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
/// Interval at which a running program is checked.
const TICK: Duration = Duration::from_millis(100);
/// Time for a program to end after Ctrl-C before it is killed.
const PATIENCE: Duration = Duration::from_secs(10);

/// A program that can be built.
pub struct Program {
    name: String,
    dir: PathBuf,
    sources: Vec<String>,
    /// Whether the program is linked statically, so that it runs without this machine's libraries.
    is_static: bool,
}

impl Program {
    /// Returns the program `host/NAME.c`: a program for PCs only, or a guest's source adapted to a PC.
    pub fn own(name: &str) -> Program {
        Program {
            name: name.to_string(),
            dir: paths::root().join("host"),
            sources: vec![format!("{name}.c")],
            is_static: false,
        }
    }

    /// Returns the guest with this name, built from the board's sources.
    pub fn guest(name: &str) -> Result<Program> {
        let guest = guest::all()?.remove(name);
        let guest = guest.with_context(|| format!("there is no guest \"{name}\""))?;
        let build = guest
            .build
            .with_context(|| format!("guest {name} has nothing to build"))?;
        Ok(Program {
            name: name.to_string(),
            dir: guest.dir,
            sources: build.sources,
            is_static: false,
        })
    }

    /// Links the program statically, to run under a kernel without libraries.
    pub fn statically(self) -> Program {
        Program {
            is_static: true,
            ..self
        }
    }

    /// Builds the program, or takes it from the cache. Returns its path.
    pub fn built(&self) -> Result<PathBuf> {
        let version = output(command(COMPILER).arg("--version"));
        let version = version.with_context(|| {
            let line = install_line(&["gcc", "libc6-dev"]);
            format!("there is no C compiler for this machine\n  help: {line}")
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
            compile.arg("-I").arg(guest::shared());
            compile.arg("-o").arg(dir.join(&self.name));
            output(compile.args(&self.sources))?;
            Ok(())
        })?;
        Ok(place.join(&self.name))
    }

    /// Returns all files that the sources may include: the C files of their folder, of the guest's folder and of the
    /// folder that guests share.
    fn files(&self) -> Vec<PathBuf> {
        let guest = paths::root().join("guest").join(&self.name);
        let mut dirs = vec![self.dir.clone(), guest::shared()];
        if guest != self.dir {
            dirs.push(guest);
        }
        dirs.iter().flat_map(|dir| code_in(dir)).collect()
    }
}

/// Returns the C files and headers of a folder.
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
    /// Text of the program's standard output.
    pub output: String,
    /// Text of the program's standard error.
    pub errors: String,
    /// Exit code. `None` when a signal ended the program.
    pub code: Option<i32>,
}

impl ProgramOutput {
    /// Returns how the program ended: "ended with exit code 1".
    pub fn ending(&self) -> String {
        match self.code {
            Some(code) => format!("ended with exit code {code}"),
            None => "was killed by a signal".to_string(),
        }
    }
}

/// Runs a program to its end. If `cpu` is given, the program runs on that processor. Ctrl-C also reaches the program,
/// so that it prints the results so far and ends.
pub fn run(program: &Path, arguments: &[String], cpu: Option<usize>) -> Result<ProgramOutput> {
    let started = thread::scope(|scope| {
        // A child inherits the processors of the thread that starts it.
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
    let mut child =
        started.map_err(|_| anyhow::anyhow!("the thread that starts a program failed"))??;
    let stdout = child.stdout.take().map(read);
    let stderr = child.stderr.take().map(read);
    let status = ended(&mut child)?;
    let text = |reader: Option<JoinHandle<String>>| {
        let text = reader.map(JoinHandle::join);
        text.and_then(Result::ok).unwrap_or_default()
    };
    Ok(ProgramOutput {
        output: text(stdout),
        errors: text(stderr),
        code: status.code(),
    })
}

/// Pins this thread to one processor.
pub fn pin(cpu: usize) -> Result<()> {
    if cpu >= CpuSet::MAX_CPU {
        bail!(
            "--cpu {cpu}: the highest possible number is {}",
            CpuSet::MAX_CPU - 1
        );
    }
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).with_context(|| {
        format!("--cpu {cpu}: the processor does not exist, or this process may not use it")
    })
}

fn read(mut from: impl std::io::Read + Send + 'static) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = from.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Waits for the end of a program, then kills the processes that the program left behind. While these processes hold
/// the program's output open, reading would not end. All processes get Ctrl-C. Processes that still run after
/// [`PATIENCE`] are killed.
fn ended(child: &mut Child) -> Result<ExitStatus> {
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    // An error means that the group no longer has a process.
    let send = |signal: Signal| group.map(|group| kill_process_group(group, signal));
    let mut interrupted: Option<Instant> = None;
    loop {
        if let Some(status) = child.try_wait()? {
            send(Signal::KILL);
            return Ok(status);
        }
        match interrupted {
            None if interrupt::asked() => {
                interrupted = Some(Instant::now());
                send(Signal::INT);
            }
            Some(at) if at.elapsed() > PATIENCE => {
                send(Signal::KILL);
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
