//! `DEBUG PROTOCOL`: one reply of each type, for the tests of clients.

use pantala_commands::Error;
use pantala_protocol::{Proto, Reply};

const KINDS: &str =
    "string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false";

/// Writes the reply of the named type.
pub(super) fn reply(reply: &mut Reply<'_>, kind: &[u8]) -> Result<(), Error> {
    match kind.to_ascii_lowercase().as_slice() {
        b"string" => reply.bulk_str("Hello World"),
        b"integer" => reply.integer(12_345),
        b"double" => reply.double_text(b"3.141"),
        b"bignum" => reply.big_number("1234567999999999999999999999999999999"),
        b"null" => reply.null(),
        b"array" => {
            reply.array(3);
            (0..3).for_each(|number| reply.integer(number));
        }
        b"set" => {
            reply.set(3);
            (0..3).for_each(|number| reply.integer(number));
        }
        b"map" => {
            reply.map(3);
            for number in 0..3 {
                reply.integer(number);
                reply.boolean(number == 1);
            }
        }
        b"attrib" => {
            if reply.proto() == Proto::Resp3 {
                reply.attribute(1);
                reply.bulk_str("key-popularity");
                reply.array(2);
                reply.bulk_str("key:123");
                reply.integer(90);
            }
            // RESP2 knows no attributes: there the reply stands alone.
            reply.bulk_str("Some real reply following the attribute");
        }
        b"push" => {
            if reply.proto() == Proto::Resp2 {
                return Err(Error::text("ERR RESP2 is not supported by this command"));
            }
            reply.push(2);
            reply.bulk_str("server-cpu-usage");
            reply.integer(42);
            reply.bulk_str("Some real reply following the push reply");
        }
        b"verbatim" => reply.verbatim("txt", b"This is a verbatim\nstring"),
        b"true" => reply.boolean(true),
        b"false" => reply.boolean(false),
        _ => {
            return Err(Error::owned(format!(
                "ERR Wrong protocol type name. Please use one of the following: {KINDS}"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(kind: &str, proto: Proto) -> String {
        let mut out = Vec::new();
        match reply(&mut Reply::new(&mut out, proto), kind.as_bytes()) {
            Ok(()) => String::from_utf8(out)
                .expect("all of it is text")
                .replace("\r\n", " "),
            Err(error) => error.message().to_owned(),
        }
    }

    #[test]
    fn each_type_is_what_redis_sends() {
        let table = [
            ("string", "$11 Hello World ", "$11 Hello World "),
            ("integer", ":12345 ", ":12345 "),
            ("double", "$5 3.141 ", ",3.141 "),
            (
                "bignum",
                "$37 1234567999999999999999999999999999999 ",
                "(1234567999999999999999999999999999999 ",
            ),
            ("null", "$-1 ", "_ "),
            ("array", "*3 :0 :1 :2 ", "*3 :0 :1 :2 "),
            ("set", "*3 :0 :1 :2 ", "~3 :0 :1 :2 "),
            ("MAP", "*6 :0 :0 :1 :1 :2 :0 ", "%3 :0 #f :1 #t :2 #f "),
            (
                "attrib",
                "$39 Some real reply following the attribute ",
                "|1 $14 key-popularity *2 $7 key:123 :90 $39 Some real reply following the attribute ",
            ),
            (
                "push",
                "ERR RESP2 is not supported by this command",
                ">2 $16 server-cpu-usage :42 $40 Some real reply following the push reply ",
            ),
            (
                "verbatim",
                "$25 This is a verbatim\nstring ",
                "=29 txt:This is a verbatim\nstring ",
            ),
            ("true", ":1 ", "#t "),
            ("false", ":0 ", "#f "),
        ];
        for (kind, resp2, resp3) in table {
            assert_eq!(shown(kind, Proto::Resp2), resp2);
            assert_eq!(shown(kind, Proto::Resp3), resp3);
        }
        assert!(shown("nosuch", Proto::Resp2).starts_with("ERR Wrong protocol type name."));
    }
}
