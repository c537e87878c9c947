// SPDX-License-Identifier: MIT OR Apache-2.0
//! Claims of papers and designs about the order or the ratio of two figures. The measured figures decide whether a
//! claim holds. Claims never change measurements.

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

/// `[[claim]]`: a bound on the ratio or the difference between two figures. Both figures come from one board and have
/// equal axes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The claim in words.
    pub text: String,
    /// Source of the claim: a paper and the place in it, or a design.
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
    /// Whether each run is compared with the run that has an equal seed and layout. Use this key when both kernels are
    /// one image that runs with different options.
    #[serde(default)]
    pub paired: bool,
    /// Reason, based on counters, why the claim need not hold here. A claim with a reason does not count as failed.
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
    /// Source of the claim.
    pub source: String,
    /// Quantity that the bound applies to: "Ratio" or "Difference in us".
    pub quantity: String,
    /// The bound in words: "at most 0.5".
    pub bound: String,
    /// Whether the claim holds. `None` when there are no figures, or when neither ranks nor intervals decide.
    pub holds: Option<bool>,
    /// The comparison that is nearest to the bound. If comparisons violate the bound, this is the one furthest beyond
    /// it.
    pub worst: Option<Against>,
    /// Number of comparisons that were judged.
    pub count: usize,
    /// Number of comparisons left out. A comparison is left out if its two minima or maxima come from different runs or
    /// from different numbers of samples.
    #[serde(skip_serializing_if = "is_zero")]
    pub uneven: usize,
    /// Reason why the claim need not hold here.
    pub explained: Option<String>,
    /// Verdict on the recorded figures, when nothing was measured here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorded: Option<Box<Verdict>>,
}

/// Ratio or difference between two measured figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Against {
    /// Ratio `of / to`, or difference `to - of` in the figures' unit. For pairs, this is the median over all pairs.
    pub value: f64,
    /// Lowest value that the intervals of both figures allow. For pairs, this is the lower end of the median's
    /// interval.
    pub low: f64,
    /// Highest value that the intervals of both figures allow. For pairs, this is the upper end of the median's
    /// interval.
    pub high: f64,
    /// Rank test of the seeds' figures against the bound. `None` for pairs, and with fewer than four seeds.
    pub ranks: Option<Ranks>,
    /// Number of seeds behind each figure, or the smaller number if they differ. For pairs, this is the number of
    /// pairs.
    pub seeds: usize,
    /// Whether each run was compared with the run that has an equal seed and layout.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub paired: bool,
    /// Board and axes, in words.
    pub place: String,
}

impl Claim {
    /// Refuses a claim with a wrong bound, or with a selector that has unknown names. No figures can decide such a
    /// claim.
    pub fn check(&self, known: &Selectable) -> Result<()> {
        let bounds = [self.at_most, self.at_least, self.less_by];
        let name = || format!("claim \"{}\"", self.text);
        if bounds.iter().flatten().count() != 1 {
            bail!(
                "{}: give exactly one of at_most, at_least and less_by",
                name()
            );
        }
        let sensible = |bound: &f64| bound.is_finite() && *bound > 0.0;
        if !bounds.iter().flatten().all(sensible) {
            bail!("{}: the bound must be a number above 0", name());
        }
        self.of.check(known).with_context(name)?;
        self.to.check(known).with_context(name)
    }

    /// Returns whether one of the selectors names the key.
    fn names(&self, key: fn(&Selector) -> &Option<String>) -> bool {
        key(&self.of).is_some() || key(&self.to).is_some()
    }

    /// Returns the axes that must be equal on both sides: all axes except those that both selectors name.
    fn common_axes(&self, place: &Place) -> BTreeMap<String, u32> {
        let named = |name: &String| self.of.at.contains_key(name) && self.to.at.contains_key(name);
        let mut axes = place.axes.clone();
        axes.retain(|name, _| !named(name));
        axes
    }

