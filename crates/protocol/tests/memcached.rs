//! The memcached request parser: typed requests, the exact errors, what is skipped, and that no cut of the stream matters.

use pantala_protocol::memcached::{McLimits, McParsed, McParser, McRequest, MetaVerb};
use proptest::prelude::*;

/// One line per step: errors as their reply, requests in angle brackets.
fn feed<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, limits: &McLimits) -> Vec<String> {
    let mut parser = McParser::new();
    let mut buf = Vec::new();
    let mut steps = Vec::new();
    for piece in pieces {
        buf.extend_from_slice(piece);
        let mut at = 0;
        loop {
            let before = at;
            match parser.next(&buf, &mut at, limits) {
                McParsed::Request(request) => {
                    assert!(at > before, "progress");
                    let quit = matches!(request, McRequest::Quit);
                    steps.push(format!("<{}>", show(&request)));
                    if quit {
                        return steps;
                    }
                }
                McParsed::NeedMore => break,
                McParsed::Error(error) => {
                    let mut reply = Vec::new();
                    error.write_reply(&mut reply);
                    let mut step = String::from_utf8(reply).expect("replies are ASCII");
                    if let Some(key) = &error.unlink {
                        step += &format!("unlink {}", key.as_bytes().escape_ascii());
                    }
                    if error.close {
                        step += "close";
                    }
                    steps.push(step);
                    if error.close {
                        return steps;
                    }
                    assert!(at > before, "progress");
                }
            }
        }
        buf.drain(..at);
        // A refused value is not collected.
        assert!(buf.len() <= limits.multiget_line_bytes + limits.item_bytes + piece.len());
    }
    steps
}

fn show(request: &McRequest<'_>) -> String {
    let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
    match request {
        McRequest::Get(get) => {
            let keys: Vec<_> = get.keys.clone().map(text).collect();
            format!("{:?} {} {}", get.verb, get.exptime_s, keys.join(","))
        }
        McRequest::Store(s) => format!(
            "{:?} {} {} {} {} {} {}",
            s.verb,
            text(s.key),
            s.flags,
            s.exptime_s,
            s.cas,
            s.noreply,
            text(s.data)
        ),
        McRequest::Meta(meta) => {
            let flags: Vec<_> = meta
                .tokens()
                .map(|flag| text(&[&[flag.flag], flag.token].concat()))
                .collect();
            let key = text(meta.key.as_bytes());
            let data = text(meta.data);
            format!("{:?} {key} [{}] {data}", meta.verb, flags.join(" "))
        }
        other => format!("{other:?}"),
    }
}

/// Feeds `bytes` at once and compares the steps. The errors are those of memcached 1.6.18 to the same bytes.
fn check(bytes: &[u8], want: &[&str]) {
    let got = feed([bytes], &McLimits::default());
    assert_eq!(got, want, "{}", bytes[..bytes.len().min(80)].escape_ascii());
}

const BAD: &str = "CLIENT_ERROR bad command line format\r\n";
const BAD_CHUNK: &str = "CLIENT_ERROR bad data chunk\r\n";
const TOO_LARGE: &str = "SERVER_ERROR object too large for cache\r\n";
const NO_EXPTIME: &str = "CLIENT_ERROR invalid exptime argument\r\n";
const NO_DELTA: &str = "CLIENT_ERROR invalid numeric delta argument\r\n";
const USAGE: &str = "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]\r\n";
const ERROR: &str = "ERROR\r\n";

fn long_key() -> String {
    "k".repeat(251)
}

#[test]
fn lines_that_are_no_request() {
    for line in [
        "",
        "a",
        "foo",
        "mg",
        "md",
        "ma",
        "ms",
        "mx a",
        "get",
        "gets",
        "gat",
        "set a 0 0",
        "set a 0 0 1 foo bar",
        "cas a 0 0 1",
        "incr a",
        "incr a 1 2 3",
        "touch a",
        "delete",
        "delete a 1 2 3",
        "verbosity",
        "verbosity 1 2 3",
        "flush_all 1 2 3",
        "cache_memlimit",
        "cache_memlimit x",
        "slabs",
        "lru",
        "lru_crawler",
        "   ",
        "mset a",
        "extstore",
        "MG a",
        "get\ta",
        "misbehave",
        "get2 / HTTP/1.1",
    ] {
        check(format!("{line}\r\n").as_bytes(), &[ERROR]);
        check(format!("{line}\n").as_bytes(), &[ERROR]);
    }
    check(b"shutdown\r\n", &["ERROR: shutdown not enabled\r\n"]);
    check(b"GET / HTTP/1.1\r\nset a 0 0 1\r\n", &["close"]);
    check(b"foo HTTP/1.1\r\n", &["close"]);
}

