//! The `pantala` binary: reads the configuration, starts the workers, listens, and ends on request.

mod dump;
mod listen;
mod logger;
mod run;

use pantala_config::{Action, Loaded};
use std::process::ExitCode;

fn main() -> ExitCode {
    let loaded = pantala_config::load(
        std::env::args_os().skip(1),
        std::env::vars_os(),
        pantala_config::read_config_file,
    );
    let loaded = match loaded {
        Ok(loaded) => loaded,
        Err(error) => {
            eprintln!("pantala: {error}");
            return ExitCode::from(2);
        }
    };
    match act(loaded) {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            log::error!("{text}");
            eprintln!("pantala: {text}");
            ExitCode::FAILURE
        }
    }
}

fn act(loaded: Loaded) -> Result<(), String> {
    match loaded.action {
        Action::Help => print!("{}", pantala_config::help_text()),
        Action::Version => println!("pantala {}", env!("CARGO_PKG_VERSION")),
        Action::DumpCommands => print!("{}", dump::commands()?),
        Action::CheckConfig => {
            for warning in &loaded.warnings {
                println!("{warning}");
            }
            println!("The configuration is valid.");
        }
        Action::Run => return run::run(loaded),
    }
    Ok(())
}
