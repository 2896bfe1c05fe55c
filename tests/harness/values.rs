//! Values that the generator puts into command forms: ordinary ones, edges, and wrong ones. No value may make a server allocate hundreds of
//! megabytes (bit offsets and ranges stay small or far out of range), and no time to live may end while a sequence runs, unless the form waits for it.

use crate::rng::Rng;

/// Draws values; holds what must stay the same within one sequence.
#[derive(Debug, Clone)]
pub struct Pool {
    /// Seconds since 1970 at the start of the run, for absolute times.
    now_s: i64,
}

const KEYS: &[&[u8]] = &[
    b"k1",
    b"k2",
    b"k3",
    b"k4",
    b"key:{tag}:1",
    b"n1",
    b"n2",
    b"\x00bin\xff\r\n",
    b"with space",
    b"",
    b"K1",
    b"hash*[a]?\\x",
];
const NUMBER_KEYS: &[&[u8]] = &[b"n1", b"n2", b"n3", b"k1"];
const BIT_KEYS: &[&[u8]] = &[b"b1", b"b2", b"b3", b"k1", b"n1"];
const HLL_KEYS: &[&[u8]] = &[b"h1", b"h2", b"h3", b"h4", b"k1"];

/// Numbers in and out of every range; none between one million and 2^32, which would be valid huge bit offsets, and not 1, which would be a time
/// to live that ends while a sequence runs.
pub const ODD_NUMBERS: &[&[u8]] = &[
    b"0",
    b"-0",
    b"-1",
    b"+1",
    b"01",
    b" 1",
    b"1 ",
    b"",
    b"1.0",
    b"1.5",
    b"1e3",
    b"1e400",
    b"-1e-400",
    b"0x10",
    b"nan",
    b"-nan",
    b"inf",
    b"-inf",
    b"+inf",
    b"Infinity",
    b"abc",
    b"9223372036854775807",
    b"9223372036854775808",
    b"-9223372036854775808",
    b"-9223372036854775809",
    b"18446744073709551615",
    b"18446744073709551616",
    b"4294967296",
    b"-2147483649",
    b"99999999999999999999999999999999999999",
    b"1\x002",
    b"\xff",
    b"3.0e",
    b".5",
    b"5.",
    b"1_0",
];

/// Arguments that no command expects.
pub const ODD_ARGUMENTS: &[&[u8]] = &[
    b"",
    b"*",
    b"NX",
    b"XX",
    b"GT",
    b"LT",
    b"EX",
    b"PX",
    b"EXAT",
    b"PXAT",
    b"GET",
    b"KEEPTTL",
    b"PERSIST",
    b"COUNT",
    b"MATCH",
    b"LIMIT",
    b"BY",
    b"STORE",
    b"REPLACE",
    b"ABSTTL",
    b"DB",
    b"ASYNC",
    b"SYNC",
    b"k1",
    b"n1",
    b"b1",
    b"h1",
    b"0",
    b"-1",
    b"x",
    b"\r\n",
    b"\x00",
    b"%s%n",
    b"BIT",
    b"BYTE",
    b"withmatchlen",
    b"help",
    b"nosuch",
];

impl Pool {
    /// `now_s`: seconds since 1970.
    pub fn new(now_s: i64) -> Self {
        Self { now_s }
    }

    /// True if a grammar may use `<name>`.
    pub fn knows(name: &str) -> bool {
        let base = name.split(':').next().unwrap_or_default();
        NAMES.contains(&base)
    }

