// SPDX-License-Identifier: MIT OR Apache-2.0
//! Removal of duplicates.

/// Removes duplicates and keeps first occurrences in order. Compares each item with all earlier items, so the list
/// should be short.
pub fn distinct<T: PartialEq>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut once = Vec::new();
    for one in all {
        if !once.contains(&one) {
            once.push(one);
        }
    }
    once
}

#[cfg(test)]
mod tests {
    use super::distinct;

    #[test]
    fn each_is_there_once_where_it_came_first() {
        assert_eq!(distinct(["b", "a", "b", "c", "a"]), ["b", "a", "c"]);
        assert!(distinct::<u32>([]).is_empty());
    }
}
