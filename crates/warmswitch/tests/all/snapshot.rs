// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of snapshots. A run from a snapshot must give the same results as a run from a boot, even if the snapshot is
//! damaged.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::OnceLock;

use crate::{Files, RUN_FEW, make_project, results};

/// A project with its own cache. The cache has links to all files of our cache except the snapshots.
struct Place {
    dir: PathBuf,
}

impl Place {
    fn new(name: &str) -> Place {
        let name = format!("warmswitch-{}-snapshot-{name}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        fs::create_dir_all(dir.join("cache")).unwrap();
        make_project(&dir);
        let set = |name| std::env::var_os(name).map(PathBuf::from);
        let cache = set("WARMSWITCH_CACHE")
            .or_else(|| Some(set("XDG_CACHE_HOME")?.join("warmswitch")))
            .or_else(|| Some(set("HOME")?.join(".cache/warmswitch")));
        for entry in fs::read_dir(cache.unwrap()).expect("kernels").flatten() {
            if entry.file_name() != "snapshot" {
                symlink(entry.path(), dir.join("cache").join(entry.file_name())).unwrap();
            }
        }
        Place { dir }
    }

    fn snapshots(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.dir.join("cache/snapshot"));
        let mut all: Vec<_> = entries.into_iter().flatten().flatten().collect();
        all.sort_by_key(|entry| entry.file_name());
        all.iter().map(|entry| entry.path()).collect()
    }

    fn output(&self, command: &mut Command) -> Output {
        let command = command.current_dir(&self.dir);
        let command = command.env("WARMSWITCH_CACHE", self.dir.join("cache"));
        command.output().expect("the program starts")
    }

    fn warmswitch(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_warmswitch"));
        self.output(command.args(arguments))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// Runs the experiment `few` undisturbed, with a fresh boot for each point. Returns the output and all files.
pub fn undisturbed() -> &'static (Output, Files) {
    static UNDISTURBED: OnceLock<(Output, Files)> = OnceLock::new();
    UNDISTURBED.get_or_init(|| {
        let place = Place::new("undisturbed");
        let output = place.warmswitch(&[&RUN_FEW[..], &["--fresh-boot"]].concat());
        assert!(place.snapshots().is_empty());
        let files = results(&place.dir);
        assert!(files.keys().any(|path| path.ends_with("run.json")));
        (output, files)
    })
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
#[ignore = "needs the kernel"]
fn a_damaged_snapshot_is_named_replaced_and_changes_nothing() {
    let place = Place::new("damaged");
    let command = ["--counters", "--", "lat_ctx", "-P", "-n", "9", "4"];
    let guest = |more: &[&str]| place.warmswitch(&[&["guest"], more, &command].concat());
    let fresh = guest(&["--fresh-boot"]);
    assert_eq!(fresh.status.code(), Some(0), "{}", stderr(&fresh));
    assert!(place.snapshots().is_empty());
    let made = guest(&[]);
    let [snapshot] = &place.snapshots()[..] else {
        panic!("{:?}", place.snapshots());
    };
    let whole = fs::read(snapshot).unwrap();
    let restored = guest(&[]);
    for output in [&made, &restored] {
        assert_eq!(output.stdout, fresh.stdout);
        assert!(!stderr(output).contains("note"), "{}", stderr(output));
    }
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    for (bytes, reason) in [
        (&whole[..whole.len() / 2], "it is damaged"),
        (&flipped, "it is damaged"),
        (b"GIF89a", "it is not a snapshot"),
        (b"", "it is cut off"),
    ] {
        fs::write(snapshot, bytes).unwrap();
        let output = guest(&[]);
        assert_eq!(output.stdout, fresh.stdout, "{reason}");
        let printed = stderr(&output);
        let file = snapshot.file_name().unwrap().to_str().unwrap();
        assert!(
            printed.contains(file) && printed.contains(reason),
            "{printed}"
        );
        assert_eq!(printed.matches("note").count(), 1, "{printed}");
        assert!(fs::read(snapshot).unwrap() == whole, "it is replaced");
    }
}

#[test]
#[ignore = "needs kernels"]
fn points_from_snapshots_and_from_boots_are_the_same_bytes() {
    let place = Place::new("points");
    let (fresh, expected) = undisturbed();
    for kept in [false, true] {
        assert_eq!(place.snapshots().is_empty(), !kept);
        let output = place.warmswitch(&RUN_FEW);
        assert_eq!(output.stdout, fresh.stdout);
        assert!(results(&place.dir) == *expected);
        fs::remove_dir_all(place.dir.join("out")).unwrap();
    }
}

#[test]
#[ignore = "needs kernels"]
fn where_no_snapshot_fits_all_goes_on_with_one_note() {
    let place = Place::new("full");
    let (fresh, expected) = undisturbed();
    // Limit files to 1 MB, which is enough for runs but not for snapshots.
    let program = env!("CARGO_BIN_EXE_warmswitch");
    let run = RUN_FEW.join(" ");
    let script = format!("trap '' XFSZ; ulimit -f 2048; exec {program} {run}");
    let full = place.output(Command::new("sh").args(["-c", &script]));
    let printed = stderr(&full);
    assert_eq!(
        printed.matches("note: boots are not kept").count(),
        1,
        "{printed}"
    );
    assert_eq!((full.status, &full.stdout), (fresh.status, &fresh.stdout));
    // The limit leaves no room for translated code either.
    assert!(
        printed.matches("note: no translator").count() <= 1,
        "{printed}"
    );
    assert!(interpreted(&results(&place.dir)) == interpreted(expected));
    assert!(place.snapshots().is_empty(), "nothing half-written");
}

/// Files as if the interpreter had made them.
fn interpreted(files: &Files) -> Files {
    let other = |bytes: &Vec<u8>| {
        let text = String::from_utf8_lossy(bytes);
        text.replace("\"translator\"", "\"interpreter\"")
            .into_bytes()
    };
    let files = files.iter();
    files
        .map(|(path, bytes)| (path.clone(), other(bytes)))
        .collect()
}
