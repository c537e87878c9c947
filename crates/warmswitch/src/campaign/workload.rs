// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kind of output that a workload prints.

use anyhow::{Context as _, Result};
use base::paths::shown;
use results::outputs::{self, OutputKind};
use supply::image::guest::Workload;

/// Returns the kind of output that `workload.toml` specifies. Returns `None` if the key `output` is missing.
pub fn output(workload: &Workload) -> Result<Option<&'static dyn OutputKind>> {
    let kind = workload.output.as_deref().map(outputs::named).transpose();
    kind.with_context(|| format!("{}: output", shown(&workload.dir.join("workload.toml"))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use supply::image::guest;

    #[test]
    fn an_output_that_does_not_exist_is_named_with_the_file_and_the_nearest_name() {
        let mut workload = guest::all().unwrap().remove("ipc").unwrap();
        assert_eq!(output(&workload).unwrap().unwrap().name(), "ipc");
        workload.output = Some("lat_ctxt".into());
        let error = format!("{:#}", output(&workload).unwrap_err());
        assert!(error.contains("guest/ipc/workload.toml: output"), "{error}");
        assert!(error.contains("did you mean \"lat_ctx\"?"), "{error}");
        workload.output = None;
        assert!(output(&workload).unwrap().is_none());
    }
}
