// SPDX-License-Identifier: MIT OR Apache-2.0
//! Claims: what the papers say, or a design promises, of the order and ratio of two figures. Each
//! is true or false of the figures that were measured; none enters a measurement.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};

use crate::point::Place;
use crate::published::{Figure, Published};
use crate::statistics::{self, FEWEST, Ranks, SIGNIFICANT};
use crate::suggest::did_you_mean;
use crate::which::{Known, Which};

/// A measured figure, with all that tells it from the others of its experiment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measured {
    #[serde(flatten)]
    pub place: Place,
    /// Its name: "switch", "max".
    pub metric: &'static str,
    pub unit: &'static str,
    pub value: f64,
    /// Of one seed, the interval of its samples; of several, that of the seeds' values.
    pub low: f64,
    pub high: f64,
    /// What each seed gave.
    pub seeds: Vec<f64>,
}

/// `[[claim]]`: the figures `of`, divided by those `to` on the same board at the same axes, or less
/// than them by so much.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    pub text: String,
    /// Who says so.
    pub source: String,
    pub of: Which,
    pub to: Which,
    pub at_most: Option<f64>,
    pub at_least: Option<f64>,
    /// In the figures' unit.
    pub less_by: Option<f64>,
    /// Why it need not hold here, by counters: then it does not count as a "no".
    pub explained: Option<String>,
}

/// What became of a claim.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    pub text: String,
    pub source: String,
    /// What the bound is of: "Ratio", "Difference in us".
    pub quantity: String,
    /// "at most 0.5".
    pub bound: String,
    /// `None`: no figures to judge by, or their intervals leave it open.
    pub holds: Option<bool>,
    /// The one nearest to, or furthest beyond, the bound.
    pub worst: Option<Against>,
    /// How many were looked at.
    pub count: usize,
    /// Why it need not hold here.
    pub explained: Option<String>,
}

/// Ratio or difference of two measured figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Against {
    pub value: f64,
    /// Of the ends of the figures' intervals, so that it is on the safe side.
    pub low: f64,
    pub high: f64,
    /// How the seeds' figures lie to the bound, from four seeds of each on.
    pub ranks: Option<Ranks>,
    /// Of the figure with fewer.
    pub seeds: usize,
    /// Board and axes.
    pub place: String,
}

impl Claim {
    /// Whether it can be judged at all.
    pub fn check(&self, known: &Known) -> Result<()> {
        let bounds = [self.at_most, self.at_least, self.less_by];
        let of_this = || format!("claim \"{}\"", self.text);
        if bounds.iter().flatten().count() != 1 {
            bail!(
                "{}: one of at_most, at_least and less_by is wanted",
                of_this()
            );
        }
        let sensible = |bound: &f64| bound.is_finite() && *bound > 0.0;
        if !bounds.iter().flatten().all(sensible) {
            bail!("{}: a bound is a number above 0", of_this());
        }
        self.of.check(known).with_context(of_this)?;
        self.to.check(known).with_context(of_this)
    }

    fn tells(&self, what: fn(&Which) -> &Option<String>) -> bool {
        what(&self.of).is_some() || what(&self.to).is_some()
    }

    /// The axes of which the claim says nothing.
    fn untold(&self, place: &Place) -> BTreeMap<String, u32> {
        let told = |name: &String| self.of.at.contains_key(name) && self.to.at.contains_key(name);
        let mut axes = place.axes.clone();
        axes.retain(|name, _| !told(name));
        axes
    }

