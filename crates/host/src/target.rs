// SPDX-License-Identifier: MIT OR Apache-2.0
//! Builds `warmswitch-target` (`host/target.c`): the guests' programs in one static program, for a product without a
//! compiler. `warmswitch-target` runs the same measurements on the product as `warmswitch host` runs on this machine.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::programs::code_in;
use super::setup::FILES;
use super::tools::{self, Call, Form};
use base::paths::{self, shown};
use supply::cache::{self, Inputs};
use supply::image::guest;
use supply::source_build::{self, UserLand};
use supply::toolchain::{command, output};

/// Name of the source file in `host`, without its ending.
const SOURCE: &str = "target";
/// File name of the built program.
pub const NAME: &str = "warmswitch-target";
/// Largest working set of `memory`, in KB. Products have about 32 MB of memory, and no second-level cache.
const MAX_KB: u32 = 4 << 10;
/// Number of groups of `messaging`. Its 160 tasks fit into a product's memory.
const GROUPS: u32 = 4;
/// Setting of `lock.h`, in bytes. With this value, a program may lock all of a product's memory.
const COMES_LATER: &str = "-DCOMES_LATER=1048576";
const FLAGS: [&str; 8] = [
    "-O2",
    "-std=gnu11",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-ffunction-sections",
    "-include",
    "sys/time.h",
];

/// Architecture that the program is built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Architecture {
    /// ARM926EJ-S, XScale and later; runs also on kernels without address spaces
    Armv5te,
    /// ARM920T
    Armv4t,
}

impl Architecture {
    fn name(self) -> &'static str {
        match self {
            Architecture::Armv5te => "armv5te",
            Architecture::Armv4t => "armv4t",
        }
    }

    fn user_land(self) -> Result<UserLand> {
        UserLand::get(match self {
            Architecture::Armv5te => &source_build::FLAT,
            Architecture::Armv4t => &source_build::ARMV4T,
        })
    }
}

/// A program within the built program.
struct Applet {
    name: &'static str,
    /// Whether the applet's source is the file in `host` that adapts the guest to a PC. This file suits a product, too.
    /// Otherwise, the source is the guest's own.
    is_adapted: bool,
}

const APPLETS: [Applet; 9] = [
    applet("lat_ctx", false),
    applet("ipc", true),
    applet("messages", false),
    applet("cyclic", true),
    applet("overhead", false),
    applet("memory", false),
    applet("udp_reply", true),
    applet("udp_period", true),
    applet("uio_latency", true),
];

const fn applet(name: &'static str, is_adapted: bool) -> Applet {
    Applet { name, is_adapted }
}

impl Applet {
    fn sources(&self) -> Result<Vec<PathBuf>> {
        if self.is_adapted {
            return Ok(vec![host_dir().join(format!("{}.c", self.name))]);
        }
        let guest = guest::all()?.remove(self.name);
        let guest = guest.with_context(|| format!("there is no guest \"{}\"", self.name))?;
        let build = guest
            .build
            .with_context(|| format!("guest {} has nothing to build", self.name))?;
        Ok(build
            .sources
            .iter()
            .map(|name| guest.dir.join(name))
            .collect())
    }
}

fn host_dir() -> PathBuf {
    paths::root().join("host")
}

/// A tool of `all`.
struct Tool {
    name: &'static str,
    /// Whether the tool is pinned to one processor by default.
    is_pinned: bool,
    calls: Vec<Call>,
}

/// Returns the tools of `all`, which are also the tools on this machine.
fn tools(form: Form) -> Vec<Tool> {
    let tool = |name, is_pinned, calls| Tool {
        name,
        is_pinned,
        calls,
    };
    vec![
        tool(
            "ctx",
            true,
            tools::ctx(form, &tools::SIZES_KB, &tools::TASKS),
        ),
        tool("fifo", false, tools::ipc(form, "-v")),
        tool("pipe", false, tools::ipc(form, "-f")),
        tool("messaging", false, tools::messaging(form, GROUPS)),
        tool("cyclic", false, tools::cyclic(&tools::timer(form))),
        tool("overhead", true, tools::overhead(form)),
        tool("memory", true, tools::memory(form, MAX_KB)),
    ]
}

