//! The reply reader gives the same values however the stream is cut; and numbers read from it are written back the same.
//! The first byte says how it is cut.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pantala_protocol::client::{ReplyError, ReplyReader, Value};
use pantala_protocol::long_double::LongDouble;
use pantala_protocol::numbers::{format_f64, parse_f64, parse_i64};

fn feed(bytes: &[u8], piece: usize) -> (Vec<String>, Option<ReplyError>) {
    let mut reader = ReplyReader::new();
    let mut buf = Vec::new();
    let mut values = Vec::new();
    for chunk in bytes.chunks(piece) {
        buf.extend_from_slice(chunk);
        let mut at = 0;
        loop {
            match reader.next(&buf, &mut at) {
                Ok(Some(value)) => values.push(format!("{value:?}")),
                Ok(None) => break,
                Err(error) => return (values, Some(error)),
            }
        }
        buf.drain(..at);
    }
    (values, None)
}

fn numbers(text: &[u8]) {
    if let Some(value) = parse_f64(text) {
        let back = parse_f64(format_f64(value).as_bytes());
        assert_eq!(back.map(f64::to_bits), Some(value.to_bits()));
    }
    if let Some(value) = parse_i64(text) {
        assert_eq!(value.to_string().as_bytes(), text);
    }
    if let Some(value) = LongDouble::parse(text) {
        let written = value.to_string();
        let again = LongDouble::parse(written.as_bytes());
        // 17 decimals are not always enough for the same number, but for the same text.
        assert_eq!(again.map(|again| again.to_string()), Some(written));
        if let Some(sum) = value.checked_add(value) {
            let _ = sum.to_string();
        }
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((&cut, bytes)) = input.split_first() else {
        return;
    };
    numbers(bytes);
    let whole = feed(bytes, bytes.len().max(1));
    assert_eq!(whole, feed(bytes, usize::from(cut) + 1));
    let mut reader = ReplyReader::new();
    if let Ok(Some(Value::Double(value))) = reader.next(bytes, &mut 0) {
        assert!(value.is_nan() || parse_f64(format_f64(value).as_bytes()) == Some(value));
    }
});
