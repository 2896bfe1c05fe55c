//! The goal table: each row measured by one command, with the goal and whether it is met. A row that cannot be measured says why
//! and counts as not met; it never prints a guess.

mod both_cores;
mod growth;
mod hot_keys;
mod long_command;
mod many_keys;
mod memory;
mod one_connection;
mod pipeline;
mod scale;
mod table;

use crate::cli::GoalArgs;
use crate::engine::EngineSpec;
use crate::error::BenchError;
use crate::knobs::Knobs;
use crate::report::Cell;
use crate::session::Session;
use table::Finding;
pub use table::ROWS;

/// What the rows are measured with.
struct Goals<'a> {
    args: &'a GoalArgs,
    session: Session,
}

/// One engine with one set of knobs, to be compared with others.
struct Candidate<'a> {
    label: &'a str,
    engine: &'a EngineSpec,
    knobs: Knobs,
}

impl<'a> Goals<'a> {
    /// The common cell: one processor each, 1 M keys of 100 B, ten reads to a write, 50 connections.
    fn common(&self) -> Knobs {
        Knobs {
            server_cores: vec![self.args.server_core],
            client_cores: vec![self.args.client_core],
            keys: self.args.keys,
            seconds: self.args.seconds,
            warmup_s: self.args.warmup,
            ..Knobs::default()
        }
    }

    /// Server and client together on both processors.
    fn on_both_cores(&self, server_threads: usize) -> Knobs {
        let cores = vec![self.args.server_core, self.args.client_core];
        Knobs {
            server_cores: cores.clone(),
            server_threads,
            client_cores: cores,
            client_threads: 2,
            ..self.common()
        }
    }

    fn subject(&self) -> &'a EngineSpec {
        &self.args.subject
    }

    fn reference(&self) -> &'a EngineSpec {
        &self.args.reference
    }

    /// Measures the candidates in interleaved passes.
    fn compare<const N: usize>(
        &mut self,
        row: &str,
        candidates: [Candidate<'_>; N],
    ) -> Result<[Cell; N], BenchError> {
        let mut cells = candidates.each_ref().map(|candidate| Cell {
            label: candidate.label.to_owned(),
            rows: Vec::new(),
        });
        for pass in 1..=self.args.passes {
            for (candidate, cell) in candidates.iter().zip(&mut cells) {
                eprintln!(
                    "{row}: pass {pass}/{}: {}",
                    self.args.passes, candidate.label
                );
                let scenario = format!("{row}: {}", candidate.label);
                let measured =
                    self.session
                        .run_cell(&scenario, pass, candidate.engine, &candidate.knobs)?;
                cell.rows.push(measured);
            }
        }
        Ok(cells)
    }
}

/// Measures the rows that were asked for and prints the table; `false` when a goal is missed or a number is missing.
///
/// # Errors
/// The results file cannot be written, or a row is unknown.
pub fn run(args: &GoalArgs) -> Result<bool, BenchError> {
    for name in &args.rows {
        if !ROWS.iter().any(|row| row.name == name) {
            let names: Vec<_> = ROWS.iter().map(|row| row.name).collect();
            return Err(BenchError::Options(format!(
                "--row: expected one of {}, got {name:?}",
                names.join(", ")
            )));
        }
    }
    let mut goals = Goals {
        args,
        session: Session::open(&args.out)?,
    };
    let mut findings = Vec::new();
    for row in ROWS {
        if !args.rows.is_empty() && !args.rows.iter().any(|name| row.name == name) {
            continue;
        }
        let found = (row.measure)(&mut goals, row.name).unwrap_or_else(|error| {
            eprintln!("{}: {error}", row.name);
            vec![Finding::missing(row.name, row.about, error.to_string())]
        });
        for finding in &found {
            eprintln!("{}", finding.line());
            goals.session.keep_finding(finding)?;
        }
        findings.extend(found);
    }
    let machine = goals.session.machine();
    println!(
        "{} ({} cores, Linux {}); {} against {}; {} s and {} pass(es) a cell\n",
        machine.cpu_model,
        machine.cores,
        machine.kernel,
        args.subject.label,
        args.reference.label,
        args.seconds,
        args.passes
    );
    print!("{}", table::render(&findings));
    eprintln!(
        "rows of session {} are in {}",
        goals.session.id(),
        args.out.display()
    );
    Ok(findings.iter().all(Finding::is_met))
}
