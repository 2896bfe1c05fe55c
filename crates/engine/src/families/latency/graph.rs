//! The ASCII graph of `LATENCY GRAPH`: one column per sample, four rows, the age of each sample written downwards below it.

use crate::families::latency::Spikes;

const COLUMNS: usize = 80;
const ROWS: usize = 4;
/// From low to high within a row.
const MARKS: [char; 3] = ['_', 'o', '#'];
const FULL: char = '|';

/// The graph of an event's spikes at Unix time `now_s`.
pub fn render(event: &str, spikes: &Spikes, now_s: i64) -> String {
    let values: Vec<u64> = spikes.samples.iter().map(|(_, took_ms)| *took_ms).collect();
    let low = values.iter().copied().min().unwrap_or(0);
    let high = values.iter().copied().max().unwrap_or(0);
    let labels: Vec<String> = spikes
        .samples
        .iter()
        .map(|(at_s, _)| age(now_s - at_s))
        .collect();
    let mut text = format!(
        "{event} - high {high} ms, low {low} ms (all time high {} ms)\n",
        spikes.max_ms
    );
    text.push_str(&"-".repeat(COLUMNS));
    text.push('\n');
    for (nth, (values, labels)) in values
        .chunks(COLUMNS)
        .zip(labels.chunks(COLUMNS))
        .enumerate()
    {
        if nth != 0 {
            text.push('\n');
        }
        let steps: Vec<usize> = values
            .iter()
            .map(|&value| step(value - low, high - low))
            .collect();
        for row in 0..ROWS {
            let floor = (ROWS - row - 1) * MARKS.len();
            let mark = |&step: &usize| match step.checked_sub(floor) {
                None => ' ',
                Some(above) => MARKS.get(above).copied().unwrap_or(FULL),
            };
            text.extend(steps.iter().map(mark));
            text.push('\n');
        }
        // An empty line keeps the labels apart from the graph.
        text.push_str(&" ".repeat(values.len()));
        text.push('\n');
        let longest = labels.iter().map(String::len).max().unwrap_or(0);
        for at in 0..longest {
            text.extend(labels.iter().map(|label| {
                label
                    .as_bytes()
                    .get(at)
                    .map_or(' ', |&byte| char::from(byte))
            }));
            text.push('\n');
        }
    }
    text
}

/// Height of a value, from 0.
fn step(above_low: u64, range: u64) -> usize {
    let steps = (MARKS.len() * ROWS) as u64;
    (above_low.saturating_mul(steps) / range.max(1)).min(steps - 1) as usize
}

/// How long ago, in the largest unit that fits.
pub fn age(seconds: i64) -> String {
    match seconds.max(0) {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds @ 60..3_600 => format!("{}m", seconds / 60),
        seconds @ 3_600..86_400 => format!("{}h", seconds / 3_600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_rise_with_the_duration() {
        let spikes = Spikes {
            samples: [(40, 10), (90, 40), (95, 130)].into_iter().collect(),
            max_ms: 200,
        };
        let graph = render("command", &spikes, 100);
        let expected = [
            "command - high 130 ms, low 10 ms (all time high 200 ms)",
            &"-".repeat(80),
            "  #",
            "  |",
            " _|",
            "_||",
            "   ",
            "115",
            "m0s",
            " s ",
            "",
        ];
        assert_eq!(graph, expected.join("\n"));
    }

    #[test]
    fn one_sample_lies_on_the_floor_and_many_take_several_graphs() {
        let one = Spikes {
            samples: [(100, 7)].into_iter().collect(),
            max_ms: 7,
        };
        assert!(render("command", &one, 100).ends_with("\n \n \n \n_\n \n0\ns\n"));
        let many = Spikes {
            samples: (0..160_i64).map(|at| (at, at.unsigned_abs())).collect(),
            max_ms: 160,
        };
        assert!(
            render("command", &many, 200)
                .lines()
                .all(|line| line.len() <= COLUMNS)
        );
    }

    #[test]
    fn ages_have_one_unit() {
        assert_eq!(
            [0, 59, 60, 3_599, 3_600, 86_400, -5].map(age),
            ["0s", "59s", "1m", "59m", "1h", "1d", "0s"]
        );
    }
}
