//! The rows of the goal table by name, and how what was found is judged and shown.

use super::{
    Goals, both_cores, growth, hot_keys, long_command, many_keys, memory, one_connection, pipeline,
    scale,
};
use crate::error::BenchError;
use crate::report::Table;
use serde::Serialize;

/// One row of the goal table.
pub struct GoalRow {
    /// What `--row` calls it.
    pub name: &'static str,
    /// What it is about.
    pub about: &'static str,
    /// Measures it, given its name.
    pub(super) measure: Measure,
}

type Measure = fn(&mut Goals<'_>, &'static str) -> Result<Vec<Finding>, BenchError>;

const fn row(name: &'static str, about: &'static str, measure: Measure) -> GoalRow {
    GoalRow {
        name,
        about,
        measure,
    }
}

/// Every row, in the order of the table.
pub const ROWS: &[GoalRow] = &[
    row(
        "pipeline-30",
        "server CPU per request at pipeline 30, against the reference",
        pipeline::thirty,
    ),
    row(
        "pipeline-16",
        "server CPU per request at pipeline 16, against the reference",
        pipeline::sixteen,
    ),
    row(
        "pipeline-1",
        "server CPU per request at pipeline 1, against the reference",
        pipeline::one,
    ),
    row(
        "both-cores",
        "2 threads on both cores, against the reference with io-threads 2 and our own 1 thread",
        both_cores::measure,
    ),
    row(
        "hot-key",
        "one key, half writes: 2 threads against 1",
        hot_keys::one,
    ),
    row(
        "hot-1000",
        "1,000 keys, half writes: 2 threads against 1",
        hot_keys::thousand,
    ),
    row(
        "long-keys",
        "p99 of 50 clients beside KEYS without end",
        long_command::keys,
    ),
    row(
        "long-bitmap",
        "p99 of 50 clients beside BITCOUNT of 512 MB without end",
        long_command::bitmap,
    ),
    row(
        "long-sort",
        "p99 of 50 clients beside SORT of 1 M elements without end",
        long_command::sort,
    ),
    row(
        "mget",
        "CPU per key of MGET with 10 keys, pipeline 16",
        many_keys::mget,
    ),
    row(
        "mset",
        "CPU per key of MSET with 10 keys, pipeline 16",
        many_keys::mset,
    ),
    row(
        "memory-random",
        "resident bytes per key, random values",
        memory::random,
    ),
    row(
        "memory-ascii",
        "resident bytes per key, ASCII values",
        memory::ascii,
    ),
    row(
        "memory-ttl",
        "resident bytes that a TTL adds to a key",
        memory::ttl,
    ),
    row(
        "memory-steps",
        "resident bytes per key at any count from 1 to 2 times the keys",
        memory::steps,
    ),
    row(
        "mixed-sizes",
        "overhead per key with values of 20 to 400 B",
        memory::mixed_sizes,
    ),
    row(
        "maxmemory-64mb",
        "250 k keys of 100 B under maxmemory 64mb",
        memory::small_limit,
    ),
    row(
        "growth-peak",
        "peak resident memory while the keys double",
        growth::peak,
    ),
    row(
        "delete-90",
        "resident memory after nine in ten keys are deleted",
        growth::delete,
    ),
    row(
        "large",
        "CPU per request at 20 M keys, against 1 M",
        scale::keys,
    ),
    row(
        "connections-5000",
        "CPU per request at 5,000 connections, against 50",
        scale::connections,
    ),
    row(
        "one-connection",
        "p50 of one connection at pipeline 1, against the reference",
        one_connection::measure,
    ),
    row(
        "empty",
        "resident memory of an empty server with 2 threads",
        memory::empty,
    ),
];

/// One measured cell of the goal table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// The name of its row.
    pub goal: &'static str,
    /// Which cell of the row.
    pub cell: String,
    /// What was measured, in words.
    pub measured: String,
    /// The figure that is judged.
    pub value: Option<f64>,
    /// What it is judged by.
    pub limit: Option<Limit>,
    /// Why there is no figure.
    pub void: Option<String>,
}

