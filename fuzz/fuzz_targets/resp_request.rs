//! A RESP stream gives the same commands however it is cut, and never a panic or memory without bound.
//! The first byte says how it is cut.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pantala_protocol::{
    Args, Limits, OwnedArgs, Parsed, Parser, ProtocolError, Span, write_command,
};

type Commands = Vec<Vec<Vec<u8>>>;

fn owned(args: Args<'_>) -> Vec<Vec<u8>> {
    args.iter().map(<[u8]>::to_vec).collect()
}

fn feed(bytes: &[u8], piece: usize, limits: &Limits) -> (Commands, Option<ProtocolError>) {
    let mut parser = Parser::new();
    let mut buf = Vec::new();
    let mut commands = Vec::new();
    for chunk in bytes.chunks(piece) {
        buf.extend_from_slice(chunk);
        let mut at = 0;
        let mut spans: Vec<Span> = Vec::new();
        loop {
            let before = at;
            match parser.next(&buf, &mut at, &mut spans, limits) {
                Parsed::Command { spans: range } => {
                    commands.push(owned(Args::new(&buf, &spans[range])));
                }
                Parsed::Decoded(args) => commands.push(owned(args.as_args())),
                Parsed::Empty => {}
                Parsed::NeedMore => break,
                Parsed::Error(error) => {
                    error.write_reply(&mut Vec::new());
                    return (commands, Some(error));
                }
            }
            assert!(at > before && at <= buf.len());
        }
        assert!(parser.allocated_bytes() <= 4 * buf.len() + 8192);
        buf.drain(..at);
    }
    (commands, None)
}

fuzz_target!(|input: &[u8]| {
    let Some((&cut, bytes)) = input.split_first() else {
        return;
    };
    let limits = Limits {
        inline_bytes: 256,
        unauthenticated: cut & 0x80 != 0,
        ..Limits::default()
    };
    let whole = feed(bytes, bytes.len().max(1), &limits);
    assert_eq!(whole, feed(bytes, usize::from(cut & 0x7f) + 1, &limits));

    let mut written = Vec::new();
    for args in &whole.0 {
        write_command(&mut written, args);
        let copy: OwnedArgs = args.iter().collect();
        assert_eq!(&owned(copy.as_args()), args);
    }
    let (again, error) = feed(&written, written.len().max(1), &Limits::default());
    assert_eq!((again, error), (whole.0, None));
});
