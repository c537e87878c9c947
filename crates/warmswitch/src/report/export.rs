// SPDX-License-Identifier: MIT OR Apache-2.0
//! Renders a campaign's figures as files in the folder of its report. The files are CSV, and the formats of the output
//! kind. docs/use/EXPORTS.md describes every field.

use crate::report::material::Material;
use results::figures::figure::Measured;
use results::runs::point::short_kernel;

/// Returns names and contents of the files.
pub fn files(material: &Material) -> Vec<(String, String)> {
    let name = &material.experiment.name;
    let exports = material.kind.exports(material.runs).into_iter();
    let exports = exports.map(|(end, text)| (format!("{name}-{end}"), text));
    [(format!("{name}.csv"), figures(material))]
        .into_iter()
        .chain(exports)
        .collect()
}

/// Renders the figures of the tables as CSV, one figure per line.
pub fn figures(material: &Material) -> String {
    let mut text = String::from("board,axes,kernel,mode,series,metric,unit,value,low,high\n");
    for m in &material.results.measured {
        let (axes, cells) = (m.place.axes_text(), cells(m).join(","));
        text += &format!("{},{axes},{cells}\n", m.place.board);
    }
    text
}

/// Returns the cells of a figure after the cells for board and axes.
fn cells(m: &Measured) -> Vec<String> {
    let number = |x: f64| format!("{x:.3}");
    vec![
        short_kernel(&m.place.kernel).to_string(),
        m.place.mode.clone(),
        m.place.series.clone(),
        m.metric.to_string(),
        m.unit.to_string(),
        number(m.value),
        number(m.low),
        number(m.high),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::recorded::read;

    #[test]
    fn what_was_written_is_read_and_other_lines_are_named() {
        let kernels = ["6.12/plain".to_string()];
        let head = "board,axes,kernel,mode,series,metric,unit,value,low,high\n";
        let line = "sam9263,size_kb=0 tasks=2,plain,process,,switch,us,140.140,139.000,141.500";
        let figures = read(&format!("{head}{line}\n"), &kernels).unwrap();
        let m = &figures[0];
        assert_eq!((m.value, m.low, m.high), (140.14, 139.0, 141.5));
        assert_eq!(m.place.kernel, "6.12/plain");
        assert_eq!(
            (&*m.place.axes_text(), m.metric),
            ("size_kb=0 tasks=2", "switch")
        );
        assert_eq!(
            format!("sam9263,{},{}", m.place.axes_text(), cells(m).join(",")),
            line
        );
        for bad in [
            "",
            "sam9263",
            &line.replace("plain", "other"),
            &line.replace("=2", "=x"),
        ] {
            let error = read(&format!("{head}{line}\n{bad}\n"), &kernels).unwrap_err();
            assert!(error.to_string().starts_with("line 3"), "{error}");
        }
    }
}
