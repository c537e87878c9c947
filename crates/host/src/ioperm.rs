// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cost of I/O permissions at a switch on this machine's kernel (`host/ioperm.c`), compared with the mail of 2004. If
//! the kernel refuses permissions, this module gives the reason.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};

use super::programs::ProgramOutput;
use super::setup::{CAP_SYS_RAWIO, System};
use results::figures::published::Published;
use results::figures::statistics::{self, Summary};
use results::render::grid::Grid;

/// Name of the tool and of `host/NAME.c`.
pub const NAME: &str = "ioperm";
/// Exit code of the program when the kernel refuses permissions.
const REFUSED: i32 = 3;
/// Architectures with I/O ports.
const ARCHITECTURES: [&str; 2] = ["x86_64", "x86"];
/// Lines of the mail. Each has the text, our case, and the ids of the figures without and with the patch.
const LINES: [(&str, &str, [&str; 2]); 3] = [
    (
        "default no ioperm",
        "none",
        ["molnar2004.vanilla.none", "molnar2004.patched.none"],
    ),
    (
        "turning on port 80 ioperm",
        "port-80",
        ["molnar2004.vanilla.port80", "molnar2004.patched.port80"],
    ),
    (
        "turning on port 65535 ioperm",
        "port-65535",
        [
            "molnar2004.vanilla.port65535",
            "molnar2004.patched.port65535",
        ],
    ),
];

/// Result of the program.
#[derive(Debug, Deserialize, Serialize)]
pub struct Measured {
    format: u32,
    policy: String,
    turns: u32,
    /// Results for each case and each number of port accesses.
    pub cases: Vec<Case>,
    /// The call that the kernel refused, if any.
    pub refused: Option<Refused>,
    interrupted: bool,
}

/// A case with a number of port accesses per turn.
#[derive(Debug, Deserialize, Serialize)]
pub struct Case {
    /// The ports that each task may access: "port-80".
    #[serde(rename = "case")]
    pub name: String,
    accesses: u32,
    /// Number of turns in which the other task did not run exactly once.
    no_switch: u32,
    cycles: Vec<u64>,
}

/// A call that the kernel refused.
#[derive(Debug, Deserialize, Serialize)]
pub struct Refused {
    call: String,
    /// Name of the error number.
    error: String,
}

/// Rejects an architecture without I/O ports.
pub fn check_architecture(architecture: &str) -> Result<()> {
    if !ARCHITECTURES.contains(&architecture) {
        bail!(
            "ioperm: only x86 has I/O ports with a permission bitmap; this machine is {architecture}\n  \
             help: `warmswitch host bitmap` runs the algorithms on any machine"
        );
    }
    Ok(())
}

/// Reads the output of the program.
pub fn read(ran: &ProgramOutput) -> Result<Measured> {
    if !matches!(ran.code, Some(0 | REFUSED)) {
        bail!("ioperm {}: {}", ran.ending(), ran.errors.trim());
    }
    let start = "{\"guest\":\"ioperm\"";
    let line = ran
        .output
        .lines()
        .map(str::trim)
        .find(|line| line.starts_with(start));
    let line = line.with_context(|| format!("ioperm printed no result: {}", ran.errors.trim()))?;
    let measured: Measured =
        serde_json::from_str(line).context("the result line of ioperm is damaged")?;
    if measured.format != 1 {
        bail!(
            "ioperm prints format {}, this program reads format 1",
            measured.format
        );
    }
    Ok(measured)
}

impl Case {
    fn summary(&self) -> Option<Summary> {
        let cycles: Vec<f64> = self.cycles.iter().map(|cycles| *cycles as f64).collect();
        statistics::summarise(&cycles)
    }
}

impl Measured {
    /// Returns the smallest time in a case without port accesses. The mail prints such minima.
    fn minimum(&self, name: &str) -> Option<u64> {
        let case = self
            .cases
            .iter()
            .find(|case| case.name == name && case.accesses == 0)?;
        case.cycles.iter().min().copied()
    }

    /// Makes a table of the mail's three lines. This kernel's figures, in `unit`, come before the mail's two columns.
    pub fn lines(&self, published: &Published, unit: &str) -> Grid {
        let headings = [
            "scheduling latency".to_string(),
            format!("this kernel\n{unit}"),
            "2.6.8.1\ncycles".to_string(),
            "with the patch of 2004\ncycles".to_string(),
        ];
        let row = |(text, case, ids): &(&str, &str, [&str; 2])| {
            let mut cells = vec![text.to_string(), cell(self.minimum(case))];
            cells.extend(ids.iter().map(|id| {
                let figure = published.figure(id).and_then(|figure| figure.value);
                cell(figure.map(|value| value as u64))
            }));
            cells
        };
        Grid {
            texts: 1,
            headings: headings.into(),
            rows: LINES.iter().map(row).collect(),
        }
    }

