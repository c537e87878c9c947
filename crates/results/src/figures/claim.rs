// SPDX-License-Identifier: MIT OR Apache-2.0
//! Claims: what the papers say, or a design promises, of the order and ratio of two figures. Each
//! is true or false of the figures that were measured; none enters a measurement.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};

use crate::figures::figure::Measured;
use crate::figures::published::{Figure, Published};
use crate::figures::selector::{Selectable, Selector};
use crate::figures::sides;
use crate::figures::statistics::{self, FEWEST, Ranks, SIGNIFICANT};
use crate::runs::point::Place;
use base::distinct::distinct;
use base::suggest::did_you_mean;

/// `[[claim]]`: bounds the ratio or the difference of two figures on one board, at equal axes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The claim in words.
    pub text: String,
    /// Who makes the claim: a paper and the place in it, or a design.
    pub source: String,
    /// Selects the figures that the claim is about.
    pub of: Selector,
    /// Selects the figures that `of` is compared with.
    pub to: Selector,
    /// Largest ratio `of / to` that the claim allows.
    pub at_most: Option<f64>,
    /// Smallest ratio `of / to` that the claim allows.
    pub at_least: Option<f64>,
    /// Smallest difference `to - of` that the claim allows, in the figures' unit.
    pub less_by: Option<f64>,
    /// Whether each run is compared with the run of equal seed and layout: both kernels are one image
    /// with different options.
    #[serde(default)]
    pub paired: bool,
    /// Why the claim need not hold here, by counters; a claim with a reason does not count as a "no".
    pub explained: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref)] // serde wants it so
fn is_zero(n: &usize) -> bool {
    *n == 0
}

/// Result of a claim.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// The claim in words.
    pub text: String,
    /// Who makes the claim.
    pub source: String,
    /// Quantity that the bound applies to: "Ratio" or "Difference in us".
    pub quantity: String,
    /// The bound in words: "at most 0.5".
    pub bound: String,
    /// Whether the claim holds; `None` when there are no figures, or when ranks or intervals do not decide.
    pub holds: Option<bool>,
    /// The comparison nearest to the bound, or furthest beyond it.
    pub worst: Option<Against>,
    /// Number of comparisons that were judged.
    pub count: usize,
    /// Number of comparisons left out: a minimum or maximum beside one of other runs or of more samples.
    #[serde(skip_serializing_if = "is_zero")]
    pub uneven: usize,
    /// Why the claim need not hold here.
    pub explained: Option<String>,
    /// Verdict on the recorded figures, when nothing was measured here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorded: Option<Box<Verdict>>,
}

/// Ratio or difference of two measured figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Against {
    /// Ratio `of / to`, or difference `to - of` in the figures' unit; of pairs the median.
    pub value: f64,
    /// Lowest value that the intervals of both figures allow; of pairs the lower end of the median's
    /// interval.
    pub low: f64,
    /// Highest value that the intervals of both figures allow; of pairs the upper end of the median's
    /// interval.
    pub high: f64,
    /// Rank test of the seeds' figures against the bound; `None` with fewer than four seeds, and of pairs.
    pub ranks: Option<Ranks>,
    /// Seeds of the figure that has fewer; of pairs the number of pairs.
    pub seeds: usize,
    /// Whether each run was compared with the run of equal seed and layout.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub paired: bool,
    /// Board and axes, in words.
    pub place: String,
}

