//! Glob patterns as `KEYS`, `SCAN MATCH`, `CONFIG GET` and `PSUBSCRIBE` mean them, with every edge of Redis's
//! matcher kept: an unclosed class, a trailing backslash, a reversed range.
//!
//! It must never recurse and never backtrack further than to the last `*`: a pattern comes from the network, and
//! nested stars would otherwise cost exponential time or the stack.

/// True if `text` matches `pattern`. With `ignore_case`, ASCII letters compare without case.
///
/// Like Redis's matcher, an empty text matches only the empty pattern: callers that treat a lone `*` as
/// "everything" test for it before they call.
///
/// The time is at most proportional to `pattern.len() * text.len()`: after a mismatch only the last `*` takes one
/// more byte. That is enough, because whatever an earlier star could take, the last one can take as well.
pub fn glob_match(pattern: &[u8], text: &[u8], ignore_case: bool) -> bool {
    let mut p = 0;
    let mut t = 0;
    // Where the pattern goes on after the last star, and where in the text that was last tried.
    let mut star: Option<(usize, usize)> = None;
    loop {
        if p == pattern.len() && t == text.len() {
            return true;
        }
        if t == text.len() {
            // Every element left in the pattern needs a byte, and starting later leaves even fewer.
            return false;
        }
        if pattern.get(p) == Some(&b'*') {
            while pattern.get(p) == Some(&b'*') {
                p += 1;
            }
            if p == pattern.len() {
                return true;
            }
            star = Some((p, t));
            continue;
        }
        let next = pattern
            .get(p)
            .and_then(|_| match_one(pattern, p, text[t], ignore_case));
        match next {
            Some(after) => {
                p = after;
                t += 1;
                if t == text.len() {
                    while pattern.get(p) == Some(&b'*') {
                        p += 1;
                    }
                }
            }
            None => match star {
                Some((after_star, tried)) => {
                    star = Some((after_star, tried + 1));
                    p = after_star;
                    t = tried + 1;
                }
                None => return false,
            },
        }
    }
}

/// Matches the one pattern element at `p` (not a star) against `byte`; the position after the element if it fits.
fn match_one(pattern: &[u8], p: usize, byte: u8, ignore_case: bool) -> Option<usize> {
    match pattern[p] {
        b'?' => Some(p + 1),
        b'[' => {
            let (fits, after) = match_class(pattern, p + 1, byte, ignore_case);
            fits.then_some(after)
        }
        b'\\' if p + 1 < pattern.len() => same(pattern[p + 1], byte, ignore_case).then_some(p + 2),
        literal => same(literal, byte, ignore_case).then_some(p + 1),
    }
}

/// Matches the class whose first byte after `[` is at `p`. Returns whether it fits, and the position after it.
/// A class that never closes ends with the pattern. An escaped byte compares with case even if `ignore_case`.
fn match_class(pattern: &[u8], mut p: usize, byte: u8, ignore_case: bool) -> (bool, usize) {
    let negated = pattern.get(p) == Some(&b'^');
    if negated {
        p += 1;
    }
    let mut fits = false;
    loop {
        let left = pattern.len() - p;
        match pattern.get(p) {
            None => break,
            Some(b'\\') if left >= 2 => {
                p += 1;
                fits |= pattern[p] == byte;
            }
            Some(b']') => {
                p += 1;
                break;
            }
            Some(&first) if left >= 3 && pattern[p + 1] == b'-' => {
                fits |= in_range(first, pattern[p + 2], byte, ignore_case);
                p += 2;
            }
            Some(&literal) => fits |= same(literal, byte, ignore_case),
        }
        p += 1;
    }
    (fits != negated, p)
}

/// Ends are swapped first and folded after, in this order, as Redis does it.
fn in_range(first: u8, last: u8, byte: u8, ignore_case: bool) -> bool {
    let (low, high) = (first.min(last), first.max(last));
    if ignore_case {
        (low.to_ascii_lowercase()..=high.to_ascii_lowercase()).contains(&byte.to_ascii_lowercase())
    } else {
        (low..=high).contains(&byte)
    }
}

fn same(a: u8, b: u8, ignore_case: bool) -> bool {
    if ignore_case {
        a.eq_ignore_ascii_case(&b)
    } else {
        a == b
    }
}

#[cfg(test)]
mod tests {
    use super::glob_match;
    use proptest::prelude::*;

    fn is(pattern: &str, text: &str) -> bool {
        glob_match(pattern.as_bytes(), text.as_bytes(), false)
    }

    #[test]
    fn plain_patterns() {
        assert!(is("", "") && is("a", "a") && is("h?llo", "hello") && is("h*llo", "heeello"));
        assert!(is("*", "x") && is("**", "x") && is("a*", "a") && is("*a", "a") && is("a**", "a"));
        assert!(!is("a", "") && !is("", "a") && !is("a?", "a") && !is("?", ""));
        assert!(is("*foo*bar", "xfooybazbar") && !is("*foo*bar", "xfooybazba"));
        // Redis's matcher does not look at the pattern when the text is empty.
        assert!(!is("*", ""));
    }

    #[test]
    fn classes() {
        assert!(is("h[ae]llo", "hello") && !is("h[ae]llo", "hillo") && is("h[^e]llo", "hallo"));
        assert!(is("h[a-c]llo", "hbllo") && is("h[c-a]llo", "hbllo") && !is("h[a-c]llo", "hdllo"));
        assert!(is("[\\]]", "]") && is("[\\-a]", "-") && is("\\*", "*") && !is("\\*", "a"));
        // Unclosed classes end with the pattern; a lone backslash at the end stands for itself.
        assert!(
            is("[a", "a") && !is("[", "a") && is("[^", "a") && is("a\\", "a\\") && is("[\\", "\\")
        );
        // `]` as the end of a range does not close the class.
        assert!(is("[A-]", "B") && !is("[a-]", "-"));
    }

    #[test]
    fn letter_case() {
        let no_case = |p: &str, t: &str| glob_match(p.as_bytes(), t.as_bytes(), true);
        assert!(no_case("MAX*", "maxmemory") && no_case("[A-C]x", "bX") && !no_case("[\\A]", "a"));
    }

    #[test]
    fn nested_stars_stay_polynomial() {
        let pattern = "a*".repeat(2_000) + "b";
        let text = "a".repeat(10_000);
        assert!(!is(&pattern, &text));
    }

    /// The definition, by plain recursion; only for small inputs.
    fn slow(pattern: &[u8], text: &[u8], ignore_case: bool) -> bool {
        match pattern.first() {
            None => text.is_empty(),
            Some(b'*') => (0..=text.len()).any(|n| slow(&pattern[1..], &text[n..], ignore_case)),
            Some(_) => {
                !text.is_empty()
                    && super::match_one(pattern, 0, text[0], ignore_case)
                        .is_some_and(|after| slow(&pattern[after..], &text[1..], ignore_case))
            }
        }
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition(p in "[ab*?\\[\\]^\\\\-]{0,8}", t in "[ab\\]^-]{0,8}", nocase: bool) {
            let expected = slow(p.as_bytes(), t.as_bytes(), nocase);
            let expected = if t.is_empty() { p.is_empty() } else { expected };
            prop_assert_eq!(glob_match(p.as_bytes(), t.as_bytes(), nocase), expected);
        }

        #[test]
        fn never_panics(p: Vec<u8>, t: Vec<u8>, nocase: bool) {
            glob_match(&p, &t, nocase);
        }
    }
}