    /// Makes a table of all cases, in the unit of [`Measured::lines`].
    pub fn table(&self) -> Grid {
        let headings = [
            "case",
            "accesses",
            "min",
            "median",
            "max",
            "turns",
            "no switch",
        ];
        let row = |case: &Case| {
            let summary = case.summary();
            let cycles = |get: fn(&Summary) -> f64| cell(summary.as_ref().map(|s| get(s) as u64));
            vec![
                case.name.clone(),
                case.accesses.to_string(),
                cycles(|s| s.min),
                cycles(|s| s.median),
                cycles(|s| s.max),
                case.cycles.len().to_string(),
                case.no_switch.to_string(),
            ]
        };
        Grid {
            texts: 1,
            headings: headings.map(String::from).into(),
            rows: self.cases.iter().map(row).collect(),
        }
    }

    /// Returns the cases in which the two tasks never switched.
    pub fn without_switch(&self) -> Vec<&str> {
        let none = self.cases.iter().filter(|case| case.cycles.is_empty());
        none.map(|case| case.name.as_str()).collect()
    }
}

fn cell(value: Option<u64>) -> String {
    value.map_or("-".to_string(), |value| value.to_string())
}

impl Refused {
    /// Returns the reason for the refusal, with help.
    pub fn missing(&self, root: &Path) -> String {
        let system = System::Below(root);
        let Refused { call, error } = self;
        let why = match error.as_str() {
            "ENOSYS" => {
                "the kernel was built without CONFIG_X86_IOPL_IOPERM\n  \
                 help: Debian's own kernel has it; `warmswitch host ioperm --qemu` measures there"
                    .to_string()
            }
            _ if system.has_capability(CAP_SYS_RAWIO) == Some(false) => {
                "this process has no CAP_SYS_RAWIO\n  help: run it as root; start a container with --cap-add SYS_RAWIO"
                    .to_string()
            }
            _ if system.status("Seccomp").is_some_and(|mode| mode == "2") => {
                "this process has CAP_SYS_RAWIO, but the container has a seccomp filter\n  \
                 help: start the container with --security-opt seccomp=unconfined"
                    .to_string()
            }
            _ => {
                "this process has CAP_SYS_RAWIO, so the kernel may be locked down\n  \
                 help: see lockdown= on the kernel's command line and /sys/kernel/security/lockdown"
                    .to_string()
            }
        };
        format!("the kernel refused {call}() with {error}: {why}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(output: &str, code: i32) -> ProgramOutput {
        ProgramOutput {
            output: output.to_string(),
            errors: String::new(),
            code: Some(code),
        }
    }

    const LINE: &str = "{\"guest\":\"ioperm\",\"format\":1,\"policy\":\"fifo\",\"turns\":3,\"cases\":[\
        {\"case\":\"none\",\"accesses\":0,\"no_switch\":0,\"cycles\":[700,600,650]},\
        {\"case\":\"port-80\",\"accesses\":0,\"no_switch\":2,\"cycles\":[900]},\
        {\"case\":\"port-80\",\"accesses\":1,\"no_switch\":2,\"cycles\":[]}],\
        \"refused\":null,\"interrupted\":false}\n";

    #[test]
    fn the_papers_lines_have_its_figures_beside_the_minimum() {
        let measured = read(&ran(LINE, 0)).unwrap();
        let grid = measured.lines(&Published::load().unwrap(), "cycles");
        assert_eq!(grid.rows[0], ["default no ioperm", "600", "2528", "2423"]);
        assert_eq!(grid.rows[1][1..], ["900", "10563", "2503"]);
        assert_eq!(grid.rows[2][1..], ["-", "10517", "10607"]);
        assert_eq!(measured.table().rows[0][2..5], ["600", "650", "700"]);
        assert_eq!(measured.without_switch(), ["port-80"]);
    }

    #[test]
    fn what_is_damaged_or_failed_is_an_error_and_no_result() {
        assert!(read(&ran("", 0)).is_err());
        assert!(read(&ran(&LINE[..90], 0)).is_err());
        assert!(read(&ran(&LINE.replace("\"format\":1", "\"format\":2"), 0)).is_err());
        assert!(read(&ran(LINE, 1)).is_err());
    }

    #[test]
    fn a_refusal_names_the_option_the_capability_or_the_setting() {
        let dir = std::env::temp_dir().join(format!("warmswitch-refused-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("proc/self")).unwrap();
        let missing = |error: &str, status: &str| {
            std::fs::write(dir.join("proc/self/status"), status).unwrap();
            let (call, error) = ("ioperm".to_string(), error.to_string());
            Refused { call, error }.missing(&dir)
        };
        let all = "CapEff:\t000001ffffffffff\nSeccomp:\t";
        assert!(missing("ENOSYS", all).contains("CONFIG_X86_IOPL_IOPERM"));
        assert!(missing("EPERM", "CapEff:\t0\n").contains("no CAP_SYS_RAWIO"));
        assert!(missing("EPERM", &format!("{all}2\n")).contains("seccomp"));
        assert!(missing("EPERM", &format!("{all}0\n")).contains("lockdown"));
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn another_architecture_has_no_ports() {
        assert!(check_architecture("x86_64").is_ok());
        let error = check_architecture("aarch64").unwrap_err().to_string();
        assert!(error.contains("only x86 has I/O ports"), "{error}");
    }
}