#[test]
fn classic_commands() {
    check(b"get a  b\r\n", &["<Get 0 a,b>"]);
    check(b" get a\r\n", &["<Get 0 a>"]);
    check(b"bget a\n", &["<Get 0 a>"]);
    check(b"gets a\r\n", &["<Gets 0 a>"]);
    check(b"gats -1 a\r\n", &["<Gats -1 a>"]);
    check(b"gats 0\r\n", &["<Gats 0 >"]);
    check(b"gat a\r\n", &[NO_EXPTIME]);
    check(b"gat x a\r\n", &[NO_EXPTIME]);
    check(b"get / HTTP/1.1\r\n", &["<Get 0 /,HTTP/1.1>"]);
    check(format!("get a {}\r\n", long_key()).as_bytes(), &[BAD]);
    check(
        b"incr a 5\r\n",
        &["<Arithmetic(Arithmetic { decrement: false, key: [97], delta: 5, noreply: false })>"],
    );
    check(
        b"decr a 5 noreply\r\n",
        &["<Arithmetic(Arithmetic { decrement: true, key: [97], delta: 5, noreply: true })>"],
    );
    check(b"incr a x\r\n", &[NO_DELTA]);
    check(b"decr a -1\r\n", &[NO_DELTA]);
    check(b"incr a x noreply\r\n", &[""]);
    check(
        b"touch a 0 noreply\r\n",
        &["<Touch(Touch { key: [97], exptime_s: 0, noreply: true })>"],
    );
    check(b"touch a x\r\n", &[NO_EXPTIME]);
}

#[test]
fn deletion_and_administration() {
    for (line, noreply) in [
        ("a", false),
        ("a 0", false),
        ("a noreply", true),
        ("a 0 noreply", true),
    ] {
        let want = format!("<Delete(Delete {{ key: [97], noreply: {noreply} }})>");
        check(format!("delete {line}\r\n").as_bytes(), &[&want]);
    }
    check(b"delete a 1\r\n", &[USAGE]);
    check(b"delete a 0 x\r\n", &[USAGE]);
    check(b"delete a 1 noreply\r\n", &[""]);
    check(
        b"flush_all\r\n",
        &["<FlushAll { delay_s: 0, noreply: false }>"],
    );
    check(
        b"flush_all -1\r\n",
        &["<FlushAll { delay_s: -1, noreply: false }>"],
    );
    check(
        b"flush_all noreply\r\n",
        &["<FlushAll { delay_s: 0, noreply: true }>"],
    );
    check(
        b"flush_all 9 noreply\r\n",
        &["<FlushAll { delay_s: 9, noreply: true }>"],
    );
    check(b"flush_all x\r\n", &[NO_EXPTIME]);
    check(b"flush_all noreply 1\r\n", &[NO_EXPTIME]);
    check(
        b"verbosity 1\r\n",
        &["<Verbosity { level: 1, noreply: false }>"],
    );
    check(b"verbosity x\r\n", &[BAD]);
    check(b"version x y\r\n", &["<Version>"]);
    check(b"quit x\r\nget a\r\n", &["<Quit>"]);
    check(b"stats\r\n", &["<Stats(Tokens([]))>"]);
    check(b"watch\r\n", &["<Watch(Tokens([]))>"]);
    // As memcached's strtol-testing.t wants it.
    check(b"slabs automove invalid\r\n", &[BAD]);
    check(b"slabs automove 9\r\n", &["ERROR\r\n"]);
    check(
        b"slabs automove 1\r\n",
        &["CLIENT_ERROR slab reassignment disabled\r\n"],
    );
    check(
        b"cache_memlimit 64\r\n",
        &["<CacheMemlimit { limit_mib: 64, noreply: false }>"],
    );
    check(
        b"cache_memlimit 7\r\n",
        &["MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m\r\n"],
    );
    for command in [
        "incr {} 1",
        "touch {} 0",
        "delete {}",
        "mg {}",
        "md {}",
        "ma {}",
        "me {}",
    ] {
        check(
            format!("{}\r\n", command.replace("{}", &long_key())).as_bytes(),
            &[BAD],
        );
    }
}