/// Makes `plan.h`. It lists the calls of the full and the quick form, and the files that show a machine's set-up.
fn plan() -> String {
    let mut text = String::from("static const struct step steps[] = {\n");
    for quick in [false, true] {
        for tool in tools(Form { quick }) {
            for call in &tool.calls {
                let command = call.words().join(" ");
                let (name, pinned, what) = (tool.name, tool.is_pinned, call.what());
                let _ = writeln!(
                    text,
                    "\t{{ {name:?}, {quick}, {pinned}, {what:?}, {command:?} }},"
                );
            }
        }
    }
    text += "};\n\nstatic const char *const files[] = {\n";
    for file in FILES {
        let _ = writeln!(text, "\t{file:?},");
    }
    text + "};\n"
}

/// Builds the program, or takes it from the cache. Returns its path.
pub fn built(architecture: Architecture) -> Result<PathBuf> {
    let user_land = architecture.user_land()?;
    let plan = plan();
    let mut inputs = Inputs::new("target 1");
    inputs.add("user land", user_land.hash.as_bytes());
    inputs.add("flags", format!("{FLAGS:?} {COMES_LATER}").as_bytes());
    inputs.add("plan", plan.as_bytes());
    for file in files() {
        let text = fs::read(&file).with_context(|| format!("cannot read {}", shown(&file)))?;
        inputs.add(&shown(&file).to_string(), &text);
    }
    let place = cache::kept("host", &inputs.hash(), |dir| build(dir, &user_land, &plan))?;
    Ok(place.join(NAME))
}

/// Returns the default path of the copy for the user.
pub fn default_place(architecture: Architecture) -> PathBuf {
    paths::out().join(format!("host/{NAME}-{}", architecture.name()))
}

/// Returns all source files of the program. The C library is hashed separately.
fn files() -> Vec<PathBuf> {
    let guests = paths::root().join("guest");
    let guests = APPLETS.iter().map(|applet| guests.join(applet.name));
    let dirs = [host_dir(), guest::shared()].into_iter().chain(guests);
    dirs.flat_map(|dir| code_in(&dir)).collect()
}

/// Compiles and links the program. All its parts define `main`, which is renamed. Apart from `main`, parts have only
/// names of static functions and variables in common.
fn build(dir: &Path, user_land: &UserLand, plan: &str) -> Result<()> {
    let work = dir.join("work");
    fs::create_dir_all(&work)?;
    fs::write(work.join("plan.h"), plan)?;
    let compile = |source: &Path, object: &Path, more: &[String]| {
        let mut compile = command(&user_land.compiler());
        compile.args(FLAGS).args(more).arg("-I").arg(&work);
        compile.arg("-I").arg(guest::shared());
        output(compile.arg("-c").arg(source).arg("-o").arg(object))
    };
    let mut objects = vec![work.join("target.o")];
    compile(&host_dir().join(format!("{SOURCE}.c")), &objects[0], &[])?;
    for applet in &APPLETS {
        let more = [
            format!("-Dmain={}_main", applet.name),
            COMES_LATER.to_string(),
        ];
        for (n, source) in applet.sources()?.iter().enumerate() {
            let object = work.join(format!("{}-{n}.o", applet.name));
            compile(source, &object, &more)?;
            objects.push(object);
        }
    }
    let mut link = command(&user_land.compiler());
    link.args(["-s", "-Wl,--gc-sections"]).args(&objects);
    output(link.arg("-o").arg(dir.join(NAME)))?;
    fs::remove_dir_all(&work)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plan_has_every_tool_in_both_forms_and_programs_that_are_in_it() {
        let plan = plan();
        for tool in [
            "ctx",
            "fifo",
            "pipe",
            "messaging",
            "cyclic",
            "overhead",
            "memory",
        ] {
            for quick in [false, true] {
                assert!(plan.contains(&format!("{{ {tool:?}, {quick},")), "{tool}");
            }
        }
        for tool in tools(Form { quick: true }) {
            for call in tool.calls {
                let program = call.words().swap_remove(0);
                assert!(
                    APPLETS.iter().any(|applet| applet.name == program),
                    "{program}"
                );
                // The program splits the command at spaces, and has a buffer of 256 bytes.
                assert!(call.words().join(" ").len() < 256);
            }
        }
        for applet in &APPLETS {
            for source in applet.sources().unwrap() {
                assert!(source.is_file(), "{}", shown(&source));
            }
        }
    }
}