    /// Judges the claim against the measured figures.
    pub fn judge(&self, measured: &[Measured]) -> Verdict {
        let (all, uneven, unit) = self.comparisons(measured);
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
        // Comparisons that fail are worst, then open comparisons, then comparisons that hold.
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

    /// Returns all comparisons, the number of comparisons left out, and the figures' unit. Uneven comparisons are left
    /// out.
    fn comparisons(&self, measured: &[Measured]) -> (Vec<Against>, usize, &'static str) {
        let mut all = Vec::new();
        let mut uneven = 0;
        let mut unit = "";
        for of in measured.iter().filter(|m| self.of.takes(m)) {
            // Both figures must be equal in the keys that the claim does not name.
            let same_place = |m: &&Measured| {
                let (m_at, of_at) = (&m.place, &of.place);
                m_at.board == of_at.board
                    && self.common_axes(m_at) == self.common_axes(of_at)
                    && (self.names(|s| &s.kernel) || m_at.kernel == of_at.kernel)
                    && (self.names(|s| &s.mode) || m_at.mode == of_at.mode)
                    && (self.names(|s| &s.series) || m_at.series == of_at.series)
                    && (self.names(|s| &s.metric) || m.metric == of.metric)
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

    /// Compares two figures. Returns `None` when they have no ratio.
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
        // The claim's bound shifts or scales the values of `to`. The rank test then compares `of` with these values.
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

    /// Compares pair by pair. The result is the median over the pairs, with its interval.
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

    /// Decides by a rank test if there are enough seeds. Otherwise, decides by intervals.
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

/// Returns pairs of values from runs with equal seed and layout.
fn pairs_of(of: &Measured, to: &Measured) -> Vec<(f64, f64)> {
    let partner = |repetition| to.repetitions.iter().position(|other| other == repetition);
    let each = of.repetitions.iter().zip(&of.seeds);
    each.filter_map(|(repetition, x)| Some((*x, *to.seeds.get(partner(repetition)?)?)))
        .collect()
}

impl Verdict {
    /// Returns "holds", "FAILS" or "open".
    pub fn word(&self) -> &'static str {
        match self.holds {
            Some(true) => "holds",
            Some(false) => "FAILS",
            None => "open",
        }
    }

    /// Returns the reason for the verdict, as a sentence without a full stop.
    pub fn reason(&self) -> String {
        let reason = match &self.worst {
            Some(r) => {
                let by = match (r.ranks, r.seeds) {
                    (Some(ranks), n) => format!("by ranks over {n} runs, {}", ranks.shown()),
                    (None, n) if r.paired => format!("by {n} pairs of runs"),
                    (None, 0) => "by recorded figures".to_string(),
                    (None, 1) => "by one run's interval".to_string(),
                    (None, n) => format!("by the range of {n} runs"),
                };
                format!(
                    "{} {:.2} ({:.2} to {:.2}), {}, {by}, at {}, the worst case of {}",
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
                    "The minima or maxima come from different runs or numbers of samples"
                        .to_string()
                }
                None => "No measured figure decides it".to_string(),
            },
        };
        match &self.explained {
            Some(why) if self.holds != Some(true) => format!("{reason}. {why}"),
            _ => reason,
        }
    }
}

/// `[[beside]]`: a published figure, and the measured figures that it is compared with.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedComparison {
    /// Id of the figure in `published/published.toml`.
    pub published: String,
    /// Selects the measured figures. `None` when no experiment measures the published quantity.
    pub measured: Option<Selector>,
}

/// A published figure with the measured figures.
pub struct Pair<'a> {
    /// The published figure.
    pub figure: &'a Figure,
    /// Measured figures to compare with; may be empty.
    pub measured: Vec<Measured>,
}

impl Pair<'_> {
    /// Joins the texts of the measured figures with commas.
    pub fn each(&self, text: impl Fn(&Measured) -> Option<String>) -> String {
        let all: Vec<String> = self.measured.iter().filter_map(text).collect();
        all.join(", ")
    }
}

/// Pairs every published figure that the experiment names with the measured figures.
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
            let selector = b.measured.as_ref();
            selector.is_some_and(|selector| selector.takes(m))
        });
        Ok(Pair {
            figure,
            measured: partners.cloned().collect(),
        })
    };
    beside.iter().map(pair).collect()
}

/// Returns the titles of the figures' papers, without duplicates.
pub fn papers<'a>(pairs: &'a [Pair], published: &'a Published) -> Vec<&'a str> {
    distinct(pairs.iter().map(|pair| published.title(pair.figure)))
}

#[cfg(test)]
#[path = "claim_tests.rs"]
mod tests;
