// SPDX-License-Identifier: MIT OR Apache-2.0
//! "Did you mean": the nearest valid name to one that the user typed.

use std::cmp::Reverse;

/// `; did you mean "x"?` for the nearest of `names`. When none is near, the list of them.
pub fn did_you_mean<S: AsRef<str>>(typed: &str, names: &[S]) -> String {
    match (nearest(typed, names), names) {
        (Some(name), _) => format!("; did you mean \"{name}\"?"),
        (None, []) => String::new(),
        (None, [only]) => format!("; there is only \"{}\"", only.as_ref()),
        (None, names) => {
            let all: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
            format!("; there are: {}", all.join(", "))
        }
    }
}

/// The nearest of `names`, if one is near. A name that begins as typed is nearer than any other; of two with as many
/// slips the one with the longer common beginning is. At most two slips are forgiven, or one for three letters.
pub fn nearest<'a, S: AsRef<str>>(typed: &str, names: &'a [S]) -> Option<&'a str> {
    let of = |name: &'a S| {
        let name = name.as_ref();
        let begins = typed.len() >= BEGINNING && name.starts_with(typed);
        let letters = typed.chars().zip(name.chars());
        let common = letters.take_while(|(a, b)| a == b).count();
        let slips = strsim::osa_distance(typed, name);
        (!begins, slips, Reverse(common), name)
    };
    let near = names.iter().map(of).min();
    let near = near.filter(|(other, slips, _, name)| {
        let letters = name.len().max(typed.len());
        !other || *slips <= 2.max(letters / 3)
    });
    near.map(|(_, _, _, name)| name)
}

/// So many letters are the beginning of a name, and not a slip.
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
        // Two slips from the first, three letters short of the second.
        let cores = ["arm920t", "arm926ejs"];
        assert_eq!(nearest("arm926", &cores), Some("arm926ejs"));
    }
}
