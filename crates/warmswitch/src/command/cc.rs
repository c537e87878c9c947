// SPDX-License-Identifier: MIT OR Apache-2.0
//! `warmswitch cc`: compiles and links with the guest's own C library.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::Stdio;

use anyhow::Result;

use crate::Outcome;
use crate::command::examples::Help;
use supply::image::Programs;
use supply::toolchain::command;

/// Text at the end of this verb's `--help`.
pub const HELP: Help = Help {
    documents: "docs/use/GUESTS.md",
    examples: &[
        (
            "cc -O2 -o hello hello.c",
            "a program for the boards; warmswitch guest --add hello -- hello runs it",
        ),
        (
            "cc --for flat -O2 -o hello hello.c",
            "a program for kernels without address spaces",
        ),
    ],
};

/// Compile a program for the boards, with the C library of their root file system
#[derive(clap::Args)]
pub struct Args {
    /// Instruction set and C library of the program
    #[arg(long = "for", value_enum, value_name = "PROGRAMS", default_value_t = Programs::Armv5te)]
    programs: Programs,
    /// Argument of the compiler, arm-linux-gnueabi-gcc
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARG"
    )]
    arguments: Vec<OsString>,
}

/// Replaces this process with the compiler.
pub fn execute(args: &Args) -> Result<Outcome> {
    let compiler = args.programs.compiler()?;
    let mut compile = command(&compiler);
    compile.args(&args.arguments).stdin(Stdio::inherit());
    let error = compile.exec();
    Err(anyhow::Error::new(error).context(compiler.display().to_string()))
}
