//! Numbers, against what redis-server 7.0.15 and the C library say.

use pantala_protocol::long_double::LongDouble;
use pantala_protocol::numbers::{
    format_f64, parse_f64, parse_i64, parse_u64, write_f64_shortest, write_f64_stored,
};
use proptest::prelude::*;

#[test]
fn integers_have_one_form() {
    for (text, want) in [
        ("0", Some(0)),
        ("-1", Some(-1)),
        ("9223372036854775807", Some(i64::MAX)),
        ("-9223372036854775808", Some(i64::MIN)),
        ("9223372036854775808", None),
        ("-9223372036854775809", None),
        ("18446744073709551616", None),
        ("123456789012345678901", None),
        ("", None),
        ("-", None),
        ("-0", None),
        ("00", None),
        ("01", None),
        ("+1", None),
        (" 1", None),
        ("1 ", None),
        ("1a", None),
        ("0x1", None),
    ] {
        assert_eq!(parse_i64(text.as_bytes()), want, "{text}");
    }
    assert_eq!(parse_u64(b"18446744073709551615"), Some(u64::MAX));
    assert_eq!(parse_u64(b"18446744073709551616"), None);
    assert_eq!(parse_u64(b"-1"), None);
}

#[test]
fn doubles_are_read_as_by_strtod() {
    for (text, want) in [
        ("1", Some(1.0)),
        ("+1.5", Some(1.5)),
        (".5", Some(0.5)),
        ("5.", Some(5.0)),
        ("1e3", Some(1000.0)),
        ("1E-2", Some(0.01)),
        ("1e+2", Some(100.0)),
        ("0x10", Some(16.0)),
        ("0x.8p1", Some(1.0)),
        ("-0X1.8P-1", Some(-0.75)),
        ("0x1.fffffffffffff8p1023", None),
        ("0x1.fffffffffffff7p1023", Some(f64::MAX)),
        ("0x1.00000000000008p0", Some(1.0)),
        (
            "0x1.000000000000080000000000000000000000000001p0",
            Some(1.0 + f64::EPSILON),
        ),
        ("0x1p-1074", Some(5e-324)),
        ("0x1p-1075", None),
        ("0x1p-99999999999", None),
        ("inf", Some(f64::INFINITY)),
        ("-Infinity", Some(f64::NEG_INFINITY)),
        ("1e308", Some(1e308)),
        ("1e309", None),
        ("1e-400", None),
        ("0e-400", Some(0.0)),
        ("5e-324", Some(5e-324)),
        ("nan", None),
        ("", None),
        (".", None),
        ("-", None),
        ("1e", None),
        ("0x", None),
        ("0x1p", None),
        (" 1", None),
        ("1 ", None),
        ("1\0", None),
        ("infi", None),
        ("1_0", None),
    ] {
        assert_eq!(parse_f64(text.as_bytes()), want, "{text}");
    }
    assert!(parse_f64(b"-0").is_some_and(|zero| zero.is_sign_negative()));
}

/// The right-hand sides are printf's for `%.17g`.
#[test]
fn doubles_are_written_as_by_printf() {
    for (value, want) in [
        (0.0, "0"),
        (-0.0, "-0"),
        (3.0, "3"),
        (-1234567.0, "-1234567"),
        (0.1, "0.10000000000000001"),
        (-2.5, "-2.5"),
        (1e16, "10000000000000000"),
        (1e17, "1e+17"),
        (1.5e300, "1.5000000000000001e+300"),
        (123456789012345680.0, "1.2345678901234568e+17"),
        (12345678901234568.0, "12345678901234568"),
        (0.0001, "0.0001"),
        (0.00001, "1.0000000000000001e-05"),
        (5e-324, "4.9406564584124654e-324"),
        (f64::MAX, "1.7976931348623157e+308"),
        (f64::INFINITY, "inf"),
        (f64::NEG_INFINITY, "-inf"),
        (f64::NAN, "nan"),
        // Ties go to the even digit.
        (2f64.powi(-25), "2.9802322387695312e-08"),
        (9007199254740993.0, "9007199254740992"),
    ] {
        assert_eq!(format_f64(value), want);
    }
}

