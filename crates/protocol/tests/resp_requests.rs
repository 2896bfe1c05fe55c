//! The RESP request parser: what it accepts, the exact errors, and that no cut of the stream matters.

use pantala_protocol::{Limits, OwnedArgs, Parsed, Parser, ProtocolError, Span, write_command};
use proptest::prelude::*;

/// What a stream amounts to.
#[derive(Debug, PartialEq)]
struct Outcome {
    commands: Vec<Vec<Vec<u8>>>,
    error: Option<ProtocolError>,
}

/// Feeds `pieces` one after the other and moves the unparsed bytes to the front in between, as a connection does.
fn feed<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, limits: &Limits) -> Outcome {
    let mut parser = Parser::new();
    let mut buf = Vec::new();
    let mut commands = Vec::new();
    for piece in pieces {
        buf.extend_from_slice(piece);
        let mut at = 0;
        let mut spans: Vec<Span> = Vec::new();
        loop {
            let before = at;
            match parser.next(&buf, &mut at, &mut spans, limits) {
                Parsed::Command { spans: range } => {
                    let args = pantala_protocol::Args::new(&buf, &spans[range]);
                    commands.push(args.iter().map(<[u8]>::to_vec).collect());
                }
                Parsed::Decoded(args) => {
                    commands.push(args.as_args().iter().map(<[u8]>::to_vec).collect());
                }
                Parsed::Empty => {}
                Parsed::NeedMore => break,
                Parsed::Error(error) => {
                    return Outcome {
                        commands,
                        error: Some(error),
                    };
                }
            }
            assert!(at > before, "progress");
            assert_eq!(parser.needs(), None);
            assert!(!parser.in_command());
        }
        // 8 bytes per argument, an argument takes 6, and a vector doubles.
        assert!(parser.allocated_bytes() <= 4 * buf.len() + 8192);
        buf.drain(..at);
    }
    Outcome {
        commands,
        error: None,
    }
}

fn whole(bytes: &[u8], limits: &Limits) -> Outcome {
    feed([bytes], limits)
}

fn error_reply(bytes: &[u8], limits: &Limits) -> Vec<u8> {
    let mut out = Vec::new();
    if let Some(error) = whole(bytes, limits).error {
        error.write_reply(&mut out);
    }
    out
}

/// The replies are those of redis-server 7.0.15 to the same bytes.
#[test]
fn errors_read_as_those_of_redis() {
    let invalid_count = "invalid multibulk length";
    let invalid_bulk = "invalid bulk length";
    let unbalanced = "unbalanced quotes in request";
    let table: &[(&[u8], &str)] = &[
        (b"*abc\r\n", invalid_count),
        (b"*2147483648\r\n", invalid_count),
        (b"*\r\n", invalid_count),
        (b"*+1\r\n", invalid_count),
        (b"*01\r\n", invalid_count),
        (b"*00\r\n", invalid_count),
        (b"*-0\r\n", invalid_count),
        (b"*1\r\nx4\r\n", "expected '$', got 'x'"),
        (b"*1\r\n\r\n", "expected '$', got ' '"),
        (b"*1\r\n\n4\r\n", "expected '$', got ' '"),
        (
            b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n#1\r\n",
            "expected '$', got '#'",
        ),
        (b"*1\r\n$-1\r\n", invalid_bulk),
        (b"*1\r\n$536870913\r\n", invalid_bulk),
        (b"*1\r\n$x\r\n", invalid_bulk),
        (b"*1\r\n$\r\n", invalid_bulk),
        (b"*1\r\n$01\r\n", invalid_bulk),
        (b"\"abc\r\n", unbalanced),
        (b"\"abc\"d\r\n", unbalanced),
        (b"'abc\r\n", unbalanced),
        (b"'a\\\\'\r\n", unbalanced),
        (b"echo \"a\r\r\n", unbalanced),
        (b"*1\r\n$4\r\nPING\r\n", ""),
        (b"*11\r\n", ""),
        (b"*1\r\n$16385\r\n", ""),
    ];
    for (bytes, want) in table {
        let want = match *want {
            "" => String::new(),
            text => format!("-ERR Protocol error: {text}\r\n"),
        };
        let got = error_reply(bytes, &Limits::default());
        assert_eq!(
            got.escape_ascii().to_string(),
            want.as_bytes().escape_ascii().to_string()
        );
    }
    // A byte beyond ASCII is shown as it is.
    assert_eq!(
        error_reply(b"*1\r\n\xffa\r\n", &Limits::default()),
        b"-ERR Protocol error: expected '$', got '\xff'\r\n"
    );
}

#[test]
fn lines_without_end_are_given_up() {
    let long = |head: &str, fill: u8| {
        let mut bytes = head.as_bytes().to_vec();
        bytes.resize(70_000, fill);
        bytes
    };
    let limits = Limits::default();
    for (bytes, want) in [
        (long("*", b'1'), ProtocolError::TooBigMultibulkCount),
        (long("*1\r\n", b'$'), ProtocolError::TooBigBulkCount),
        (long("", b'x'), ProtocolError::TooBigInline),
    ] {
        assert_eq!(whole(&bytes, &limits).error, Some(want));
        assert_eq!(feed(bytes.chunks(1000), &limits).error, Some(want));
    }
    let mut fits = vec![b'x'; 64 * 1024];
    fits.push(b'\n');
    assert_eq!(whole(&fits, &limits).commands.len(), 1);
    fits.insert(0, b'x');
    assert_eq!(
        whole(&fits, &limits).error,
        Some(ProtocolError::TooBigInline)
    );
}

