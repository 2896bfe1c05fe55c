//! Payloads that Redis 7.0.15 made are read, ours are the same where nothing is compressed, and no bytes do harm.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use pantala_rdb::{
    RdbError, Reader, Restored, Text, VERSION_MAX, crc64, dump_integer, dump_string, restore,
    write_length, write_string,
};
use proptest::prelude::*;

const LIMIT_BYTES: u64 = 1 << 20;

/// Strings with the payloads that `DUMP` of Redis 7.0.15 gave for them.
const STRINGS: &[(&str, &str)] = &[
    ("", "00000a005d9b5c400f7fa2da"),
    ("a", "0001610a00bffeef9b8f367db4"),
    ("0", "00c0000a009840a778f8500308"),
    ("-1", "00c0ff0a000c937e2485089dc5"),
    ("127", "00c07f0a000db5eb315254c514"),
    ("128", "00c180000a00eb7ab3b510cf4b65"),
    ("-128", "00c0800a009966326d2f0c5bd9"),
    ("-129", "00c17fff0a001760822854808480"),
    ("32767", "00c1ff7f0a00495a37da17f4d52b"),
    ("32768", "00c2008000000a0045d82eedd5bda910"),
    ("-32769", "00c2ff7fffff0a00aee34c4d06c68536"),
    ("2147483647", "00c2ffffff7f0a002c74e59ee02eada1"),
    ("2147483648", "000a323134373438333634380a00e7b129a34c1d76ee"),
    ("-2147483648", "00c2000000800a00c74f873e33558187"),
    (
        "-2147483649",
        "000b2d323134373438333634390a00c261377908f2028c",
    ),
    ("007", "00033030370a007258e27b4c69bad9"),
    ("-0", "00022d300a00d5411fd9d6d050cc"),
    ("+1", "00022b310a00c286f0d7439aee6f"),
    (
        "12345678901",
        "000b31323334353637383930310a00304e52d727176510",
    ),
    (
        "hello world",
        "000b68656c6c6f20776f726c640a000bfc49b9a6c7a034",
    ),
    (
        "xxxxxxxxxxxxxxxxxxxx",
        "001478787878787878787878787878787878787878780a005b3c81eca58cc56b",
    ),
    (
        "xxxxxxxxxxxxxxxxxxxxx",
        "00c30615017878e00a000a00941a83676017192f",
    ),
    (
        "abcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabc",
        "00c30b405a0361626361e04b020162630a00238036f9e2d0c780",
    ),
    (
        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxy",
        "00c3094040017878e033000178790a00c84995b8ec2846b6",
    ),
    (
        "qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq",
        "00c30c412c017171e0ff00e017000171710a00e98f80de1e0af45d",
    ),
];

/// Payloads of other types from the same server.
const OTHERS: &[(&str, &str)] = &[
    ("list", "1201020a0a0000000100816102ff0a0009b9edf594ded995"),
    ("set", "0b0a020000000100000001000a00056f61290c490534"),
    ("zset", "110c0c00000002008161020101ff0a00a805ceb8d7a93302"),
    ("hash", "100c0c00000002000101816102ff0a00c0a97767b19f501d"),
    (
        "stream",
        "130110000000000000000100000000000000011d1d0000000a0001010001010181610200010201000100018162020401ff0101010101000001000a006f4334ecd7fa5aec",
    ),
];

fn bytes_of(hex: &str) -> Vec<u8> {
    (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
        .collect()
}

fn text_of(restored: Restored<'_>) -> Vec<u8> {
    match restored {
        Restored::String(Text::Integer(value)) => value.to_string().into_bytes(),
        Restored::String(Text::Bytes(bytes)) => bytes.into_owned(),
    }
}

/// A payload around a type and a value, with a footer that is right.
fn sealed(body: &[u8], version: u16) -> Vec<u8> {
    let mut payload = body.to_vec();
    payload.extend_from_slice(&version.to_le_bytes());
    payload.extend_from_slice(&crc64::checksum(&payload).to_le_bytes());
    payload
}

#[test]
fn payloads_of_redis_are_read() {
    for (text, hex) in STRINGS {
        assert_eq!(
            text_of(restore(&bytes_of(hex), LIMIT_BYTES).unwrap()),
            text.as_bytes()
        );
    }
}

#[test]
fn payloads_are_those_of_redis_where_nothing_is_compressed() {
    for (text, hex) in STRINGS.iter().filter(|(text, _)| text.len() <= 20) {
        assert_eq!(dump_string(text.as_bytes(), true), bytes_of(hex), "{text}");
    }
    for value in [
        0,
        -1,
        127,
        128,
        -128,
        -129,
        32_767,
        32_768,
        -32_769,
        2_147_483_647,
        2_147_483_648,
        i64::MIN,
        i64::MAX,
    ] {
        assert_eq!(
            dump_integer(value),
            dump_string(value.to_string().as_bytes(), true)
        );
    }
}

#[test]
fn other_types_are_refused_by_name() {
    for (name, hex) in OTHERS {
        assert_eq!(
            restore(&bytes_of(hex), LIMIT_BYTES),
            Err(RdbError::UnsupportedType(name))
        );
    }
    assert_eq!(
        restore(&sealed(&[200, 0], 10), LIMIT_BYTES),
        Err(RdbError::UnknownType(200))
    );
}

#[test]
fn the_frame_is_checked() {
    let good = dump_string(b"value", true);
    assert!(restore(&good, LIMIT_BYTES).is_ok());
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 0x40;
        assert!(
            restore(&bad, LIMIT_BYTES).unwrap_err().is_frame(),
            "byte {at}"
        );
        assert!(
            restore(&good[..at], LIMIT_BYTES).unwrap_err().is_frame(),
            "cut at {at}"
        );
    }
    for version in [1, 6, 9, 12, 80, VERSION_MAX] {
        assert_eq!(
            text_of(restore(&sealed(b"\0\x01a", version), LIMIT_BYTES).unwrap()),
            b"a"
        );
    }
    for version in [0, VERSION_MAX + 1, u16::MAX] {
        assert_eq!(
            restore(&sealed(b"\0\x01a", version), LIMIT_BYTES),
            Err(RdbError::Version { found: version })
        );
    }
}

