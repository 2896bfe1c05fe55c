//! The text of `--help`, made from the table.

use std::fmt::Write;

use crate::spec::{Effect, Group, House, Kind, OptionSpec, Percent};
use crate::table::options;

/// The widest line.
const WIDTH: usize = 100;
/// Where the descriptions begin.
const INDENT: usize = 8;

const HEAD: &str = "\
Usage: pantala [FILE] [--OPTION VALUE...]...

Options come from the defaults, then FILE (one `option value` a line, as in redis.conf), then the
environment (PANTALA_MAXMEMORY=1gb for maxmemory), then the command line; the later wins.
`--option=value` works too, underscores may stand for dashes, and a yes-or-no option may be
written `--option` or `--nooption`. Options marked * can be changed by CONFIG SET.

    --help              Print this text.
    --version           Print the version.
    --check-config      Say whether the configuration is valid.
    --dump-commands     Print the command table.
    --include FILE      Read another file at this point (in a file: `include FILE`).
";

/// The text of `--help`: every option that works, by group, no line wider than 100 columns.
pub fn help_text() -> String {
    let mut text = String::from(HEAD);
    let mut group: Option<Group> = None;
    let shown = options()
        .iter()
        .filter(|spec| !spec.hidden && !matches!(spec.effect, Effect::None(_)));
    let mut shown: Vec<&OptionSpec> = shown.collect();
    // Stable, so that the table's order within a group stays.
    shown.sort_by_key(|spec| spec.group);
    for spec in shown {
        if group != Some(spec.group) {
            group = Some(spec.group);
            line(&mut text, format_args!("\n{}", spec.group.title()));
        }
        option(&mut text, spec);
    }
    let inert = options()
        .iter()
        .filter(|spec| !spec.hidden && matches!(spec.effect, Effect::None(_)));
    let names: Vec<&str> = inert.map(|spec| spec.name).collect();
    text.push_str("\nRecognised without effect\n");
    wrap(&mut text, &names.join(", "));
    text
}

fn line(text: &mut String, content: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{content}");
}

fn option(text: &mut String, spec: &OptionSpec) {
    let mark = if spec.mutable { "*" } else { "" };
    line(
        text,
        format_args!("    --{} {}{mark}", spec.name, value_form(spec)),
    );
    let mut help: Vec<String> = vec![spec.help.trim().to_owned()];
    if let Effect::Refused { reason, .. } = spec.effect {
        help.push(format!("Not supported yet: {reason}."));
    }
    if !spec.default.is_empty() {
        help.push(format!("Default: {}.", spec.default));
    }
    let names = |house| {
        let of_house = spec
            .aliases
            .iter()
            .filter(move |alias| alias.house == house);
        of_house
            .map(|alias| format!("--{}", alias.name))
            .collect::<Vec<_>>()
            .join(", ")
    };
    for (house, title) in [
        (House::Redis, "In Redis also"),
        (House::Dragonfly, "In Dragonfly"),
    ] {
        let names = names(house);
        if !names.is_empty() {
            help.push(format!("{title}: {names}."));
        }
    }
    wrap(text, &help.join(" "));
}

fn value_form(spec: &OptionSpec) -> String {
    match spec.kind {
        Kind::Bool => "yes|no".to_owned(),
        Kind::Integer { .. } => "NUMBER".to_owned(),
        Kind::Octal { .. } => "OCTAL".to_owned(),
        Kind::Memory {
            percent: Percent::No,
            ..
        } => "BYTES".to_owned(),
        Kind::Memory { .. } => "BYTES|PERCENT%".to_owned(),
        Kind::Choice(names) => names.join("|"),
        Kind::Text => "TEXT".to_owned(),
        Kind::Words(form) => form.to_owned(),
    }
}

/// Appends the words in lines of at most `WIDTH` columns, indented.
fn wrap(text: &mut String, words: &str) {
    let mut column = 0;
    for word in words.split_whitespace() {
        let width = word.chars().count();
        if column > 0 && column + 1 + width > WIDTH {
            text.push('\n');
            column = 0;
        }
        if column == 0 {
            text.push_str(&" ".repeat(INDENT));
            column = INDENT;
        } else {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += width;
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::{WIDTH, help_text, options};
    use crate::spec::Effect;

    #[test]
    fn every_option_is_there_and_no_line_is_too_wide() {
        let text = help_text();
        for line in text.lines() {
            // The list of choices of one option stands on one line even where it is long.
            let choices = line.starts_with("    --") && line.contains('|');
            assert!(choices || line.chars().count() <= WIDTH, "{line}");
        }
        for spec in options().iter().filter(|spec| !spec.hidden) {
            match spec.effect {
                Effect::None(_) => assert!(text.contains(spec.name), "{}", spec.name),
                _ => assert!(
                    text.contains(&format!("    --{} ", spec.name)),
                    "{}",
                    spec.name
                ),
            }
            assert!(
                !spec.help.trim().is_empty() && spec.help.trim().ends_with('.'),
                "{}",
                spec.name
            );
        }
    }
}
