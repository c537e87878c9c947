// SPDX-License-Identifier: MIT OR Apache-2.0
//! Warnings about a measurement. Each says what to do.

/// Warnings in order of first occurrence, each with its places. Warnings with equal texts are merged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Warnings(Vec<(String, Vec<String>)>);

impl Warnings {
    /// Adds a warning about one place.
    pub fn at(&mut self, place: String, text: impl Into<String>) {
        let text = text.into();
        match self.0.iter_mut().find(|(known, _)| *known == text) {
            Some((_, places)) => places.push(place),
            None => self.0.push((text, vec![place])),
        }
    }

    /// Adds a warning about the whole measurement.
    pub fn of_all(&mut self, text: String) {
        self.0.push((text, Vec::new()));
    }

    /// Returns these warnings with the others merged in.
    pub fn and(mut self, others: Warnings) -> Warnings {
        for (text, places) in others.0 {
            match self.0.iter_mut().find(|(known, _)| *known == text) {
                Some((_, known)) => known.extend(places),
                None => self.0.push((text, places)),
            }
        }
        self
    }

    /// Returns the lines to print: "PLACE and 2 more: TEXT".
    pub fn texts(&self) -> Vec<String> {
        let line = |(text, places): &(String, Vec<String>)| match places.as_slice() {
            [] => text.clone(),
            [one] => format!("{one}: {text}"),
            [first, more @ ..] => format!("{first} and {} more: {text}", more.len()),
        };
        self.0.iter().map(line).collect()
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