#[test]
fn storage() {
    check(
        b"set a 5 -1 3\r\na\r\n\r\n",
        &["<Set a 5 -1 0 false a\\r\\n>"],
    );
    check(b"set a 0 0 0\n\r\n", &["<Set a 0 0 0 false >"]);
    check(
        b"cas a +1 0 1 7 noreply\r\nq\r\n",
        &["<Cas a 1 0 7 true q>"],
    );
    check(
        b"set a 4294967296 0 4294967297 foo\r\nq\r\n",
        &["<Set a 0 0 0 false q>"],
    );
    check(b"set a 0\t1 0 1\r\nq\r\n", &["<Set a 0 0 0 false q>"]);
    for verb in ["add", "replace", "append", "prepend"] {
        let bytes = format!("{verb} a 0 0 1\r\nq\r\nmn\r\n");
        let name = verb[..1].to_uppercase() + &verb[1..];
        check(
            bytes.as_bytes(),
            &[&format!("<{name} a 0 0 0 false q>"), "<MetaNoop>"],
        );
    }
    // The bytes announced are taken; what stands behind them is the next line.
    check(b"set a 0 0 1\r\nabc\r\n", &[BAD_CHUNK, ERROR]);
    check(b"set a 0 0 1 noreply\r\nqq\r\n", &["", ERROR]);
    check(
        b"set a 0 0 5\r\nq\r\nmn\r\nmn\r\n",
        &["<Set a 0 0 0 false q\\r\\nmn>", "<MetaNoop>"],
    );
    // Where the length is not believed, the data are lines.
    for line in ["x 0 1", "0 x 1", "-1 0 1", "0 0 x"] {
        check(format!("set a {line}\r\nq\r\n").as_bytes(), &[BAD, ERROR]);
    }
    check(b"set a 0 0 -1\r\nget a\r\n", &[BAD, "<Get 0 a>"]);
    check(b"set a 0 0 2147483647\r\n", &[BAD]);
    check(b"cas a 0 0 1 x\r\nq\r\n", &[BAD, ERROR]);
    check(
        format!("set {} 0 0 1\r\nq\r\n", long_key()).as_bytes(),
        &[BAD, ERROR],
    );
}

#[test]
fn values_that_are_too_large_are_skipped() {
    let mut bytes = b"set a 0 0 1048576\r\n".to_vec();
    bytes.resize(bytes.len() + 1_048_576, b'x');
    bytes.extend_from_slice(b"\r\nmn\r\n");
    let unlinked = format!("{TOO_LARGE}unlink a");
    check(&bytes, &[&unlinked, "<MetaNoop>"]);
    let quiet = [b"add a 0 0 1048576 noreply\r\n", &bytes[19..]].concat();
    check(&quiet, &["", "<MetaNoop>"]);
    let meta = [b"ms YQ== 1048576 b q\r\n", &bytes[19..]].concat();
    check(&meta, &[&unlinked, "<MetaNoop>"]);
    // 48 + 2 + 2 + 8 bytes around the value.
    let fits = [
        b"set a 0 0 1048516\r\n",
        &b"x".repeat(1_048_516)[..],
        b"\r\n",
    ]
    .concat();
    let steps = feed(fits.chunks(4096), &McLimits::default());
    assert!(steps[0].starts_with("<Set a"));
    check(b"set a 0 0 1048517\r\n", &[&unlinked]);
    let mut parser = McParser::new();
    let mut at = 0;
    let step = parser.next(&fits[..100], &mut at, &McLimits::default());
    assert!(matches!(step, McParsed::NeedMore));
    assert_eq!((at, parser.needs()), (0, Some(fits.len() - 100)));
}

