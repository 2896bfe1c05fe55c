//! Replays recorded conversations. `>` lines are sent, `<` lines are what memcached answered; `{c1}`, `{c2}` … stand for CAS numbers.

use super::*;

const CLASSIC: &str = include_str!("../transcripts/classic.txt");
const META: &str = include_str!("../transcripts/meta.txt");

#[test]
fn classic_commands() {
    replay(CLASSIC);
}

#[test]
fn meta_commands() {
    replay(META);
}

fn replay(transcript: &str) {
    let mut failures = Vec::new();
    for section in transcript.split("== ").skip(1) {
        let (name, body) = section.split_once('\n').expect("a section has lines");
        replay_section(name, body, &mut failures);
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

fn replay_section(name: &str, body: &str, failures: &mut Vec<String>) {
    let mut server = Server::new();
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    let mut lines = body.lines().peekable();
    while lines.peek().is_some() {
        let mut request = String::new();
        while let Some(line) = lines.next_if(|line| line.starts_with('>')) {
            request.push_str(line.strip_prefix("> ").unwrap_or_default());
            request.push_str("\r\n");
            // Requests without a reply follow one another; a data block always has its request before it.
        }
        let mut wanted = Vec::new();
        while let Some(line) = lines.next_if(|line| line.starts_with('<')) {
            wanted.push(line.strip_prefix("< ").unwrap_or_default());
        }
        let mut sent = request.clone();
        for (cas, number) in &names {
            sent = sent.replace(cas, number);
        }
        let got = server.say(&sent);
        let got: Vec<&str> = got.split_terminator("\r\n").collect();
        let fits = got.len() == wanted.len()
            && got
                .iter()
                .zip(&wanted)
                .all(|(got, wanted)| fits(got, wanted, &mut names));
        if !fits {
            failures.push(format!("{name}: {sent}   got {got:?}\n  want {wanted:?}"));
        }
    }
}

/// Whether a line is the wanted one, with the same CAS numbers in the same places.
fn fits(got: &str, wanted: &str, names: &mut BTreeMap<String, String>) -> bool {
    let Some((before, rest)) = wanted.split_once('{') else {
        return got == wanted;
    };
    let Some((name, after)) = rest.split_once('}') else {
        return got == wanted;
    };
    let Some(number) = got
        .strip_prefix(before)
        .and_then(|got| got.strip_suffix(after))
    else {
        return false;
    };
    let name = format!("{{{name}}}");
    match names.get(&name) {
        Some(known) => known == number,
        None => {
            let fresh = number.parse::<u64>().is_ok_and(|number| number != 0)
                && names.values().all(|known| known != number);
            names.insert(name, number.to_owned());
            fresh
        }
    }
}
