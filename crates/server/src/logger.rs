//! The log: one line per event, `PID:M DATE LEVEL message` as Redis writes it, to standard output or to `logfile`.

use log::{Level, LevelFilter, Log, Metadata, Record};
use pantala_config::{LogLevel, Settings};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::{Mutex, PoisonError};

enum Sink {
    Stdout,
    Stderr,
    File(Mutex<File>),
}

struct Logger(Sink);

/// Starts logging as the settings say. Errors: the log file cannot be opened.
pub fn start(settings: &Settings) -> Result<(), String> {
    let sink = if settings.log_to_stderr {
        Sink::Stderr
    } else if settings.logfile.is_empty() {
        Sink::Stdout
    } else {
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&settings.logfile);
        Sink::File(Mutex::new(file.map_err(|error| {
            format!("Can't open the log file {}: {error}", settings.logfile)
        })?))
    };
    log::set_boxed_logger(Box::new(Logger(sink))).map_err(|error| error.to_string())?;
    set_level(settings.loglevel);
    Ok(())
}

/// Changes what is logged.
pub fn set_level(level: LogLevel) {
    log::set_max_level(match level {
        LogLevel::Debug => LevelFilter::Trace,
        LogLevel::Verbose => LevelFilter::Debug,
        LogLevel::Notice => LevelFilter::Info,
        LogLevel::Warning => LevelFilter::Warn,
    });
}

impl Log for Logger {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        let mark = match record.level() {
            Level::Error | Level::Warn => '#',
            Level::Info => '*',
            Level::Debug => '-',
            Level::Trace => '.',
        };
        let line = format!(
            "{}:M {} {mark} {}\n",
            std::process::id(),
            date(),
            record.args()
        );
        // A log that cannot be written must not stop the server.
        let _ = match &self.0 {
            Sink::Stdout => std::io::stdout().lock().write_all(line.as_bytes()),
            Sink::Stderr => std::io::stderr().lock().write_all(line.as_bytes()),
            Sink::File(file) => file
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .write_all(line.as_bytes()),
        };
    }

    fn flush(&self) {}
}

/// `30 Nov 2026 17:20:03.123` in UTC.
fn date() -> String {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let ms = pantala_engine::worker::clock::unix_ms();
    let (days, of_day) = (ms.div_euclid(86_400_000), ms.rem_euclid(86_400_000));
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (
        of_day / 3_600_000,
        of_day / 60_000 % 60,
        of_day / 1_000 % 60,
    );
    format!(
        "{day:02} {} {year} {hour:02}:{minute:02}:{second:02}.{:03}",
        MONTHS[month - 1],
        of_day % 1_000
    )
}

/// Year, month (1 to 12) and day of a count of days since 1970-01-01, by eras of 400 years
/// (Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms").
fn civil(days: i64) -> (i64, usize, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    (
        year_of_era + era * 400 + i64::from(month <= 2),
        month as usize,
        day,
    )
}

#[cfg(test)]
mod tests {
    #[test]
    fn days_become_dates() {
        assert_eq!(super::civil(0), (1970, 1, 1));
        assert_eq!(super::civil(11_016), (2000, 2, 29));
        assert_eq!(super::civil(20_787), (2026, 11, 30));
        assert_eq!(super::civil(-1), (1969, 12, 31));
    }
}
