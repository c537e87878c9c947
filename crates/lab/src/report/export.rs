// SPDX-License-Identifier: MIT OR Apache-2.0
//! A campaign's figures as files beside its report: CSV, and what the kind of output adds. Pure
//! functions of runs; docs/EXPORTS.md has every field.

use crate::figures::figure::Measured;
use crate::report::material::Material;
use crate::runs::point::short_kernel;

/// Names and contents.
pub fn files(material: &Material) -> Vec<(String, String)> {
    let name = &material.experiment.name;
    let of_kind = material.kind.exports(material.runs).into_iter();
    let of_kind = of_kind.map(|(end, text)| (format!("{name}-{end}"), text));
    [(format!("{name}.csv"), figures(material))]
        .into_iter()
        .chain(of_kind)
        .collect()
}

/// The figures of the tables, one a line.
pub fn figures(material: &Material) -> String {
    let mut text = String::from("board,axes,kernel,mode,series,metric,unit,value,low,high\n");
    for m in &material.results.measured {
        let (axes, cells) = (m.place.axes_text(), cells(m).join(","));
        text += &format!("{},{axes},{cells}\n", m.place.board);
    }
    text
}

/// A figure as text, cell by cell.
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
