// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is to be said about a measurement itself, each with what to do.

/// Warnings in the order in which they first came; the same of several places is one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Warnings(Vec<(String, Vec<String>)>);

impl Warnings {
    /// Says `what` of a place.
    pub fn at(&mut self, place: String, what: impl Into<String>) {
        let what = what.into();
        match self.0.iter_mut().find(|(said, _)| *said == what) {
            Some((_, places)) => places.push(place),
            None => self.0.push((what, vec![place])),
        }
    }

    /// Says `what` of everything.
    pub fn of_all(&mut self, what: String) {
        self.0.push((what, Vec::new()));
    }

    /// These, and others behind them.
    pub fn and(mut self, others: Warnings) -> Warnings {
        for (what, places) in others.0 {
            match self.0.iter_mut().find(|(said, _)| *said == what) {
                Some((_, known)) => known.extend(places),
                None => self.0.push((what, places)),
            }
        }
        self
    }

    /// "PLACE and 2 more: WHAT".
    pub fn texts(&self) -> Vec<String> {
        let text = |(what, places): &(String, Vec<String>)| match places.as_slice() {
            [] => what.clone(),
            [one] => format!("{one}: {what}"),
            [first, more @ ..] => format!("{first} and {} more: {what}", more.len()),
        };
        self.0.iter().map(text).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_of_several_places_is_one_warning() {
        let mut first = Warnings::default();
        first.at("here".into(), "too few: measure longer");
        first.of_all("two seeds: say --seeds 4".into());
        let mut second = Warnings::default();
        second.at("there".into(), "too few: measure longer");
        second.at("there".into(), "wrong clock");
        assert_eq!(
            first.and(second).texts(),
            [
                "here and 1 more: too few: measure longer",
                "two seeds: say --seeds 4",
                "there: wrong clock"
            ]
        );
    }
}