    /// Judges by what was measured.
    pub fn judge(&self, measured: &[Measured]) -> Verdict {
        let mut all = Vec::new();
        let mut unit = "";
        for of in measured.iter().filter(|m| self.of.takes(m)) {
            // What the claim does not tell apart has to be the same.
            let same_place = |m: &&Measured| {
                let (m_at, of_at) = (&m.place, &of.place);
                m_at.board == of_at.board
                    && self.untold(m_at) == self.untold(of_at)
                    && (self.tells(|w| &w.kernel) || m_at.kernel == of_at.kernel)
                    && (self.tells(|w| &w.mode) || m_at.mode == of_at.mode)
                    && (self.tells(|w| &w.series) || m_at.series == of_at.series)
                    && (self.tells(|w| &w.metric) || m.metric == of.metric)
            };
            let to = measured.iter().filter(|m| self.to.takes(m));
            for to in to.filter(same_place) {
                unit = of.unit;
                all.extend(self.against(of, to));
            }
        }
        let (quantity, bound, word) = match (self.at_most, self.at_least, self.less_by) {
            (Some(most), ..) => ("Ratio".into(), most, "at most"),
            (_, Some(least), _) => ("Ratio".into(), least, "at least"),
            (.., Some(by)) => (format!("Difference in {unit}"), by, "at least"),
            (None, None, None) => (String::new(), f64::NAN, "no bound"),
        };
        let each: Vec<Option<bool>> = all.iter().map(|a| self.decided(a, bound)).collect();
        let holds = if each.contains(&Some(false)) {
            Some(false)
        } else {
            (!each.is_empty() && each.iter().all(|e| *e == Some(true))).then_some(true)
        };
        let sign = if self.at_most.is_some() { 1.0 } else { -1.0 };
        let count = all.len();
        let worst = all
            .into_iter()
            .max_by(|a, b| (sign * a.value).total_cmp(&(sign * b.value)));
        Verdict {
            text: self.text.clone(),
            source: self.source.clone(),
            quantity,
            bound: format!("{word} {bound}"),
            holds,
            worst,
            count,
            explained: self.explained.clone(),
        }
    }

    /// One figure against the other; `None` when there is no ratio.
    fn against(&self, of: &Measured, to: &Measured) -> Option<Against> {
        let place = of.place.with_axes(&of.place.board);
        let (value, low, high) = if self.less_by.is_some() {
            (to.value - of.value, to.low - of.high, to.high - of.low)
        } else if to.low > 0.0 {
            (of.value / to.value, of.low / to.high, of.high / to.low)
        } else {
            return None;
        };
        // Against the other kernel's seeds, moved by what the claim says.
        let moved = to
            .seeds
            .iter()
            .map(|x| match (self.less_by, self.at_most, self.at_least) {
                (Some(by), ..) => x - by,
                (_, Some(bound), _) | (.., Some(bound)) => x * bound,
                (None, None, None) => *x,
            });
        let seeds = of.seeds.len().min(to.seeds.len());
        let ranks =
            (seeds >= FEWEST).then(|| statistics::ranks(&of.seeds, &moved.collect::<Vec<_>>()));
        Some(Against {
            value,
            low,
            high,
            ranks: ranks.flatten(),
            seeds,
            place,
        })
    }

    /// By ranks over seeds if there are enough, else by intervals.
    fn decided(&self, a: &Against, bound: f64) -> Option<bool> {
        if let Some(ranks) = a.ranks {
            let wanted_lower = self.at_least.is_none();
            return (ranks.p < SIGNIFICANT).then_some((ranks.lower > 0.5) == wanted_lower);
        }
        let inside = |x: f64| match self.at_most {
            Some(_) => x <= bound,
            None => x >= bound,
        };
        match (inside(a.low), inside(a.high)) {
            (true, true) => Some(true),
            (false, false) => Some(false),
            _ => None,
        }
    }
}

impl Verdict {
    /// "holds", "FAILS" or "open".
    pub fn word(&self) -> &'static str {
        match self.holds {
            Some(true) => "holds",
            Some(false) => "FAILS",
            None => "open",
        }
    }

    /// What it was judged by, in a sentence without a full stop.
    pub fn reason(&self) -> String {
        let reason = match &self.worst {
            Some(r) => {
                let by = match (r.ranks, r.seeds) {
                    (Some(ranks), n) => format!("by ranks over {n} seeds, {}", ranks.shown()),
                    (None, 1) => "by one seed's interval".to_string(),
                    (None, n) => format!("by the range of {n} seeds"),
                };
                format!(
                    "{} {:.2} ({:.2} to {:.2}), {}, {by}, at {}, the worst of {}",
                    self.quantity, r.value, r.low, r.high, self.bound, r.place, self.count
                )
            }
            None => "Nothing was measured that could decide it".to_string(),
        };
        match &self.explained {
            Some(why) if self.holds != Some(true) => format!("{reason}. {why}"),
            _ => reason,
        }
    }
}

/// `[[beside]]`: a published figure, and the measured one that it stands beside, if any does.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Beside {
    /// Its id in `published/published.toml`.
    pub published: String,
    /// None: it stands alone.
    pub measured: Option<Which>,
}

/// A published figure with what was measured.
pub struct Pair<'a> {
    pub figure: &'a Figure,
    pub measured: Vec<Measured>,
}

impl Pair<'_> {
    /// What is to be said of each measured figure.
    pub fn each(&self, say: impl Fn(&Measured) -> Option<String>) -> String {
        let all: Vec<String> = self.measured.iter().filter_map(say).collect();
        all.join(", ")
    }
}

