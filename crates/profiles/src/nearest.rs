//! The nearest known name to an unknown one.

/// The nearest of the `known` names, if one is near: a few letters away, or a prefix of the other.
/// None is near to an empty one.
pub fn nearest(name: &str, known: &[&str]) -> Option<String> {
    let known = if name.is_empty() { &[] } else { known };
    known
        .iter()
        .map(|k| (strsim::damerau_levenshtein(k, name), k.starts_with(name) || name.starts_with(*k), *k))
        .filter(|(distance, begins, k)| *begins || *distance <= k.len().max(name.len()) / 2)
        .min_by_key(|(distance, begins, _)| (!*begins, *distance))
        .map(|(_, _, k)| k.to_string())
}
