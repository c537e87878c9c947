// SPDX-License-Identifier: MIT OR Apache-2.0
//! Suggests the valid name that is nearest to a name that the user typed.

use std::cmp::Reverse;

/// Largest number of names in a message.
const LISTED: usize = 20;

/// Returns `; did you mean "x"?` for the nearest of `names`. If no name is near, the text lists the names. Of many names,
/// it lists the nearest ones.
pub fn did_you_mean<S: AsRef<str>>(typed: &str, names: &[S]) -> String {
    match (nearest(typed, names), names) {
        (Some(name), _) => format!("; did you mean \"{name}\"?"),
        (None, []) => String::new(),
        (None, [only]) => format!("; there is only \"{}\"", only.as_ref()),
        (None, names) => {
            let mut all: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
            let count = match all.len() {
                0..=LISTED => "; there are".to_owned(),
                many => format!("; there are {many}, the nearest"),
            };
            if all.len() > LISTED {
                all.sort_by_key(|name| strsim::osa_distance(typed, name));
                all.truncate(LISTED);
            }
            format!("{count}: {}", all.join(", "))
        }
    }
}

/// Returns the nearest of `names`, if one is near. A name that begins with `typed` is nearer than any other. Of two
/// names with equally many slips, the one with the longer common beginning is nearer. A name is near if it has at most
/// two slips, or at most one slip for every three letters.
pub fn nearest<'a, S: AsRef<str>>(typed: &str, names: &'a [S]) -> Option<&'a str> {
    let rank = |name: &'a S| {
        let name = name.as_ref();
        let begins = typed.len() >= BEGINNING && name.starts_with(typed);
        let letters = typed.chars().zip(name.chars());
        let common = letters.take_while(|(a, b)| a == b).count();
        let slips = strsim::osa_distance(typed, name);
        (!begins, slips, Reverse(common), name)
    };
    let near = names.iter().map(rank).min();
    let near = near.filter(|(other, slips, _, name)| {
        let letters = name.len().max(typed.len());
        !other || *slips <= 2.max(letters / 3)
    });
    near.map(|(_, _, _, name)| name)
}

/// Minimum number of letters that count as the beginning of a name.
const BEGINNING: usize = 3;

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
        assert_eq!(
            did_you_mean("zzzzzzzzz", &names[..1]),
            "; there is only \"sam9263\""
        );
        assert_eq!(did_you_mean("x", &[] as &[&str]), "");
        let many: Vec<String> = (0..60).map(|n| format!("kernel-{n:02}")).collect();
        let text = did_you_mean("zzzzzzzzz", &many);
        assert!(
            text.starts_with("; there are 60, the nearest: kernel-00, "),
            "{text}"
        );
        assert_eq!(text.matches(", ").count(), LISTED);
        // Two slips from the first name, three letters missing from the second.
        let cores = ["arm920t", "arm926ejs"];
        assert_eq!(nearest("arm926", &cores), Some("arm926ejs"));
    }
}