#[test]
fn doubles_are_stored_and_sent_as_by_each_version() {
    for (value, stored, shortest) in [
        (1.1, "1.1000000000000001", "1.1"),
        (-0.0, "-0", "-0"),
        (1e17, "100000000000000000", "100000000000000000"),
        (
            4611686018427387904.0,
            "4611686018427387904",
            "4611686018427387904",
        ),
        (1e19, "1e+19", "1e+19"),
        (1e-7, "9.9999999999999995e-08", "1e-7"),
        (0.000001, "9.9999999999999995e-07", "0.000001"),
        (1.5e-7, "1.4999999999999999e-07", "1.5e-7"),
        (-12345.6789012, "-12345.678901200001", "-1.23456789012e+4"),
        (1e300, "1.0000000000000001e+300", "1e+300"),
        (f64::INFINITY, "inf", "inf"),
    ] {
        let text = |write: fn(&mut Vec<u8>, f64)| {
            let mut out = Vec::new();
            write(&mut out, value);
            String::from_utf8(out).expect("numbers are ASCII")
        };
        assert_eq!(text(write_f64_stored), stored);
        assert_eq!(text(write_f64_shortest), shortest);
    }
}

fn increment(start: &str, by: &str) -> Option<String> {
    let sum =
        LongDouble::parse(start.as_bytes())?.checked_add(LongDouble::parse(by.as_bytes())?)?;
    sum.is_finite().then(|| sum.to_string())
}

/// The right-hand sides are what redis-server 7.0.15 replied to `SET k <start>` and `INCRBYFLOAT k <by>`.
#[test]
fn increments_give_the_digits_of_redis() {
    for (start, by, want) in include!("incrbyfloat.in") {
        assert_eq!(increment(start, by).as_deref(), want, "{start} + {by}");
    }
}

#[test]
fn long_doubles_at_the_edges() {
    let text = |text: &str| LongDouble::parse(text.as_bytes()).map(|value| value.to_string());
    assert_eq!(text("-0").as_deref(), Some("0"));
    assert_eq!(text("-1e-20").as_deref(), Some("0"));
    assert_eq!(text("0x1.8p1").as_deref(), Some("3"));
    assert_eq!(text("inf").as_deref(), Some("inf"));
    assert_eq!(text("1e4933"), None);
    assert_eq!(text("1e-4960"), None);
    assert_eq!(text("1e-4950").as_deref(), Some("0"));
    assert_eq!(text(&"1".repeat(5119)), None);
    assert_eq!(text(&"0".repeat(5120)), None);
    assert_eq!(text("0e99999999999999999999").as_deref(), Some("0"));
    let infinite =
        |sign: &str| LongDouble::parse(format!("{sign}inf").as_bytes()).expect("a number");
    assert_eq!(infinite("").checked_add(infinite("-")), None);
    assert_eq!(LongDouble::from_f64(1.1).to_string(), "1.10000000000000009");
    assert_eq!(
        LongDouble::from_f64(f64::MIN_POSITIVE / 4.0).to_string(),
        "0"
    );
    assert_eq!(
        LongDouble::from_i64(i64::MIN).to_string(),
        i64::MIN.to_string()
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

    #[test]
    fn an_integer_is_what_prints_as_itself(text in "-?[0-9]{0,21}", n in any::<i64>()) {
        prop_assert_eq!(parse_i64(n.to_string().as_bytes()), Some(n));
        let prints_so = text.parse::<i64>().ok().filter(|n| n.to_string() == text);
        prop_assert_eq!(parse_i64(text.as_bytes()), prints_so);
    }

    #[test]
    fn doubles_survive(bits in any::<u64>()) {
        let value = f64::from_bits(bits);
        prop_assume!(value.is_finite());
        prop_assert_eq!(parse_f64(format_f64(value).as_bytes()), Some(value));
        let mut short = Vec::new();
        write_f64_shortest(&mut short, value);
        prop_assert_eq!(parse_f64(&short), Some(value));
    }

    #[test]
    fn integers_add_up(a in any::<i32>(), b in any::<i32>()) {
        let sum = increment(&a.to_string(), &b.to_string());
        prop_assert_eq!(sum, Some((i64::from(a) + i64::from(b)).to_string()));
    }

    #[test]
    fn any_text_is_survived(text in "[-+.0-9eExXpPinfa]{0,24}") {
        if let Some(value) = LongDouble::parse(text.as_bytes()) {
            let _ = value.to_string();
        }
        let _ = parse_f64(text.as_bytes());
    }
}