#[test]
fn meta_commands() {
    check(b"mn x\r\n", &["<MetaNoop>"]);
    check(b"me a\r\n", &["<MetaDebug(Plain([97]))>"]);
    check(b"me YQ== b\r\n", &["<MetaDebug(Binary([97]))>"]);
    for line in [
        "me", "me !!! b", "ms a", "ms a x", "ms a -1", "ms a S1", "mg a Fx",
    ] {
        check(format!("{line}\r\n").as_bytes(), &[BAD]);
    }
    check(b"mg a v  k O12 q\r\n", &["<Get a [v k O12 q] >"]);
    check(b"mg Zm9v b k\r\n", &["<Get foo [b k] >"]);
    check(
        b"md a q x I C7 E8 T9\r\n",
        &["<Delete a [q x I C7 E8 T9] >"],
    );
    check(
        b"ma a M+ N0 J5 D2 v\r\n",
        &["<Arithmetic a [M+ N0 J5 D2 v] >"],
    );
    check(
        b"ms Zm9v 2 b k O1 c MA\r\nhi\r\n",
        &["<Set foo [b k O1 c MA] hi>"],
    );
    check(b"ms a 1 q\r\nqq\r\n", &[BAD_CHUNK, ERROR]);
}

#[test]
fn meta_flags_that_are_refused() {
    let table = [
        ("v v", "duplicate flag"),
        ("$", "invalid flag"),
        ("Tx", "bad token in command line format"),
        ("T", "bad token in command line format"),
        ("Nx", "bad token in command line format"),
        ("Rx", "bad token in command line format"),
        ("Cx", "bad token in command line format"),
        ("Ex", "bad token in command line format"),
        ("MXX", "incorrect length for M token"),
        ("M", "incorrect length for M token"),
        ("Jx", "invalid numeric initial value"),
        ("Dx", "invalid numeric delta value"),
        ("Tx Dx", "invalid numeric delta value"),
        ("Tx Fx", "bad token in command line format"),
        ("Fx", "bad command line format"),
        ("~", "invalid flag"),
        ("\u{7f}", "duplicate flag"),
        (&format!("O{}", "o".repeat(32)), "opaque token too long"),
    ];
    for (flags, want) in table {
        let want = format!("CLIENT_ERROR {want}\r\n");
        check(format!("mg a {flags}\r\n").as_bytes(), &[&want]);
        // Here the length is known, so the data are skipped.
        check(
            format!("ms a 1 {flags}\r\nq\r\nmn\r\n").as_bytes(),
            &[&want, "<MetaNoop>"],
        );
        let coarse = if flags.starts_with('O') {
            want
        } else {
            "CLIENT_ERROR invalid or duplicate flag\r\n".into()
        };
        for verb in ["md", "ma"] {
            check(format!("{verb} a {flags}\r\n").as_bytes(), &[&coarse]);
        }
    }
    check(b"mg !! b\r\n", &["CLIENT_ERROR error decoding key\r\n"]);
    check(b"mg Zm9 b\r\n", &["CLIENT_ERROR error decoding key\r\n"]);
    check(
        format!("mg a O{}\r\n", "o".repeat(31)).as_bytes(),
        &[&format!("<Get a [O{}] >", "o".repeat(31))],
    );
    let many = "b f h k l q s t u v c I P L J1 D1 F1 O1";
    check(
        format!("mg a {many}\r\n").as_bytes(),
        &["CLIENT_ERROR options flags are too long\r\n"],
    );
    check(
        format!("md a {many}\r\n").as_bytes(),
        &["CLIENT_ERROR options flags too long\r\n"],
    );
    check(
        b"ms a 1 Me\r\nq\r\nmn\r\n",
        &["CLIENT_ERROR invalid mode for ms M token\r\n", "<MetaNoop>"],
    );
    check(
        b"ma a Mi\r\n",
        &["CLIENT_ERROR invalid mode for ma M token\r\n"],
    );
    let long = long_key();
    check(
        format!("ms {long} 1\r\nq\r\nmn\r\n").as_bytes(),
        &[BAD, ERROR, "<MetaNoop>"],
    );
}