#[test]
fn before_authentication_limits_are_small() {
    let limits = Limits {
        unauthenticated: true,
        ..Limits::default()
    };
    assert_eq!(
        error_reply(b"*11\r\n", &limits),
        b"-ERR Protocol error: unauthenticated multibulk length\r\n"
    );
    assert_eq!(
        error_reply(b"*1\r\n$16385\r\n", &limits),
        b"-ERR Protocol error: unauthenticated bulk length\r\n"
    );
    assert_eq!(whole(b"*10\r\n$16384\r\n", &limits).error, None);
    assert_eq!(whole(b"*1\r\n$4\r\nPING\r\n", &limits).commands.len(), 1);
}

#[test]
fn what_redis_skips_is_skipped() {
    let ping = vec![vec![b"PING".to_vec()]];
    for bytes in [
        &b"*-1\r\n*1\r\n$4\r\nPING\r\n"[..],
        b"*0\r\n*1\r\n$4\r\nPING\r\n",
        b"*1\rX$4\rYPINGzz",
        b"\r\n\r\nPING\r\n",
        b"  PING  \r\n",
        b"PING\n",
        b"\"PING\"\n",
    ] {
        assert_eq!(whole(bytes, &Limits::default()).commands, ping);
    }
}

#[test]
fn a_large_value_is_waited_for_by_its_length() {
    let mut parser = Parser::new();
    let mut buf = b"*2\r\n$3\r\nGET\r\n$1000000\r\nabc".to_vec();
    let mut spans = Vec::new();
    let mut at = 0;
    let limits = Limits::default();
    assert!(matches!(
        parser.next(&buf, &mut at, &mut spans, &limits),
        Parsed::NeedMore
    ));
    assert_eq!((parser.needs(), at, spans.len()), (Some(999_999), 0, 0));
    assert!(parser.in_command());
    buf.resize(buf.len() + 999_999, b'x');
    assert!(matches!(
        parser.next(&buf, &mut at, &mut spans, &limits),
        Parsed::Command { .. }
    ));
    assert_eq!(
        (at, spans[1].len, parser.needs()),
        (buf.len(), 1_000_000, None)
    );
}

#[test]
fn a_million_arguments_in_small_pieces() {
    let mut bytes = b"*1000000\r\n".to_vec();
    bytes.extend(b"$1\r\nx\r\n".repeat(1_000_000));
    let outcome = feed(bytes.chunks(16 * 1024), &Limits::default());
    assert_eq!(outcome.commands[0].len(), 1_000_000);
    // An announced length alone takes no memory.
    let mut parser = Parser::new();
    let step = parser.next(
        b"*2147483647\r\n",
        &mut 0,
        &mut Vec::new(),
        &Limits::default(),
    );
    assert!(matches!(step, Parsed::NeedMore));
    assert_eq!(parser.allocated_bytes(), 0);
}

/// Streams that are nearly right, which random bytes never are.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let argument = prop::collection::vec(any::<u8>(), 0..20);
    let command = prop::collection::vec(argument, 1..6).prop_map(|args| {
        let mut out = Vec::new();
        write_command(&mut out, &args);
        out
    });
    let text = "[a-c '\"\\\\x0-9]{0,20}\r?\n".prop_map(String::into_bytes);
    let broken = prop_oneof![
        Just(b"*1\r\n$-1\r\n".to_vec()),
        Just(b"*-5\r\n".to_vec()),
        Just(b"*2\r\n$1\rxy".to_vec()),
        Just(b"*0\r\n".to_vec()),
        prop::collection::vec(any::<u8>(), 0..12),
    ];
    let part = prop_oneof![6 => command, 2 => text, 1 => broken];
    prop::collection::vec(part, 0..8).prop_map(|parts| parts.concat())
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
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

    #[test]
    fn no_cut_matters(bytes in stream(), places in prop::collection::vec(any::<usize>(), 0..6)) {
        let limits = Limits { inline_bytes: 64, ..Limits::default() };
        let once = whole(&bytes, &limits);
        prop_assert_eq!(&once, &feed(cut(&bytes, places), &limits));
        prop_assert_eq!(&once, &feed(bytes.chunks(1), &limits));
    }

    #[test]
    fn written_commands_are_read_back(
        commands in prop::collection::vec(prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 1..12), 1..5)
    ) {
        let mut bytes = Vec::new();
        for args in &commands {
            write_command(&mut bytes, args);
            let owned: OwnedArgs = args.iter().collect();
            prop_assert!(owned.as_args().iter().eq(args.iter().map(Vec::as_slice)));
        }
        prop_assert_eq!(whole(&bytes, &Limits::default()), Outcome { commands, error: None });
    }

    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        whole(&bytes, &Limits::default());
        whole(&bytes, &Limits { unauthenticated: true, bulk_bytes: u64::MAX, ..Limits::default() });
    }
}
