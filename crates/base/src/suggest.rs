// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is wrong with names that the user typed: the nearest valid one, and what is there twice.

/// `; did you mean "x"?` for the nearest of `names`, or the list of them when none is near.
pub fn did_you_mean<S: AsRef<str>>(typed: &str, names: &[S]) -> String {
    match nearest(typed, names) {
        Some(name) => format!("; did you mean \"{name}\"?"),
        None if names.is_empty() => String::new(),
        None => {
            let all: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
            format!("; there are: {}", all.join(", "))
        }
    }
}

/// The nearest of `names`, if one is near.
pub fn nearest<'a, S: AsRef<str>>(typed: &str, names: &'a [S]) -> Option<&'a str> {
    let near = names
        .iter()
        .map(|name| (distance(typed, name.as_ref()), name.as_ref()))
        .min();
    let near = near.filter(|(d, name)| *d <= 2.max(name.len() / 3));
    near.map(|(_, name)| name)
}

/// The first that is there twice.
pub fn repeated<T: PartialEq>(all: impl Iterator<Item = T>) -> Option<T> {
    let mut seen = Vec::new();
    for one in all {
        if seen.contains(&one) {
            return Some(one);
        }
        seen.push(one);
    }
    None
}

/// Edits (insert, delete, replace one character) from `a` to `b`.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_pen_finds_the_name_and_nonsense_gets_the_list() {
        let names = ["sam9263", "s3c24a0"];
        assert_eq!(
            did_you_mean("sam9236", &names),
            "; did you mean \"sam9263\"?"
        );
        assert_eq!(
            did_you_mean("zzzzzzzzz", &names),
            "; there are: sam9263, s3c24a0"
        );
        assert_eq!(did_you_mean("x", &[] as &[&str]), "");
    }

    #[test]
    fn the_distance_counts_edits() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("same", "same"), 0);
    }
}
