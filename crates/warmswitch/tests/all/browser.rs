// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the report in a real browser. The report must work at the widths of a desktop, a tablet and a phone, in
//! light and in dark mode.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Script that measures the page in which it runs: width, contents, contrast, overlaps and errors. It posts the results
/// to the parent of the page's frame.
const PROBE: &str = r#"<script>
const wrong = [];
addEventListener("error", e => wrong.push(e.message || e.target.outerHTML), true);
console.error = (...what) => wrong.push(what.join(" "));
addEventListener("load", () => {
  const all = what => [...document.querySelectorAll(what)];
  const numbers = colour => colour.match(/[\d.]+/g).map(Number);
  const light = colour => {
    const part = c => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    const [r, g, b] = numbers(colour).map(part);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = e => {
    for (; e; e = e.parentElement) {
      const colour = getComputedStyle(e).backgroundColor;
      if ((numbers(colour)[3] ?? 1) > 0.5) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const contrast = e => {
    const [a, b] = [light(getComputedStyle(e).color), light(ground(e))];
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  };
  const says = e => [...e.childNodes].some(n => n.nodeType == 3 && n.data.trim());
  const shown = e => e.getClientRects().length > 0;
  const pale = all("body *").filter(e => !e.closest("svg, script, style") && says(e) && shown(e) && contrast(e) < 4.5);
  // Labels of one chart that overlap by more than a tenth of the smaller label.
  const overlaps = [];
  for (const svg of all("svg").filter(shown)) {
    const labels = [...svg.querySelectorAll("text")].filter(e => e.textContent.trim());
    const boxes = labels.map(e => [e.textContent.trim(), e.getBoundingClientRect()]);
    boxes.forEach(([a, p], n) => boxes.slice(n + 1).forEach(([b, q]) => {
      const w = Math.min(p.right, q.right) - Math.max(p.left, q.left);
      const h = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
      const least = Math.min(p.width * p.height, q.width * q.height);
      if (w > 0 && h > 0 && w * h > least / 10) overlaps.push(a + " / " + b);
    }));
  }
  parent.postMessage(JSON.stringify({
    wider: document.documentElement.scrollWidth - innerWidth,
    charts: all("svg").filter(e => e.getBoundingClientRect().width > 200).length,
    tables: all("table").filter(e => e.rows.length > 1 && e.innerText.trim()).length,
    smallest: Math.min(...all("td").map(e => parseFloat(getComputedStyle(e).fontSize))),
    pale: pale.map(e => e.innerText.slice(0, 40)),
    dark: light(getComputedStyle(document.body).backgroundColor) < 0.1,
    overlaps,
    missing: document.body.innerText.match(/\b(NaN|inf|undefined|null)\b/g) ?? [],
    wrong,
  }), "*");
});
</script>"#;

struct Seen(serde_json::Value);

impl Seen {
    fn number(&self, what: &str) -> f64 {
        self.0[what]
            .as_f64()
            .unwrap_or_else(|| panic!("{what} in {}", self.0))
    }
}

/// Opens `page` in a frame of `width` pixels. Returns the results of the page's probe.
fn seen(dir: &Path, page: &str, width: u32, dark: bool) -> Seen {
    std::fs::write(
        dir.join("page.html"),
        page.replace("<head>", &format!("<head>{PROBE}")),
    )
    .unwrap();
    let frame = format!(
        "<iframe src=page.html width={width} height=900></iframe><script>\
         addEventListener('message', e => document.body.dataset.seen = e.data)</script>"
    );
    let path = dir.join("frame.html");
    std::fs::write(&path, frame).unwrap();
    let output = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu"])
        .args(["--window-size=1600,1000", "--virtual-time-budget=20000"])
        .arg(format!("--user-data-dir={}", dir.join("profile").display()))
        .arg(format!(
            "--blink-settings=preferredColorScheme={}",
            u8::from(!dark)
        ))
        .arg("--dump-dom")
        .arg(&path)
        .output()
        .expect("chromium starts");
    let dom = String::from_utf8_lossy(&output.stdout);
    let reply = dom
        .split("data-seen=\"")
        .nth(1)
        .and_then(|rest| rest.split('"').next());
    let reply = reply.unwrap_or_else(|| panic!("the probe gave no results: {dom}"));
    Seen(serde_json::from_str(&reply.replace("&quot;", "\"")).expect("JSON"))
}

fn scratch() -> PathBuf {
    let dir = std::env::temp_dir().join(format!("warmswitch-browser-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

/// Runs the quick form of an experiment and returns its report.
fn report(dir: &Path) -> String {
    for arguments in [
        vec!["run", "cyclictest", "--quick"],
        vec!["report", "cyclictest", "--out", dir.to_str().unwrap()],
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_warmswitch"))
            .args(&arguments)
            .output()
            .expect("the program starts");
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {message}");
    }
    std::fs::read_to_string(dir.join("index.html")).unwrap()
}

#[test]
#[ignore = "needs kernels and chromium"]
fn the_report_is_whole_at_a_desk_and_on_a_phone() {
    let dir = scratch();
    let page = report(&dir);
    let ways = [(1300, false), (800, false), (390, false), (1300, true)];
    for (width, dark) in ways {
        let seen = seen(&dir, &page, width, dark);
        for nothing in ["wrong", "pale", "overlaps", "missing"] {
            assert_eq!(
                seen.0[nothing],
                serde_json::json!([]),
                "{nothing}, at {width}"
            );
        }
        assert_eq!(seen.0["dark"], dark);
        assert!(seen.number("wider") <= 0.0, "{width}: {}", seen.0);
        assert!(seen.number("charts") >= 1.0, "{width}: {}", seen.0);
        assert!(seen.number("tables") >= 3.0, "{width}: {}", seen.0);
        assert!(seen.number("smallest") >= 14.0, "{width}: {}", seen.0);
    }
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
#[ignore = "needs chromium"]
fn the_probe_sees_what_is_wrong() {
    let dir = scratch().join("wrong");
    std::fs::create_dir_all(&dir).unwrap();
    let page = "<html><head></head><body><div style='width: 900px'>wide</div><img src=none.png>\
                <script>nonsense()</script><p style='color: #aaa'>pale NaN</p><svg width=150><text x=9 y=20>one</text>\
                <text x=12 y=20>other</text></svg></body></html>";
    let seen = seen(&dir, page, 390, false);
    assert_eq!(seen.0["pale"], serde_json::json!(["pale NaN"]));
    assert_eq!(seen.0["overlaps"], serde_json::json!(["one / other"]));
    assert_eq!(seen.0["missing"], serde_json::json!(["NaN"]));
    assert!(seen.number("wider") > 0.0, "{}", seen.0);
    assert_eq!(
        seen.0["wrong"].as_array().map(Vec::len),
        Some(2),
        "{}",
        seen.0
    );
    assert_eq!(seen.number("charts"), 0.0);
    std::fs::remove_dir_all(&dir).unwrap();
}