#[test]
fn broken_values_are_refused() {
    let refusal =
        |value: &[u8]| restore(&sealed(&[&[0], value].concat(), 10), LIMIT_BYTES).unwrap_err();
    assert_eq!(refusal(b""), RdbError::Truncated);
    assert_eq!(refusal(b"\x02a"), RdbError::Truncated);
    assert_eq!(refusal(b"\x01ab"), RdbError::TrailingBytes);
    assert_eq!(refusal(b"\x40"), RdbError::Truncated);
    assert_eq!(refusal(b"\x82\0\0\0\0"), RdbError::BadLength);
    assert_eq!(refusal(b"\xc4\0"), RdbError::BadStringEncoding(4));
    assert_eq!(refusal(b"\xc1\0"), RdbError::Truncated);
    assert_eq!(refusal(b"\xc3\xc0\0\0"), RdbError::BadLength);
    assert_eq!(refusal(b"\xc3\x02\x05\0a"), RdbError::BadCompression);
    let too_long = RdbError::TooLong {
        len: LIMIT_BYTES + 1,
        limit_bytes: LIMIT_BYTES,
    };
    assert_eq!(refusal(b"\x80\x00\x10\x00\x01"), too_long);
    assert_eq!(refusal(b"\xc3\x02\x80\x00\x10\x00\x01\0a"), too_long);
    assert_eq!(
        restore(&sealed(b"", 10), LIMIT_BYTES),
        Err(RdbError::Truncated)
    );
    assert!(too_long.to_string().contains("1048577"));
}

#[test]
fn lengths_of_all_forms() {
    for (len, form) in [
        (0u64, 1),
        (63, 1),
        (64, 2),
        (16_383, 2),
        (16_384, 5),
        (u64::from(u32::MAX), 5),
        (1 << 32, 9),
        (u64::MAX, 9),
    ] {
        let mut out = Vec::new();
        write_length(&mut out, len);
        assert_eq!(out.len(), form, "{len}");
        let mut reader = Reader::new(&out, 0);
        assert_eq!((reader.length(), reader.rest()), (Ok(len), &b""[..]));
    }
}

proptest! {
    #[test]
    fn strings_come_back(bytes in prop_oneof![
        prop::collection::vec(any::<u8>(), 0..100),
        prop::collection::vec(0u8..4, 0..5000),
        any::<i32>().prop_map(|value| value.to_string().into_bytes()),
        "-?[0-9]{1,12}".prop_map(String::into_bytes),
    ], compress: bool) {
        let payload = dump_string(&bytes, compress);
        prop_assert!(payload.len() <= bytes.len() + 16);
        prop_assert_eq!(text_of(restore(&payload, LIMIT_BYTES).unwrap()), bytes.clone());
        let mut stream = Vec::new();
        write_string(&mut stream, &bytes, compress);
        write_string(&mut stream, b"next", compress);
        let mut reader = Reader::new(&stream, LIMIT_BYTES);
        reader.string().unwrap();
        prop_assert_eq!(reader.string(), Ok(Text::Bytes(b"next"[..].into())));
    }

    #[test]
    fn any_bytes_are_survived(body in prop::collection::vec(any::<u8>(), 0..60), encoded: bool) {
        let body = if encoded { [&[0, 0xc3], &body[..]].concat() } else { body };
        let payload = sealed(&body, 10);
        if let Ok(restored) = restore(&payload, LIMIT_BYTES) {
            let text = text_of(restored);
            let again = dump_string(&text, true);
            prop_assert_eq!(text_of(restore(&again, LIMIT_BYTES).unwrap()), text);
        }
    }
}
