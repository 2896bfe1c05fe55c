//! `LOLWUT`: a small picture and the version.

use crate::registry::SessionCommand;
use crate::turn::{Next, Turn};
use pantala_commands::spec::{Flags, Group, Spec};
use pantala_commands::{Error, Rng};
use pantala_protocol::{Args, numbers};

/// The family's commands.
pub const COMMANDS: &[SessionCommand] = &[SessionCommand::new(
    Spec {
        name: "lolwut",
        arity: -1,
        summary: "Displays computer art and the server's version.",
        since: "5.0.0",
        complexity: "",
        group: Group::Server,
        flags: Flags::READONLY.union(Flags::FAST),
        syntax: "[VERSION version]",
        ..Spec::BASE
    },
    lolwut,
)];

const COLUMNS: usize = 64;
const ROWS: usize = 12;

fn lolwut(turn: &mut Turn<'_, '_>, args: Args<'_>) -> Result<Next, Error> {
    // `VERSION n` chooses among the pictures of Redis's versions; there is one here, so the number is only checked.
    if args.is(1, "VERSION")
        && let Some(version) = args.get(2)
    {
        numbers::parse_i64(version).ok_or(Error::NotAnInteger)?;
    }
    let mut text = skyline(&mut turn.scratch.rng);
    text.push_str(&format!(
        "\nPantala ver. {}, Redis ver. {}\n",
        env!("CARGO_PKG_VERSION"),
        turn.settings.redis_version
    ));
    turn.reply().verbatim("txt", text.as_bytes());
    Ok(Next::Continue)
}

/// Hills one behind the other, each drawn by a random walk.
fn skyline(rng: &mut Rng) -> String {
    const SHADES: [char; 3] = ['.', ':', '#'];
    let mut picture = [[' '; COLUMNS]; ROWS];
    for (nth, shade) in SHADES.into_iter().enumerate() {
        let mut height = (ROWS - 2) - nth * 3;
        for column in 0..COLUMNS {
            match rng.next_u64() % 4 {
                0 => height = (height + 1).min(ROWS - 1),
                1 => height = height.saturating_sub(1).max(1),
                _ => {}
            }
            for row in &mut picture[ROWS - height..] {
                row[column] = shade;
            }
        }
    }
    picture
        .iter()
        .flat_map(|row| row.iter().copied().chain(['\n']))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_picture_has_its_size_whatever_is_drawn() {
        for seed in 0..200 {
            let picture = skyline(&mut Rng::new(seed));
            assert_eq!(picture.lines().count(), ROWS);
            assert!(picture.lines().all(|line| line.len() == COLUMNS));
        }
    }
}
