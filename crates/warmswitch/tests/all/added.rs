// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of files that users add to a guest. Each file arrives complete, or an error names the file. Further tests
//! cover boards with little RAM, and the default kernel of a board. Tests called `case_NN` are cases from the field.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::commands::{compiled, number_after, scratch, warmswitch};
use crate::fcse::output_text;
use crate::plain_kernel;

/// Runs a command in a guest with these options. Returns the command's output and the exit code.
fn guest(options: &[&str], command: &str) -> (String, Option<i32>) {
    let output = warmswitch(&[&["guest"], options, &["--", command]].concat());
    let text = output_text(&output);
    assert!(!text.contains("panicked at"), "{text}");
    (text, output.status.code())
}

/// Returns bytes that do not compress.
fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut word = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    let mut all: Vec<u8> = (0..bytes.div_ceil(8)).flat_map(|_| word()).collect();
    all.truncate(bytes);
    all
}

fn executable(path: &Path, content: &[u8]) {
    fs::write(path, content).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Asserts that a file with these bytes has the same checksum in the guest as here.
fn is_whole(board: &[&str], file: &Path, content: &[u8]) {
    fs::write(file, content).unwrap();
    let ours = std::process::Command::new("sha256sum").arg(file).output();
    let ours = String::from_utf8(ours.unwrap().stdout).unwrap();
    let add = format!("{}:/data", file.display());
    let options = [board, &["--fresh-boot", "--add", &add]].concat();
    let (text, code) = guest(&options, "sha256sum /data");
    let sum = ours.split(' ').next().unwrap();
    assert!(text.contains(sum) && code == Some(0), "{board:?}: {text}");
}

#[test]
#[ignore = "needs the kernel"]
fn case_05_a_file_is_whole_in_the_guest_or_refused_with_what_fits() {
    let file = scratch("case-05").join("data");
    is_whole(&[], &file, &noise(18_000_000));
    for board in [&["--set", "ram.size=32M"][..], &["--append", "mem=32M"]] {
        fs::write(&file, noise(40_000_000)).unwrap();
        let add = format!("{}:/data", file.display());
        let (text, code) = guest(&[board, &["--add", &add]].concat(), "true");
        assert_eq!(code, Some(2), "{text}");
        // A file larger than all of the RAM gets a different message.
        if board[0] == "--set" {
            assert!(
                text.contains("data: 40000000 bytes; the board's whole RAM"),
                "{text}"
            );
        }
        fs::write(&file, noise(20_000_000)).unwrap();
        let (text, code) = guest(&[board, &["--add", &add]].concat(), "true");
        assert_eq!(code, Some(2), "{text}");
        assert!(
            text.contains("data: with it the root file system does not fit"),
            "{text}"
        );
        let fits = number_after(&text, "help: a file of ") as usize;
        is_whole(board, &file, &noise(fits));
        fs::write(&file, noise(fits + 65536)).unwrap();
        let (text, code) = guest(&[board, &["--add", &add]].concat(), "true");
        assert!(code == Some(2) && text.contains("too much"), "{text}");
    }
}

/// The capacity is unknown for a kernel without symbols, so the kernel itself reports that it cannot unpack all files.
#[test]
#[ignore = "needs the kernel"]
fn case_05_a_root_file_system_that_is_cut_ends_the_run_of_every_verb() {
    let dir = scratch("cut");
    let kernel = dir.join("Image");
    fs::copy(plain_kernel("image"), &kernel).unwrap();
    let data = dir.join("data");
    fs::write(&data, noise(18_000_000)).unwrap();
    let dtb = plain_kernel("dtb");
    let [kernel, data, dtb] = [&kernel, &data, &dtb].map(|path| path.to_str().unwrap());
    for verb in ["guest", "boot", "coherence"] {
        let mut arguments = vec![verb, "--kernel", kernel, "--dtb", dtb, "--add", data];
        if verb != "boot" {
            arguments.extend(["--", "true"]);
        }
        let output = warmswitch(&arguments);
        let text = output_text(&output);
        assert_ne!(output.status.code(), Some(0), "{verb}: {text}");
        assert!(
            text.contains("could not unpack its whole root file system"),
            "{verb}: {text}"
        );
        assert!(
            verb == "coherence" || text.contains("unpacking failed: write error"),
            "{text}"
        );
    }
}

#[test]
#[ignore = "needs the kernel"]
fn case_07_a_board_of_32_mb_boots_and_what_does_not_fit_is_refused_by_its_name() {
    for small in [["--set", "ram.size=32M"], ["--append", "mem=32M"]] {
        let (text, code) = guest(&small, "free; ls /guest | wc -l");
        assert_eq!(code, Some(0), "{small:?}: {text}");
        assert!((22_000..32_768).contains(&kb_total(&text)), "{text}");
    }
    for (options, part) in [
        (
            ["--set", "ram.size=12M"],
            "does not fit into the 12 MB of RAM of sam9263",
        ),
        (
            ["--append", "mem=12M"],
            "the 12 MB of RAM that mem= leaves sam9263",
        ),
        (["--append", "mem=80M"], "mem=80M: the board's RAM is"),
        (["--append", "mem=32M@16M"], "the kernel lies at 0x00000000"),
    ] {
        let (text, code) = guest(&options, "free");
        assert_eq!(code, Some(2), "{text}");
        assert!(text.contains(part), "{text}");
    }
}

/// Returns the first number in the line `Mem:` of the output of `free`, in KB.
fn kb_total(text: &str) -> u32 {
    let line = text.lines().find_map(|line| line.strip_prefix("Mem:"));
    let total = line.and_then(|line| line.split_whitespace().next());
    total.unwrap_or_else(|| panic!("{text}")).parse().unwrap()
}

#[test]
#[ignore = "needs the kernel"]
fn case_09_a_tree_laid_over_the_root_runs() {
    let dir = scratch("case-09");
    for folder in ["tree/usr/bin", "tree/lib", "tree/etc/mine"] {
        fs::create_dir_all(dir.join(folder)).unwrap();
    }
    executable(
        &dir.join("tree/usr/bin/tell"),
        b"#!/bin/sh\ncat /etc/mine/word /etc/again\n",
    );
    fs::write(dir.join("tree/etc/mine/word"), "laid over\n").unwrap();
    fs::hard_link(dir.join("tree/etc/mine/word"), dir.join("tree/etc/again")).unwrap();
    std::os::unix::fs::symlink("/usr/bin/tell", dir.join("tree/etc/tell")).unwrap();
    let add = format!("{}:/", dir.join("tree").display());
    let (text, code) = guest(&["--add", &add], "tell; /etc/tell; stat -c %h /etc/again");
    assert_eq!(
        (&*text, code),
        ("laid over\nlaid over\nlaid over\nlaid over\n2\n", Some(0))
    );
}

#[test]
#[ignore = "needs the kernel"]
fn case_11_a_bflt_program_is_refused_before_the_boot() {
    let program = scratch("case-11").join("hello.flt");
    // Version 4 of the format, with the entry point at 0x40. The program does not run.
    executable(&program, b"bFLT\0\0\0\x04\0\0\0\x40\0\0\0\x50");
    let add = format!("{}:/bin/hello.flt", program.display());
    let (text, code) = guest(&["--add", &add], "hello.flt");
    assert_eq!(code, Some(2), "{text}");
    assert!(
        text.contains("bFLT program of uClinux, and this kernel has no loader"),
        "{text}"
    );
}

#[test]
#[ignore = "needs the kernel"]
fn case_18_programs_in_sbin_are_in_the_path() {
    let dir = scratch("case-18");
    executable(&dir.join("one"), b"#!/bin/sh\necho from $0\n");
    let one = dir.join("one").display().to_string();
    let [sbin, usr] = ["sbin/here", "usr/sbin/there"].map(|place| format!("{one}:/{place}"));
    let (text, code) = guest(&["--add", &sbin, "--add", &usr], "here; there");
    assert_eq!(
        (&*text, code),
        ("from /sbin/here\nfrom /usr/sbin/there\n", Some(0))
    );
}

const JIT: &str = r#"
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
/* Writes a function that returns another number each time into the same page, and calls it. */
int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "sync";
	int all = PROT_READ | PROT_WRITE | PROT_EXEC, wrong = 0;
	uint32_t *code = mmap(0, 4096, all, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (unsigned n = 0; n < 200; n++) {
		code[0] = 0xe3a00000 | n;		/* mov r0, #n */
		for (int i = 1; i < 16; i++)
			code[i] = 0xe1a00000;		/* nop */
		code[16] = 0xe2800000 | (n & 1);	/* add r0, r0, #n & 1 */
		code[17] = 0xe12fff1e;			/* bx lr */
		if (!strcmp(how, "sync"))
			__builtin___clear_cache((char *)code, (char *)(code + 18));
		else if (!strcmp(how, "short"))
			__builtin___clear_cache((char *)code, (char *)(code + 8));
		else if (!strcmp(how, "raw"))
			wrong += syscall(0xf0002, code, code + 18, 0) != 0;
		else if (!strcmp(how, "mprotect"))
			mprotect(code, 4096, PROT_READ), mprotect(code, 4096, PROT_READ | PROT_EXEC);
		wrong += ((int (*)(void))code)() != (int)(n + (n & 1));
		if (!strcmp(how, "mprotect"))
			mprotect(code, 4096, all);
	}
	printf("%s: %d of 200 wrong\n", how, wrong);
	return 0;
}
"#;

#[test]
#[ignore = "needs the kernel"]
fn case_20_code_that_is_written_without_a_flush_is_old_and_reported() {
    let program = compiled(&scratch("case-20"), "jit", JIT, &[]);
    let add = program.to_str().unwrap();
    let (text, _) = guest(
        &["--add", add],
        "for m in sync raw none short mprotect; do jit $m; done",
    );
    for (how, wrong) in [
        ("sync", 0),
        ("raw", 0),
        ("none", 199),
        ("short", 100),
        ("mprotect", 0),
    ] {
        assert!(
            text.contains(&format!("{how}: {wrong} of 200 wrong")),
            "{text}"
        );
    }
    for (how, reported) in [
        ("sync", false),
        ("mprotect", false),
        ("none", true),
        ("short", true),
    ] {
        let output = warmswitch(&["coherence", "--add", add, "--", "jit", how]);
        let text = output_text(&output);
        assert_eq!(
            output.status.code(),
            Some(i32::from(reported)),
            "{how}: {text}"
        );
        assert_eq!(
            text.contains("stale-instruction"),
            reported,
            "{how}: {text}"
        );
    }
}

#[test]
#[ignore = "needs the kernel"]
fn a_file_in_the_place_of_a_program_is_refused_before_the_boot() {
    let text = scratch("instead").join("README.md");
    fs::write(&text, "words\n").unwrap();
    for (place, part) in [
        ("/bin/sh/x", "/bin/busybox is not a folder in the guest"),
        ("/bin/busybox", "/bin/busybox is a program of the guest"),
        ("/init", "/init is a program of the guest"),
    ] {
        let (printed, code) = guest(&["--add", &format!("{}:{place}", text.display())], "true");
        assert!(
            code == Some(2) && printed.contains(part),
            "{place}: {printed}"
        );
    }
}

#[test]
#[ignore = "needs the kernel"]
fn case_01_the_kernels_own_line_tells_why_it_refused_a_program() {
    let source = "#include <stdio.h>\nstatic char pool[40 << 20];\n\
        int main(void) { pool[1] = 1; return printf(\"runs %d\\n\", pool[2]) < 0; }\n";
    let program = compiled(&scratch("case-01"), "bigbss", source, &["-static"]);
    let add = ["--add", program.to_str().unwrap()];
    let options = [&["--kernel", "fcse-guaranteed"], &add[..]].concat();
    let (text, code) = guest(&options, "bigbss");
    assert!(matches!(code, Some(1 | 2)), "{text}");
    assert!(text.contains("the guest's kernel: "), "{text}");
    assert!(text.contains("KB more below the limit of 32 MB"), "{text}");
    // If a command fails without kernel messages, the output contains no kernel messages.
    let (text, code) = guest(&["--kernel", "fcse-guaranteed"], "false");
    assert!(
        code == Some(1) && !text.contains("the guest's kernel"),
        "{text}"
    );
    let (text, code) = guest(&add, "bigbss");
    assert!(code == Some(0) && text.contains("runs 0"), "{text}");
}

#[test]
#[ignore = "needs the kernel and the network"]
fn a_package_of_debians_runs_with_what_it_depends_on() {
    let lua = ["--add-package", "lua5.4"];
    let (text, code) = guest(&lua, "lua5.4 -e 'print(6 * 7, _VERSION)'");
    assert!(code == Some(0) && text.contains("42\tLua 5.4"), "{text}");
    // Add the package twice, this time from the cache.
    let twice = [&lua[..], &lua].concat();
    let (text, code) = guest(&twice, "lua5.4 -v");
    assert!(code == Some(0) && text.contains("Lua 5.4"), "{text}");
    for (name, part) in [
        ("lua54", "did you mean \"lua5.4\"?"),
        (
            "awk",
            "a virtual package\n  help: name one that provides it: ",
        ),
        ("Lua", "not a package's name"),
    ] {
        let (text, code) = guest(&["--add-package", name], "true");
        assert!(code == Some(2) && text.contains(part), "{text}");
    }
    // Debian's programs do not run on this board's core.
    let (text, code) = guest(&[&lua[..], &["--board", "at91rm9200"]].concat(), "true");
    assert!(
        code == Some(2) && text.contains("--add-package: Debian's"),
        "{text}"
    );
}

#[cfg(feature = "every-kernel")]
#[test]
#[ignore = "needs kernels"]
fn a_board_gets_a_kernel_for_its_core() {
    for board in ["at91rm9200", "ixp425"] {
        let (text, code) = guest(&["--board", board], "uname -a");
        assert!(
            code == Some(0) && text.contains("Linux warmswitch 6.12"),
            "{board}: {text}"
        );
    }
}
