//! The grammar files of the differential generator: one per command family, one line per command form, all options written out.
//!
//! ```text
//! # comment
//! 4 SET <key> <val> ~{ [NX|XX] [GET] [EX <ttl_s>|PX <ttl_ms>|KEEPTTL] }
//! 1 SET <key> <val> PX 5 ;; @sleep 30 ;; GET <key>
//! ```
//! A line is a weight and one or more steps (`;;` between them). `<name>` or `<name:argument>` is a generated value (`T<name>` one after a letter), `[a|b]` nothing or one of
//! them, `(a|b)` one of them, `{ a }*lo-hi` a repetition, `~{ a b c }` its parts in any order, `""` the empty string. The special characters
//! stand alone or touch what they enclose; a literal cannot contain them.

use crate::rng::Rng;
use crate::values::Pool;

/// Part of a form.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Node {
    Literal(Vec<u8>),
    /// Letters before it, and the kind of value.
    Generated(String, String),
    Optional(Vec<Vec<Node>>),
    Choice(Vec<Vec<Node>>),
    Repeat(Vec<Node>, usize, usize),
    Shuffle(Vec<Node>),
}

/// One line of a grammar file.
#[derive(Debug, Clone)]
pub struct Form {
    weight: usize,
    steps: Vec<Vec<Node>>,
}

/// A whole file.
#[derive(Debug, Clone)]
pub struct Grammar {
    forms: Vec<Form>,
    weight: usize,
}

impl Grammar {
    /// Parses a file; an error names the line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut forms = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            forms
                .push(form(line).map_err(|error| format!("line {}: {error}: {line}", number + 1))?);
        }
        let weight = forms.iter().map(|f| f.weight).sum();
        if weight == 0 {
            Err("no forms".into())
        } else {
            Ok(Self { forms, weight })
        }
    }

    /// Draws one form and fills it in: one or more commands.
    pub fn draw(&self, rng: &mut Rng, pool: &mut Pool) -> Vec<Vec<Vec<u8>>> {
        let mut at = rng.below(self.weight);
        let form = self.forms.iter().find(|form| {
            let here = at < form.weight;
            at = at.wrapping_sub(if here { 0 } else { form.weight });
            here
        });
        let form = form.expect("the weights sum up to the bound of the draw");
        form.steps
            .iter()
            .map(|nodes| {
                let mut args = Vec::new();
                nodes
                    .iter()
                    .for_each(|node| fill(node, rng, pool, &mut args));
                args
            })
            .collect()
    }

    /// How many forms there are.
    pub fn len(&self) -> usize {
        self.forms.len()
    }

    /// True when there is none; a parsed grammar never is.
    pub fn is_empty(&self) -> bool {
        self.forms.is_empty()
    }
}

fn fill(node: &Node, rng: &mut Rng, pool: &mut Pool, out: &mut Vec<Vec<u8>>) {
    match node {
        Node::Literal(text) => out.push(text.clone()),
        Node::Generated(letters, name) => {
            let mut arg = letters.clone().into_bytes();
            arg.extend(pool.value(name, rng));
            out.push(arg);
        }
        Node::Optional(ways) => {
            if rng.chance(50) {
                rng.pick(ways)
                    .clone()
                    .iter()
                    .for_each(|n| fill(n, rng, pool, out));
            }
        }
        Node::Choice(ways) => rng
            .pick(ways)
            .clone()
            .iter()
            .for_each(|n| fill(n, rng, pool, out)),
        Node::Repeat(inner, low, high) => {
            for _ in 0..rng.between(*low as i64, *high as i64) {
                inner.iter().for_each(|n| fill(n, rng, pool, out));
            }
        }
        Node::Shuffle(parts) => {
            let mut parts = parts.clone();
            rng.shuffle(&mut parts);
            parts.iter().for_each(|n| fill(n, rng, pool, out));
        }
    }
}

fn form(line: &str) -> Result<Form, String> {
    let (weight, rest) = line.split_once(' ').ok_or("expected a weight and a form")?;
    let weight: usize = weight.parse().map_err(|_| "the weight must be a number")?;
    let mut steps = Vec::new();
    for step in rest.split(";;") {
        let tokens = tokens(step);
        let mut at = 0;
        steps.push(sequence(&tokens, &mut at, &[])?);
        if at != tokens.len() {
            return Err(format!("unexpected `{}`", tokens[at]));
        }
    }
    Ok(Form { weight, steps })
}