/// What a figure is judged by.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// The figure must not be above this.
    AtMost(f64),
    /// The figure must not be below this.
    AtLeast(f64),
}

impl Finding {
    /// A figure and its goal; `measured` says in words where it comes from.
    pub fn new(
        goal: &'static str,
        cell: impl Into<String>,
        measured: String,
        value: f64,
        limit: Limit,
    ) -> Self {
        Self {
            goal,
            cell: cell.into(),
            measured,
            value: Some(value),
            limit: Some(limit),
            void: None,
        }
    }

    /// A cell without a figure.
    pub fn missing(goal: &'static str, cell: impl Into<String>, why: String) -> Self {
        Self {
            goal,
            cell: cell.into(),
            measured: String::new(),
            value: None,
            limit: None,
            void: Some(why),
        }
    }

    /// Whether there is a figure and it meets its goal.
    pub fn is_met(&self) -> bool {
        match (self.value, self.limit) {
            (Some(value), Some(Limit::AtMost(limit))) => value <= limit,
            (Some(value), Some(Limit::AtLeast(limit))) => value >= limit,
            _ => false,
        }
    }

    /// One line for the progress.
    pub fn line(&self) -> String {
        let [goal, cell, measured, limit, verdict] = self.columns();
        format!("{goal}: {cell}: {measured} (goal {limit}): {verdict}")
    }

    fn columns(&self) -> [String; 5] {
        let limit = match self.limit {
            Some(Limit::AtMost(limit)) => format!("≤ {limit}"),
            Some(Limit::AtLeast(limit)) => format!("≥ {limit}"),
            None => "-".to_owned(),
        };
        let (measured, verdict) = match &self.void {
            Some(why) => (first_line(why), "no number"),
            None if self.is_met() => (self.measured.clone(), "met"),
            None => (self.measured.clone(), "MISSED"),
        };
        [
            self.goal.to_owned(),
            self.cell.clone(),
            measured,
            limit,
            verdict.to_owned(),
        ]
    }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

/// The findings as a table.
pub fn render(findings: &[Finding]) -> String {
    let mut table = Table::new(5, &["row", "cell", "measured", "goal", "verdict"]);
    for finding in findings {
        table.push(finding.columns().to_vec());
    }
    let met = findings.iter().filter(|finding| finding.is_met()).count();
    format!("{}\n{met} of {} met\n", table.render(), findings.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn goals_are_judged_and_what_is_missing_is_not_met() {
        let at = |value, limit| Finding::new("x", "c", String::new(), value, limit).is_met();
        assert!(at(0.25, Limit::AtMost(0.25)) && !at(0.26, Limit::AtMost(0.25)));
        assert!(at(1.0, Limit::AtLeast(1.0)) && !at(0.99, Limit::AtLeast(1.0)));
        assert!(!at(f64::NAN, Limit::AtMost(1.0)) && !at(f64::NAN, Limit::AtLeast(1.0)));
        assert!(!Finding::missing("x", "c", "why".to_owned()).is_met());
    }

    #[test]
    fn the_table_shows_verdicts_and_a_sum() {
        let findings = [
            Finding::new("a", "c", "1 µs".to_owned(), 1.0, Limit::AtMost(2.0)),
            Finding::new("b", "c", "3 µs".to_owned(), 3.0, Limit::AtMost(2.0)),
            Finding::missing("d", "c", "no such command\nmore".to_owned()),
        ];
        let text = render(&findings);
        assert!(text.contains("met") && text.contains("MISSED") && text.contains("no number"));
        assert!(text.contains("no such command") && !text.contains("more"));
        assert!(text.ends_with("1 of 3 met\n"), "{text}");
    }

    #[test]
    fn names_are_unique() {
        let names: HashSet<_> = ROWS.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), ROWS.len());
    }
}
