//! Crates depend downwards only. The rank of each is written here once; a crate of the workspace that has none is a finding, so that a new crate
//! cannot slip in without a place.

use super::Finding;

/// Each crate and its rank: it may depend on crates of a lower rank only.
const RANKS: &[(&str, u32)] = &[
    ("pantala-reactor", 0),
    ("pantala-protocol", 0),
    ("pantala-borrow", 0),
    ("pantala-config", 0),
    ("pantala-store", 1),
    ("pantala-types", 2),
    ("pantala-rdb", 3),
    ("pantala-commands", 4),
    ("pantala-engine", 5),
    ("pantala-server", 6),
];

/// Crates beside the server: they may not depend on it, nor it on them.
const BESIDE: &[&str] = &["pantala-bench", "pantala-tests", "pantala-fuzz", "xtask"];

/// Checks one `Cargo.toml`.
pub fn check(path: &str, text: &str) -> Vec<Finding> {
    let finding = |line: usize, message: String| Finding {
        path: path.to_owned(),
        line,
        message,
    };
    let Some(name) = package_name(text) else {
        return Vec::new();
    };
    let beside = BESIDE.contains(&name);
    let rank = rank(name);
    if rank.is_none() && !beside {
        return vec![finding(
            1,
            format!("crate {name} has no rank: give it one in crates/xtask/src/tidy/layers.rs"),
        )];
    }
    let mut findings = Vec::new();
    let mut section = String::new();
    for (at, line) in text.lines().enumerate() {
        if let Some(header) = line.trim().strip_prefix('[') {
            section = header.trim_end_matches(']').to_owned();
        }
        // Tests may look upwards: a lower layer's test may drive it through an upper one.
        let counts = section.ends_with("dependencies") && !section.contains("dev-dependencies");
        let dependency = line
            .split(['.', ' ', '='])
            .next()
            .unwrap_or_default()
            .trim_matches('"');
        if !counts || dependency.is_empty() || line.starts_with('[') {
            continue;
        }
        let message = match (rank, self::rank(dependency)) {
            (Some(own), Some(other)) if other >= own => format!(
                "{name} must not depend on {dependency}: arrows point from upper layers to lower ones only"
            ),
            (Some(_), None) if BESIDE.contains(&dependency) => {
                format!("{name} must not depend on {dependency}, which stands beside the server")
            }
            (Some(_), None) if dependency.starts_with("pantala-") => {
                format!("{dependency} has no rank")
            }
            _ => continue,
        };
        findings.push(finding(at + 1, message));
    }
    findings
}

fn rank(name: &str) -> Option<u32> {
    RANKS
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, rank)| *rank)
}

fn package_name(text: &str) -> Option<&str> {
    let package = text.split("[package]").nth(1)?;
    let line = package
        .lines()
        .find(|line| line.trim_start().starts_with("name"))?;
    line.split('"').nth(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(name: &str, rest: &str) -> usize {
        check(
            "Cargo.toml",
            &format!("[package]\nname = \"{name}\"\n{rest}"),
        )
        .len()
    }

    #[test]
    fn downwards_only() {
        assert_eq!(
            findings(
                "pantala-engine",
                "[dependencies]\npantala-store.workspace = true\nlibc = \"0.2\"\n"
            ),
            0
        );
        assert_eq!(
            findings(
                "pantala-store",
                "[dependencies]\npantala-engine.workspace = true\n"
            ),
            1
        );
        assert_eq!(
            findings(
                "pantala-reactor",
                "[dependencies]\npantala-protocol = { path = \"../protocol\" }\n"
            ),
            1
        );
        assert_eq!(
            findings(
                "pantala-store",
                "[dev-dependencies]\npantala-engine.workspace = true\n"
            ),
            0
        );
        assert_eq!(
            findings(
                "pantala-server",
                "[dependencies]\npantala-bench.workspace = true\n"
            ),
            1
        );
        assert_eq!(findings("pantala-new", ""), 1);
        assert_eq!(findings("xtask", "[dependencies]\nserde_json = \"1\"\n"), 0);
        assert_eq!(check("Cargo.toml", "[workspace]\n").len(), 0);
    }
}