/// Every published figure that the experiment names, with its partners.
pub fn pairs<'a>(
    beside: &[Beside],
    measured: &[Measured],
    published: &'a Published,
) -> Result<Vec<Pair<'a>>> {
    let pair = |b: &Beside| {
        let Some(figure) = published.figure(&b.published) else {
            let ids: Vec<&String> = published.figures.iter().map(|f| &f.id).collect();
            bail!(
                "beside: no published figure \"{}\"{}",
                b.published,
                did_you_mean(&b.published, &ids)
            );
        };
        let partners = measured.iter().filter(|m| {
            let which = b.measured.as_ref();
            which.is_some_and(|which| which.takes(m))
        });
        Ok(Pair {
            figure,
            measured: partners.cloned().collect(),
        })
    };
    beside.iter().map(pair).collect()
}

/// The titles of the papers that the figures are from, each once.
pub fn papers<'a>(pairs: &'a [Pair], published: &'a Published) -> Vec<&'a str> {
    let mut titles = Vec::new();
    for pair in pairs {
        let title = published.title(pair.figure);
        if !titles.contains(&title) {
            titles.push(title);
        }
    }
    titles
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(kernel: &str, tasks: u32, value: f64) -> Measured {
        Measured {
            place: Place {
                board: "sam9263".into(),
                kernel: kernel.into(),
                mode: "process".into(),
                series: String::new(),
                axes: [("tasks".to_string(), tasks)].into(),
            },
            metric: "switch",
            unit: "us",
            value,
            low: value,
            high: value,
            seeds: vec![value],
        }
    }

    fn claim(bound: &str) -> Claim {
        let text = format!(
            "text = \"t\"\nsource = \"s\"\nof = {{ kernel = \"fcse\" }}\n\
             to = {{ kernel = \"plain\" }}\n{bound}\n"
        );
        toml::from_str(&text).unwrap()
    }

    fn figures() -> Vec<Measured> {
        vec![
            measured("plain", 2, 100.0),
            measured("plain", 4, 100.0),
            measured("fcse", 2, 30.0),
            measured("fcse", 4, 60.0),
        ]
    }

    #[test]
    fn the_worst_ratio_decides() {
        let verdict = claim("at_most = 0.5").judge(&figures());
        assert_eq!((verdict.holds, verdict.count), (Some(false), 2));
        let worst = verdict.worst.unwrap();
        assert_eq!((worst.value, &*worst.place), (0.6, "sam9263, tasks 4"));
        assert_eq!(claim("at_most = 0.6").judge(&figures()).holds, Some(true));
        assert_eq!(claim("at_least = 0.3").judge(&figures()).holds, Some(true));
        let least = claim("at_least = 0.4").judge(&figures());
        assert_eq!(
            (least.holds, least.worst.unwrap().value),
            (Some(false), 0.3)
        );
    }

    #[test]
    fn a_claim_about_no_kernel_compares_each_with_itself() {
        let text = "text = \"t\"\nsource = \"s\"\nof = { at = { tasks = 4 } }\n\
                    to = { at = { tasks = 2 } }\nat_least = 1.0\n";
        let claim: Claim = toml::from_str(text).unwrap();
        let verdict = claim.judge(&figures());
        assert_eq!((verdict.holds, verdict.count), (Some(true), 2));
    }

    #[test]
    fn a_difference_is_in_the_figures_unit() {
        let verdict = claim("less_by = 50.0").judge(&figures());
        assert_eq!((verdict.holds, verdict.count), (Some(false), 2));
        assert!(verdict.reason().starts_with("Difference in us 40.00"));
        assert_eq!(claim("less_by = 40.0").judge(&figures()).holds, Some(true));
    }

    #[test]
    fn axes_that_a_claim_names_on_both_sides_may_differ() {
        let mut across = claim("at_most = 1.0");
        across.of.at.insert("tasks".into(), 4);
        across.to.at.insert("tasks".into(), 2);
        let verdict = across.judge(&figures());
        assert_eq!((verdict.count, verdict.worst.unwrap().value), (1, 0.6));
    }

    #[test]
    fn a_mode_is_compared_with_itself_unless_the_claim_says_otherwise() {
        let mut threads = figures();
        threads.iter_mut().for_each(|m| {
            m.place.mode = "thread".into();
            (m.value, m.low, m.high) = (10.0, 10.0, 10.0);
        });
        let all = [figures(), threads].concat();
        let verdict = claim("at_most = 1.0").judge(&all);
        assert_eq!((verdict.holds, verdict.count), (Some(true), 4));
        let mut across = claim("at_most = 1.0");
        across.of.mode = Some("process".into());
        across.to.mode = Some("thread".into());
        assert_eq!(across.judge(&all).worst.unwrap().value, 6.0);
    }

    #[test]
    fn intervals_that_reach_over_the_bound_leave_it_open() {
        let mut figures = figures();
        figures[3].low = 40.0;
        figures[3].high = 70.0;
        let verdict = claim("at_most = 0.5").judge(&figures);
        assert_eq!((verdict.holds, verdict.word()), (None, "open"));
        assert!(
            verdict
                .reason()
                .contains("0.60 (0.40 to 0.70), at most 0.5")
        );
        assert_eq!(claim("at_most = 0.7").judge(&figures).holds, Some(true));
        assert_eq!(claim("at_most = 0.35").judge(&figures).holds, Some(false));
    }

    #[test]
    fn four_seeds_or_more_decide_by_ranks_and_not_by_their_range() {
        let with_seeds = |of: &[f64], to: &[f64]| {
            let mut two = vec![figures()[0].clone(), figures()[1].clone()];
            two[1].place = two[0].place.clone();
            let kernels = ["fcse", "plain"];
            for ((m, seeds), kernel) in two.iter_mut().zip([of, to]).zip(kernels) {
                m.place.kernel = kernel.into();
                m.seeds = seeds.to_vec();
                m.low = seeds.iter().copied().fold(f64::MAX, f64::min);
                m.high = seeds.iter().copied().fold(0.0, f64::max);
            }
            two
        };
        let (low, high) = (
            [35.0, 35.5, 36.0, 36.5, 46.0],
            [41.0, 41.5, 42.0, 42.5, 43.0],
        );
        let verdict = |text: &str, of: &[f64], to: &[f64]| {
            let verdict = claim(text).judge(&with_seeds(of, to));
            (verdict.holds, verdict.reason())
        };
        let (holds, reason) = verdict("at_most = 1.0", &low[..4], &high);
        assert_eq!(holds, Some(true), "{reason}");
        assert!(
            reason.contains("by ranks over 4 seeds, p = 0.02"),
            "{reason}"
        );
        // One of five lies above all others: one in twenty would by chance.
        assert_eq!(verdict("at_most = 1.0", &low, &high).0, None);
        assert_eq!(verdict("at_least = 1.0", &low[..4], &high).0, Some(false));
        assert_eq!(verdict("less_by = 4.0", &low[..4], &high).0, Some(true));
        assert_eq!(verdict("less_by = 9.0", &low[..4], &high).0, Some(false));
        let (holds, reason) = verdict("at_most = 1.0", &low[..3], &high);
        assert_eq!(holds, Some(true));
        assert!(reason.contains("by the range of 3 seeds"), "{reason}");
    }

    #[test]
    fn absurd_bounds_are_refused() {
        for bound in ["at_most = -1.0", "at_least = 0.0", "less_by = nan"] {
            let error = claim(bound).check(&Known::default()).unwrap_err();
            assert!(error.to_string().contains("above 0"), "{bound}: {error}");
        }
    }

    #[test]
    fn without_figures_there_is_no_verdict() {
        let verdict = claim("at_most = 0.5").judge(&figures()[..2]);
        assert_eq!((verdict.holds, verdict.count), (None, 0));
    }

    #[test]
    fn a_claim_names_what_the_experiment_measures_and_one_bound() {
        let known = Known::of(&crate::experiment::Experiment::load("cyclictest").unwrap());
        let checked = |text: &str| {
            let error = claim(text).check(&known).unwrap_err();
            format!("{error:#}")
        };
        assert!(checked("at_most = 1.0").contains("kernel \"fcse\" is not in"));
        assert!(checked("").contains("is wanted"));
        assert!(checked("at_most = 1.0\nat_least = 0.1").contains("is wanted"));
    }

    #[test]
    fn a_published_figure_that_does_not_exist_is_named() {
        let beside = Beside {
            published: "fcse2009.lat_ctx.plain.lo".into(),
            measured: None,
        };
        let published = Published::load().unwrap();
        let error = pairs(&[beside], &[], &published).err().unwrap().to_string();
        assert!(error.contains("fcse2009.lat_ctx.plain.low"), "{error}");
    }
}