    /// One value of the kind `name` (with an optional `:argument`).
    pub fn value(&mut self, name: &str, rng: &mut Rng) -> Vec<u8> {
        let (base, argument) = name.split_once(':').unwrap_or((name, ""));
        match base {
            "key" => key(argument, rng).to_vec(),
            "val" => value(rng),
            "short" => short(rng),
            "element" => format!("e{}", rng.below(3000)).into_bytes(),
            "int" => integer(rng),
            "float" => float(rng),
            "offset" => number(rng, 0, 2000, 6),
            "bitoffset" => number(rng, 0, 4000, 6),
            "index" => number(rng, -30, 30, 4),
            "bit" => rng
                .pick::<&[u8]>(&[&b"0"[..], b"1", b"0", b"1", b"0", b"1", b"2", b"-1", b"x"])
                .to_vec(),
            "bittype" => bit_type(rng),
            "fieldoffset" => field_offset(rng),
            "ttl_s" => ttl(rng, 1),
            "ttl_ms" => ttl(rng, 1000),
            "at_s" => self.at(rng, 1),
            "at_ms" => self.at(rng, 1000),
            "count" => number(rng, 1, 100, 6),
            "pattern" => rng.pick(PATTERNS).to_vec(),
            "db" => rng
                .pick::<&[u8]>(&[
                    &b"0"[..],
                    b"0",
                    b"0",
                    b"1",
                    b"2",
                    b"15",
                    b"16",
                    b"-1",
                    b"x",
                    b"9999999999",
                ])
                .to_vec(),
            "range" => {
                let (low, high) = argument.split_once('-').unwrap_or(("0", "10"));
                let parse = |text: &str| text.parse().unwrap_or(0);
                rng.between(parse(low), parse(high))
                    .to_string()
                    .into_bytes()
            }
            "mkey" => memcached_key(rng),
            "mflags" => rng.pick(MEMCACHED_FLAGS).to_vec(),
            "mexp" => rng.pick(MEMCACHED_TIMES).to_vec(),
            "mdelta" => rng.pick(MEMCACHED_DELTAS).to_vec(),
            "mdata" => memcached_data(rng),
            _ => rng.pick(ODD_ARGUMENTS).to_vec(),
        }
    }

    fn at(&self, rng: &mut Rng, unit: i64) -> Vec<u8> {
        match rng.below(10) {
            0 => b"1".to_vec(),
            1 => rng.pick(ODD_NUMBERS).to_vec(),
            2 => self
                .now_s
                .saturating_sub(100)
                .saturating_mul(unit)
                .to_string()
                .into_bytes(),
            _ => (self.now_s + rng.between(1000, 1_000_000))
                .saturating_mul(unit)
                .to_string()
                .into_bytes(),
        }
    }
}

const NAMES: &[&str] = &[
    "key",
    "val",
    "short",
    "element",
    "int",
    "float",
    "offset",
    "bitoffset",
    "index",
    "bit",
    "bittype",
    "fieldoffset",
    "ttl_s",
    "ttl_ms",
    "at_s",
    "at_ms",
    "count",
    "pattern",
    "db",
    "range",
    "odd",
    "mkey",
    "mflags",
    "mexp",
    "mdelta",
    "mdata",
];

const PATTERNS: &[&[u8]] = &[
    b"*",
    b"k*",
    b"k?",
    b"[kn]1",
    b"[^k]*",
    b"[a-l]1",
    b"[z-a]*",
    b"k\\1",
    b"\\*",
    b"",
    b"[",
    b"[k",
    b"k[",
    b"**1",
    b"*:*:*",
    b"hash\\**",
    b"n[1-2]",
    b"[\\k]1",
    b"?",
    b"*\xff*",
    b"k1",
];

fn key(argument: &str, rng: &mut Rng) -> &'static [u8] {
    let pool = match argument {
        "n" => NUMBER_KEYS,
        "b" => BIT_KEYS,
        "h" => HLL_KEYS,
        _ => KEYS,
    };
    // Mostly the first few, so that commands meet each other's keys.
    let reach = if rng.chance(60) { 3 } else { pool.len() };
    pool[rng.below(reach)]
}

fn number(rng: &mut Rng, low: i64, high: i64, odd_percent: usize) -> Vec<u8> {
    if rng.chance(odd_percent) {
        rng.pick(ODD_NUMBERS).to_vec()
    } else {
        rng.between(low, high).to_string().into_bytes()
    }
}

fn integer(rng: &mut Rng) -> Vec<u8> {
    match rng.below(10) {
        0 | 1 => rng.pick(ODD_NUMBERS).to_vec(),
        2 => rng.between(i64::MIN, i64::MAX).to_string().into_bytes(),
        _ => rng.between(-100, 100).to_string().into_bytes(),
    }
}

fn float(rng: &mut Rng) -> Vec<u8> {
    match rng.below(10) {
        0 | 1 => rng.pick(ODD_NUMBERS).to_vec(),
        2 => format!("{}e{}", rng.between(-99, 99), rng.between(-10, 10)).into_bytes(),
        3 => rng.between(-1_000_000, 1_000_000).to_string().into_bytes(),
        _ => format!("{}.{}", rng.between(-1000, 1000), rng.between(0, 99999)).into_bytes(),
    }
}