#[test]
fn meta_flags_have_their_meaning() {
    let line = b"mg a q v u h I x N-1 T2 R3 F4 C5 E6 MI J7 D8\r\n";
    let mut parser = McParser::new();
    let McParsed::Request(McRequest::Meta(meta)) = parser.next(line, &mut 0, &McLimits::default())
    else {
        panic!("a meta request");
    };
    let flags = meta.flags;
    assert_eq!(meta.verb, MetaVerb::Get);
    assert!(flags.quiet && flags.value && flags.no_update && flags.wants_access_info);
    assert!(flags.invalidate && flags.remove_value);
    assert_eq!(
        (flags.vivify_s, flags.ttl_s, flags.recache_s),
        (Some(-1), Some(2), Some(3))
    );
    assert_eq!(
        (flags.client_flags, flags.cas, flags.new_cas),
        (4, Some(5), Some(6))
    );
    assert_eq!((flags.mode, flags.initial, flags.delta), (Some(b'I'), 7, 8));
}

#[test]
fn lines_without_end_are_given_up() {
    let limits = McLimits {
        multiget_line_bytes: 5000,
        ..McLimits::default()
    };
    let line = |head: &str, len: usize| {
        let mut bytes = head.as_bytes().to_vec();
        bytes.resize(len, b'x');
        bytes
    };
    assert_eq!(feed([&line("", 2048)[..]], &limits), [] as [&str; 0]);
    assert_eq!(feed([&line("", 2049)[..]], &limits), ["close"]);
    assert_eq!(feed([&line("gat 0 ", 2049)[..]], &limits), ["close"]);
    assert_eq!(
        feed([&line(&" ".repeat(101), 2049)[..]], &limits),
        ["close"]
    );
    assert_eq!(
        feed(line("get ", 5000).chunks(100), &limits),
        [] as [&str; 0]
    );
    assert_eq!(
        feed(line("gets ", 5001).chunks(100), &limits),
        ["CLIENT_ERROR line too long\r\nclose"]
    );
    let many = format!("get {}\r\n", "key ".repeat(10_000));
    let steps = feed(many.as_bytes().chunks(1000), &McLimits::default());
    assert_eq!(steps[0].matches("key").count(), 10_000);
}

fn stream() -> impl Strategy<Value = Vec<u8>> {
    let verb = prop::sample::select(vec![
        "get",
        "gets",
        "gat",
        "set",
        "cas",
        "append",
        "incr",
        "touch",
        "delete",
        "flush_all",
        "mg",
        "ms",
        "md",
        "ma",
        "mn",
        "me",
        "verbosity",
        "stats",
        "foo",
        "GET",
    ]);
    let word = prop::sample::select(vec![
        "a", "0", "1", "3", "-1", "noreply", "b", "v", "q", "O1", "MA", "Tx", "YQ==", "HTTP/1",
        "60", "F1",
    ]);
    let line = (verb, prop::collection::vec(word, 0..7), "\r?\n")
        .prop_map(|(verb, words, end)| format!("{verb} {}{end}", words.join(" ")).into_bytes());
    let data = "[a-c\r\n ]{0,6}\r\n".prop_map(String::into_bytes);
    let noise = prop::collection::vec(any::<u8>(), 0..12);
    prop::collection::vec(prop_oneof![5 => line, 3 => data, 1 => noise], 0..10)
        .prop_map(|parts| parts.concat())
}

fn cut(bytes: &[u8], mut places: Vec<usize>) -> Vec<&[u8]> {
    places
        .iter_mut()
        .for_each(|place| *place %= bytes.len() + 1);
    places.extend([0, bytes.len()]);
    places.sort_unstable();
    places.windows(2).map(|w| &bytes[w[0]..w[1]]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(3000) })]

    #[test]
    fn no_cut_matters(bytes in stream(), places in prop::collection::vec(any::<usize>(), 0..6)) {
        let limits = McLimits { item_bytes: 100, ..McLimits::default() };
        let once = feed([&bytes[..]], &limits);
        prop_assert_eq!(&once, &feed(cut(&bytes, places), &limits));
        prop_assert_eq!(&once, &feed(bytes.chunks(1), &limits));
    }

    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        feed([&bytes[..]], &McLimits::default());
    }
}
