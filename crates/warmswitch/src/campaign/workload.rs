// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kind of output of a workload.

use anyhow::{Context as _, Result};
use base::paths::shown;
use results::outputs::{self, OutputKind};
use supply::image::guest::Workload;

/// Returns the kind of output that `workload.toml` names; `None` without the key `output`.
pub fn output(workload: &Workload) -> Result<Option<&'static dyn OutputKind>> {
    let kind = workload.output.as_deref().map(outputs::named).transpose();
    kind.with_context(|| format!("{}: output", shown(&workload.dir.join("workload.toml"))))
}
