// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which kind of output a workload has.

use anyhow::{Context as _, Result};
use base::paths::shown;
use results::outputs::{self, OutputKind};
use supply::image::guest::Workload;

/// The kind of output of a workload, where its file names one.
pub fn output(workload: &Workload) -> Result<Option<&'static dyn OutputKind>> {
    let kind = workload.output.as_deref().map(outputs::named).transpose();
    kind.with_context(|| format!("{}: output", shown(&workload.dir.join("workload.toml"))))
}
