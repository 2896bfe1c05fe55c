//! A memcached stream gives the same requests however it is cut, and never a panic or memory without bound.
//! The first byte says how it is cut.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pantala_protocol::memcached::{KEY_BYTES_MAX, McLimits, McParsed, McParser, McRequest};

fn feed(bytes: &[u8], piece: usize, limits: &McLimits) -> Vec<String> {
    let mut parser = McParser::new();
    let mut buf = Vec::new();
    let mut steps = Vec::new();
    for chunk in bytes.chunks(piece) {
        buf.extend_from_slice(chunk);
        let mut at = 0;
        loop {
            let before = at;
            match parser.next(&buf, &mut at, limits) {
                McParsed::Request(request) => {
                    check(&request);
                    steps.push(format!("{request:?}"));
                }
                McParsed::NeedMore => break,
                McParsed::Error(error) => {
                    error.write_reply(&mut Vec::new());
                    steps.push(format!("{error:?}"));
                    if error.close {
                        return steps;
                    }
                }
            }
            assert!(at > before && at <= buf.len());
        }
        buf.drain(..at);
        assert!(buf.len() <= limits.multiget_line_bytes + limits.item_bytes + 64);
    }
    steps
}

fn check(request: &McRequest<'_>) {
    let key = match request {
        McRequest::Store(store) => store.key,
        McRequest::Meta(meta) => {
            assert!(meta.tokens().count() < 20);
            meta.key.as_bytes()
        }
        McRequest::Touch(touch) => touch.key,
        McRequest::Delete(delete) => delete.key,
        McRequest::Get(get) => {
            assert!(get.keys.clone().all(|key| key.len() <= KEY_BYTES_MAX));
            return;
        }
        _ => return,
    };
    assert!(key.len() <= KEY_BYTES_MAX);
}

fuzz_target!(|input: &[u8]| {
    let Some((&cut, bytes)) = input.split_first() else {
        return;
    };
    // Whether a long line is given up depends on where its end is first looked for, so no line is that long here.
    let limits = McLimits {
        line_bytes: 1 << 20,
        multiget_line_bytes: 1 << 20,
        item_bytes: 200,
    };
    let whole = feed(bytes, bytes.len().max(1), &limits);
    assert_eq!(whole, feed(bytes, usize::from(cut) + 1, &limits));
});