impl Claim {
    /// Whether it can be judged at all.
    pub fn check(&self, known: &Selectable) -> Result<()> {
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

    fn tells(&self, what: fn(&Selector) -> &Option<String>) -> bool {
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
        let (all, uneven, unit) = self.looked_at(measured);
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
        // What fails before what is open before what holds.
        let worst = all
            .into_iter()
            .zip(each)
            .max_by(|(a, a_holds), (b, b_holds)| {
                let order = |holds: &Option<bool>| {
                    [Some(true), None, Some(false)]
                        .iter()
                        .position(|o| o == holds)
                };
                let by_verdict = order(a_holds).cmp(&order(b_holds));
                by_verdict.then((sign * a.value).total_cmp(&(sign * b.value)))
            });
        let worst = worst.map(|(worst, _)| worst);
        Verdict {
            text: self.text.clone(),
            source: self.source.clone(),
            quantity,
            bound: format!("{word} {bound}"),
            holds,
            worst,
            count,
            uneven,
            explained: self.explained.clone(),
            recorded: None,
        }
    }

    /// Each figure against its partner; how many have an uneven one; their unit.
    fn looked_at(&self, measured: &[Measured]) -> (Vec<Against>, usize, &'static str) {
        let mut all = Vec::new();
        let mut uneven = 0;
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
                if sides::is_extreme(of.metric) && !sides::even(of, to) {
                    uneven += 1;
                    continue;
                }
                all.extend(self.against(of, to));
            }
        }
        (all, uneven, unit)
    }

    /// One figure against the other; `None` when there is no ratio.
    fn against(&self, of: &Measured, to: &Measured) -> Option<Against> {
        let pairs = if self.paired {
            pairs_of(of, to)
        } else {
            Vec::new()
        };
        if pairs.len() > 1 {
            return self.in_pairs(of, to, &pairs);
        }
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
            paired: false,
            place,
        })
    }

    /// The median of what each run is against its partner, with the median's interval.
    fn in_pairs(&self, of: &Measured, to: &Measured, pairs: &[(f64, f64)]) -> Option<Against> {
        let pairs = pairs.iter();
        let each: Vec<f64> = match self.less_by {
            Some(_) => pairs.map(|(of, to)| to - of).collect(),
            None if to.low > 0.0 => pairs.map(|(of, to)| of / to).collect(),
            None => return None,
        };
        let all = statistics::summarise(&each)?;
        Some(Against {
            value: all.median,
            low: all.low,
            high: all.high,
            ranks: None,
            seeds: all.count,
            paired: true,
            place: of.place.with_axes(&of.place.board),
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

/// What runs of the same seed and layout gave.
fn pairs_of(of: &Measured, to: &Measured) -> Vec<(f64, f64)> {
    let partner = |repetition| to.repetitions.iter().position(|other| other == repetition);
    let each = of.repetitions.iter().zip(&of.seeds);
    each.filter_map(|(repetition, x)| Some((*x, *to.seeds.get(partner(repetition)?)?)))
        .collect()
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
                    (Some(ranks), n) => format!("by ranks over {n} runs, {}", ranks.shown()),
                    (None, n) if r.paired => format!("by {n} pairs of runs"),
                    (None, 0) => "as recorded".to_string(),
                    (None, 1) => "by one run's interval".to_string(),
                    (None, n) => format!("by the range of {n} runs"),
                };
                format!(
                    "{} {:.2} ({:.2} to {:.2}), {}, {by}, at {}, the worst of {}",
                    self.quantity, r.value, r.low, r.high, self.bound, r.place, self.count
                )
            }
            None => match &self.recorded {
                Some(v) => {
                    return format!(
                        "Not measured here; the record says {}: {}",
                        v.word(),
                        v.reason()
                    );
                }
                None if self.uneven > 0 => {
                    "Its extremes are of other runs, or of more samples, than those beside them"
                        .to_string()
                }
                None => "Nothing was measured that could decide it".to_string(),
            },
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
pub struct PublishedComparison {
    /// Its id in `published/published.toml`.
    pub published: String,
    /// None: it stands alone.
    pub measured: Option<Selector>,
}

/// A published figure with what was measured.
pub struct Pair<'a> {
    /// The published figure.
    pub figure: &'a Figure,
    /// Measured figures that stand beside it; may be empty.
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
    beside: &[PublishedComparison],
    measured: &[Measured],
    published: &'a Published,
) -> Result<Vec<Pair<'a>>> {
    let pair = |b: &PublishedComparison| {
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
    distinct(pairs.iter().map(|pair| published.title(pair.figure)))
}

#[cfg(test)]
#[path = "claim_tests.rs"]
mod tests;
