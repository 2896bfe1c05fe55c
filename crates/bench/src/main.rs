//! `pantala-bench`: starts servers, puts load on them and says what it cost. Results go to standard output and, one row a pass,
//! to a file; progress goes to standard error. It ends with a status other than 0 when any number is missing or any goal missed.

#![cfg_attr(
    test,
    allow(clippy::unwrap_used, reason = "a test that fails may panic")
)]

mod affinity;
mod cli;
mod engine;
mod error;
mod goals;
mod knobs;
mod load;
mod measure;
mod report;
mod row;
mod session;
mod stats;

use clap::Parser;
use cli::{Cli, Command, RunArgs};
use engine::EngineSpec;
use error::BenchError;
use load::encode::Protocol;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use report::Cell;
use session::Session;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = prepare().and_then(|()| match cli.command {
        Command::Run(args) => run(&args),
        Command::Goals(args) => goals::run(&args),
        Command::List => {
            list();
            Ok(true)
        }
    });
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("pantala-bench: {error}");
            ExitCode::from(2)
        }
    }
}

/// Interrupts stop the servers, and the limit of open files is raised as far as it goes, for the servers too.
fn prepare() -> Result<(), BenchError> {
    engine::stop_on_signal().map_err(|error| BenchError::io("signal handlers", error))?;
    if cfg!(debug_assertions) {
        eprintln!("note: this is a debug build; build with --release before you trust a figure");
    }
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < hard
    {
        // Where this fails, many connections fail later, with a clear error of their own.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
    Ok(())
}

/// Measures one cell on each engine; `false` when a number is missing.
fn run(args: &RunArgs) -> Result<bool, BenchError> {
    let knobs = args.knobs().map_err(BenchError::Options)?;
    knobs.check()?;
    let engines = if args.engines.is_empty() {
        engine::find_all(knobs.protocol)
    } else {
        args.engines.clone()
    };
    if engines.is_empty() {
        return Err(BenchError::Options(
            "no engine found: give one as --engine LABEL=PATH".to_owned(),
        ));
    }
    let mut session = Session::open(&args.out)?;
    let mut cells: Vec<Cell> = engines.iter().map(empty_cell).collect();
    let mut whole = true;
    for pass in 1..=args.passes {
        for (engine, cell) in engines.iter().zip(&mut cells) {
            eprintln!("pass {pass}/{}: {}", args.passes, engine.label);
            match session.run_cell(&args.scenario, pass, engine, &knobs) {
                Ok(row) => cell.rows.push(row),
                Err(error) => {
                    eprintln!("pass {pass}/{}: {}: {error}", args.passes, engine.label);
                    whole = false;
                }
            }
        }
    }
    println!("{}", describe(&knobs, &session, args.passes));
    let (measured, void): (Vec<Cell>, Vec<Cell>) = cells
        .into_iter()
        .partition(|cell| cell.rows.len() == args.passes as usize);
    if !measured.is_empty() {
        print!("{}", report::cells_table(&measured));
    }
    for cell in void {
        println!("{}: no number, see above", cell.label);
    }
    eprintln!(
        "rows of session {} are in {}",
        session.id(),
        args.out.display()
    );
    Ok(whole)
}

fn empty_cell(engine: &EngineSpec) -> Cell {
    Cell {
        label: engine.label.clone(),
        rows: Vec::new(),
    }
}

/// The knobs that a reader of the table needs, in a line or two.
fn describe(knobs: &knobs::Knobs, session: &Session, passes: u32) -> String {
    let machine = session.machine();
    let pace = match knobs.pace {
        load::Pace::Closed => format!("closed loop, pipeline {}", knobs.pipeline),
        load::Pace::Open { rate_per_s } => {
            format!("open loop, {} requests/s", report::thousands(rate_per_s))
        }
    };
    let ttl = knobs
        .ttl_s
        .map_or(String::new(), |ttl| format!(", TTL {ttl} s"));
    format!(
        "{} ({} cores, Linux {})\n\
         {:?}, {pace}, {} connections, {}:{} reads to writes, {} key(s) per request; {} keys of {} B, values {}-{} B {:?}{ttl}, {:?} (seed {}, \
         one of its own for each connection)\n\
         server: {} thread(s) on cores {:?}; client: {} thread(s) on cores {:?}; {} s after {} s warm-up, median of {passes} pass(es)\n",
        machine.cpu_model,
        machine.cores,
        machine.kernel,
        knobs.protocol,
        knobs.connections,
        knobs.gets,
        knobs.sets,
        knobs.keys_per_request,
        report::thousands(knobs.keys as f64),
        knobs.key_bytes,
        knobs.value_size.min_bytes,
        knobs.value_size.max_bytes,
        knobs.value_kind,
        knobs.distribution,
        knobs.seed,
        knobs.server_threads,
        knobs.server_cores,
        knobs.client_threads,
        knobs.client_cores,
        knobs.seconds,
        knobs.warmup_s,
    )
}

/// Prints the engines and the rows of the goal table.
fn list() {
    println!("engines:");
    let mut engines = engine::find_all(Protocol::Resp);
    for engine in engine::find_all(Protocol::Memcached) {
        if !engines.contains(&engine) {
            engines.push(engine);
        }
    }
    for engine in engines {
        println!(
            "  {:<14} {} ({})",
            engine.label,
            engine.program.display(),
            engine.version()
        );
    }
    println!("\nrows of the goal table:");
    for row in goals::ROWS {
        println!("  {:<20} {}", row.name, row.about);
    }
}
