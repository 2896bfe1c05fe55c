//! Tables for a terminal: the cells of a run, and the rows of the goal table.

use crate::row::{LoadResult, MemoryResult, Row};
use crate::stats::{median, spread};

/// A table whose columns are as wide as they need to be; the first is flush left, the others flush right.
#[derive(Debug, Clone)]
pub struct Table {
    rows: Vec<Vec<String>>,
    left_columns: usize,
}

impl Table {
    /// A table with this head, of which the first `left_columns` are flush left.
    pub fn new(left_columns: usize, head: &[&str]) -> Self {
        Self {
            rows: vec![head.iter().map(|text| (*text).to_owned()).collect()],
            left_columns,
        }
    }

    /// Adds a row.
    pub fn push(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }

    /// The table as text, a line for each row and one under the head.
    pub fn render(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns)
            .map(|column| {
                let cells = self.rows.iter().filter_map(|row| row.get(column));
                cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
            })
            .collect();
        let mut text = String::new();
        for (number, row) in self.rows.iter().enumerate() {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                let width = widths[column];
                if column < self.left_columns {
                    line.push_str(&format!("{cell:<width$}  "));
                } else {
                    line.push_str(&format!("{cell:>width$}  "));
                }
            }
            text.push_str(line.trim_end());
            text.push('\n');
            if number == 0 {
                let total = widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1);
                text.push_str(&"-".repeat(total));
                text.push('\n');
            }
        }
        text
    }
}

/// The passes of one engine in one cell.
#[derive(Debug, Clone)]
pub struct Cell {
    /// What the table calls it.
    pub label: String,
    /// The row of each pass.
    pub rows: Vec<Row>,
}

impl Cell {
    /// The median over the passes of one figure of the load.
    pub fn load(&self, figure: impl Fn(&LoadResult) -> f64) -> f64 {
        median(self.loads().map(figure)).unwrap_or(f64::NAN)
    }

    /// The median over the passes of one figure of the memory.
    pub fn memory(&self, figure: impl Fn(&MemoryResult) -> f64) -> f64 {
        let all = self.rows.iter().filter_map(|row| row.memory.as_ref());
        median(all.map(figure)).unwrap_or(f64::NAN)
    }

    /// The limits that were judged in the passes, each once.
    pub fn bound(&self) -> String {
        let mut texts: Vec<&str> = self.loads().map(|load| load.bound.text()).collect();
        texts.sort_unstable();
        texts.dedup();
        texts.join("/")
    }

    fn loads(&self) -> impl Iterator<Item = &LoadResult> {
        self.rows.iter().filter_map(|row| row.load.as_ref())
    }
}

/// The table of a run: a row for each engine, medians over its passes.
pub fn cells_table(cells: &[Cell]) -> String {
    let mut table = Table::new(
        1,
        &[
            "engine",
            "req/s",
            "spread",
            "p50 µs",
            "p99 µs",
            "p99.9 µs",
            "srv µs/req",
            "user",
            "system",
            "srv busy",
            "cli busy",
            "cli µs/req",
            "limit",
            "RSS MB",
            "peak MB",
            "B/key",
        ],
    );
    for cell in cells {
        let rate_spread = spread(cell.loads().map(|load| load.requests_per_s));
        let megabytes = |bytes: f64| format!("{:.1}", bytes / 1e6);
        table.push(vec![
            cell.label.clone(),
            thousands(cell.load(|load| load.requests_per_s)),
            format!("{:.1}%", rate_spread * 100.0),
            format!("{:.0}", cell.load(|load| load.latency.p50_us)),
            format!("{:.0}", cell.load(|load| load.latency.p99_us)),
            format!("{:.0}", cell.load(|load| load.latency.p999_us)),
            format!("{:.3}", cell.load(|load| load.server_cpu_us_per_request)),
            format!("{:.3}", cell.load(|load| load.server_user_us_per_request)),
            format!("{:.3}", cell.load(|load| load.server_system_us_per_request)),
            format!("{:.0}%", cell.load(|load| load.server_busy) * 100.0),
            format!("{:.0}%", cell.load(|load| load.client_busy) * 100.0),
            format!("{:.3}", cell.load(|load| load.client_cpu_us_per_request)),
            cell.bound(),
            megabytes(cell.memory(|memory| memory.loaded_bytes as f64)),
            megabytes(cell.memory(|memory| memory.peak_bytes as f64)),
            format!("{:.1}", cell.memory(|memory| memory.bytes_per_key)),
        ]);
    }
    table.render()
}

/// A whole number with separators, such as 1,234,567.
pub fn thousands(number: f64) -> String {
    let digits = format!("{number:.0}");
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return digits;
    }
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_separators() {
        for (number, text) in [
            (0.0, "0"),
            (999.0, "999"),
            (1_000.4, "1,000"),
            (1_234_567.0, "1,234,567"),
            (f64::NAN, "NaN"),
            (-5.0, "-5"),
        ] {
            assert_eq!(thousands(number), text);
        }
    }

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(1, &["name", "n"]);
        table.push(vec!["µs".to_owned(), "100".to_owned()]);
        assert_eq!(table.render(), "name    n\n---------\nµs    100\n");
    }
}