fn value(rng: &mut Rng) -> Vec<u8> {
    match rng.below(12) {
        0 => Vec::new(),
        1 | 2 => integer(rng),
        3 => float(rng),
        4 => (0..rng.below(40)).map(|_| rng.next_u64() as u8).collect(),
        5 => {
            // Around the limits between encodings: 44 bytes for Redis's embedded strings, 64 for one cache line, and longer.
            let length = *rng.pick(&[
                43, 44, 45, 63, 64, 65, 127, 128, 255, 256, 1023, 1024, 4096, 5000,
            ]);
            vec![b'a' + rng.below(26) as u8; length]
        }
        _ => short(rng),
    }
}

fn short(rng: &mut Rng) -> Vec<u8> {
    rng.pick::<&[u8]>(&[
        &b"a"[..],
        b"b",
        b"foo",
        b"bar",
        b"hello world",
        b"ohmytext",
        b"mynewtext",
        b"12",
        b"-7",
        b"\x00\x01",
        b"caf\xc3\xa9",
        b"OK",
    ])
    .to_vec()
}

fn bit_type(rng: &mut Rng) -> Vec<u8> {
    match rng.below(12) {
        0 => rng
            .pick::<&[u8]>(&[
                &b"u64"[..],
                b"i65",
                b"u0",
                b"i0",
                b"x8",
                b"u",
                b"",
                b"8",
                b"U8",
                b"u-1",
                b"i8x",
            ])
            .to_vec(),
        1 => b"u63".to_vec(),
        2 => b"i64".to_vec(),
        n if n % 2 == 0 => format!("u{}", rng.between(1, 63)).into_bytes(),
        _ => format!("i{}", rng.between(1, 64)).into_bytes(),
    }
}

fn field_offset(rng: &mut Rng) -> Vec<u8> {
    match rng.below(10) {
        0 => rng
            .pick::<&[u8]>(&[
                &b"#"[..],
                b"#-1",
                b"#x",
                b"-1",
                b"",
                b"##1",
                b"x",
                b"#9223372036854775807",
                b"4294967296",
            ])
            .to_vec(),
        1..=3 => format!("#{}", rng.below(40)).into_bytes(),
        _ => rng.below(900).to_string().into_bytes(),
    }
}

fn ttl(rng: &mut Rng, unit: i64) -> Vec<u8> {
    match rng.below(10) {
        0 => rng.pick(ODD_NUMBERS).to_vec(),
        1 => rng
            .pick::<&[u8]>(&[
                &b"0"[..],
                b"-1",
                b"-100",
                b"9223372036854775",
                b"9223372036854775807",
                b"-9223372036854775808",
                b"2147483647",
            ])
            .to_vec(),
        // Not near a border at which an expiry could end within the run; odd numbers above are far away from it as well, except 1.
        _ => (rng.between(1000, 100_000) * unit).to_string().into_bytes(),
    }
}

/// `K1` to `K5` stand for keys of the sequence (the runner writes them out), the others for themselves.
fn memcached_key(rng: &mut Rng) -> Vec<u8> {
    match rng.below(40) {
        0 => vec![b'x'; 251],
        1 => b"bad\x01key".to_vec(),
        _ => format!("K{}", 1 + rng.below(5)).into_bytes(),
    }
}

const MEMCACHED_FLAGS: &[&[u8]] = &[
    b"0",
    b"0",
    b"1",
    b"5",
    b"123",
    b"4294967295",
    b"4294967296",
    b"-1",
    b"x",
    b"1.5",
];

/// Times far away, never, and in the past (a number above 30 days is a date, here in 1970).
const MEMCACHED_TIMES: &[&[u8]] = &[
    b"0",
    b"0",
    b"0",
    b"1000",
    b"100000",
    b"2592000",
    b"2592001",
    b"-1",
    b"4000000000",
    b"x",
];

const MEMCACHED_DELTAS: &[&[u8]] = &[
    b"0",
    b"1",
    b"1",
    b"5",
    b"10",
    b"1000",
    b"18446744073709551615",
    b"18446744073709551616",
    b"-1",
    b"x",
    b"1.5",
];

fn memcached_data(rng: &mut Rng) -> Vec<u8> {
    match rng.below(10) {
        0 => Vec::new(),
        1 => rng.between(0, 200).to_string().into_bytes(),
        2 => rng
            .pick::<&[u8]>(&[
                b"18446744073709551615",
                b"18446744073709551614",
                b"99999999999999999999",
                b"007",
                b"-3",
                b"9 ",
                b" 9",
            ])
            .to_vec(),
        3 => b"two\r\nlines".to_vec(),
        4 => vec![b'm'; 1 + rng.below(3000)],
        5 => b"10".to_vec(),
        _ => short(rng),
    }
}