fn tokens(text: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut word = String::new();
    let mut inside = false;
    for ch in text.chars() {
        if inside {
            word.push(ch);
            if ch == '>' {
                out.push(std::mem::take(&mut word));
                inside = false;
            }
        } else if ch == '<' {
            inside = true;
            word.push(ch);
        } else if ch == ' ' || "[](){}|~".contains(ch) {
            if !word.is_empty() {
                out.push(std::mem::take(&mut word));
            }
            if ch != ' ' {
                out.push(ch.to_string());
            }
        } else {
            word.push(ch);
        }
    }
    if !word.is_empty() {
        out.push(word);
    }
    out
}

fn sequence(tokens: &[String], at: &mut usize, ends: &[&str]) -> Result<Vec<Node>, String> {
    let mut nodes = Vec::new();
    while let Some(token) = tokens.get(*at) {
        if ends.contains(&token.as_str()) {
            break;
        }
        *at += 1;
        nodes.push(match token.as_str() {
            "[" => Node::Optional(ways(tokens, at, "]")?),
            "(" => Node::Choice(ways(tokens, at, ")")?),
            "{" => {
                let inner = closed(tokens, at)?;
                let (low, high) = tokens
                    .get(*at)
                    .and_then(|t| t.strip_prefix('*'))
                    .and_then(|t| t.split_once('-'))
                    .ok_or("expected *low-high after }")?;
                *at += 1;
                let number = |text: &str| {
                    text.parse::<usize>()
                        .map_err(|_| format!("not a number: {text}"))
                };
                Node::Repeat(inner, number(low)?, number(high)?)
            }
            "~" => {
                if tokens.get(*at).map(String::as_str) != Some("{") {
                    return Err("expected { after ~".into());
                }
                *at += 1;
                Node::Shuffle(closed(tokens, at)?)
            }
            "]" | ")" | "}" | "|" => return Err(format!("unexpected `{token}`")),
            "\"\"" => Node::Literal(Vec::new()),
            _ => match token.strip_suffix('>').and_then(|t| t.split_once('<')) {
                Some((letters, name)) if Pool::knows(name) => {
                    Node::Generated(letters.to_owned(), name.to_owned())
                }
                Some((_, name)) => return Err(format!("unknown value <{name}>")),
                None => Node::Literal(token.as_bytes().to_vec()),
            },
        });
    }
    Ok(nodes)
}

fn closed(tokens: &[String], at: &mut usize) -> Result<Vec<Node>, String> {
    let inner = sequence(tokens, at, &["}"])?;
    if tokens.get(*at).is_none() {
        return Err("expected }".into());
    }
    *at += 1;
    Ok(inner)
}

fn ways(tokens: &[String], at: &mut usize, end: &str) -> Result<Vec<Vec<Node>>, String> {
    let mut ways = Vec::new();
    loop {
        ways.push(sequence(tokens, at, &["|", end])?);
        match tokens.get(*at) {
            None => return Err(format!("expected {end}")),
            Some(token) => {
                *at += 1;
                if token == end {
                    return Ok(ways);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(text: &str) -> Vec<String> {
        let grammar = Grammar::parse(text).expect("valid");
        let mut rng = Rng::new(3);
        let mut pool = Pool::new(0);
        let line = |args: Vec<Vec<u8>>| {
            args.iter()
                .map(|a| crate::quote::quote(a))
                .collect::<Vec<_>>()
                .join(" ")
        };
        let mut seen: Vec<String> = (0..300)
            .flat_map(|_| grammar.draw(&mut rng, &mut pool))
            .map(line)
            .collect();
        seen.sort();
        seen.dedup();
        seen
    }

    #[test]
    fn options_choices_and_order() {
        assert_eq!(draws("1 A [B|C]"), ["A", "A B", "A C"]);
        assert_eq!(draws("1 A (B|C D)"), ["A B", "A C D"]);
        assert_eq!(draws("1 A ~{B [C]}"), ["A B", "A B C", "A C B"]);
        assert_eq!(draws("1 A {B}*1-3"), ["A B", "A B B", "A B B B"]);
        assert_eq!(draws("1 A \"\" ;; B"), ["A \"\"", "B"]);
    }

    #[test]
    fn errors_name_the_line() {
        for wrong in [
            "",
            "x A",
            "1 A [B",
            "1 A )",
            "1 <nonsense>",
            "1 {A}",
            "1 ~A",
        ] {
            assert!(Grammar::parse(wrong).is_err(), "{wrong}");
        }
        assert!(Grammar::parse("1 A\n1 (").is_err_and(|e| e.starts_with("line 2")));
    }
}
