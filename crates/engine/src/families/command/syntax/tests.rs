//! Syntax lines of Redis and the trees that `COMMAND DOCS` of Redis shows for them.

use super::*;

/// A tree in one line: `name:kind`, `=TOKEN`, `?` optional, `+` multiple, `*` multiple with its token, `#n` key specification.
fn shown(args: &[Arg]) -> String {
    let one = |arg: &Arg| {
        let mut text = format!("{}:{}", arg.name, arg.kind.name());
        if let Some(token) = &arg.token {
            text.push_str(&format!("={token}"));
        }
        if let Some(spec) = arg.key_spec {
            text.push_str(&format!("#{spec}"));
        }
        for (set, mark) in [
            (arg.optional, '?'),
            (arg.multiple, '+'),
            (arg.multiple_token, '*'),
        ] {
            if set {
                text.push(mark);
            }
        }
        if !arg.args.is_empty() {
            text.push_str(&format!("({})", shown(&arg.args)));
        }
        text
    };
    args.iter().map(one).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_lines_of_redis_give_the_trees_of_redis() {
    // (syntax, number of key specifications, tree)
    let table = [
        ("", 0, ""),
        ("key", 1, "key:key#0"),
        ("key value", 1, "key:key#0 value:string"),
        ("key [key ...]", 1, "key:key#0+"),
        ("key newkey", 2, "key:key#0 newkey:key#1"),
        (
            "key value [key value ...]",
            1,
            "key-value:block+(key:key#0 value:string)",
        ),
        ("[message]", 0, "message:string?"),
        ("[section [section ...]]", 0, "section:string?+"),
        ("[section ...]", 0, "section:string?+"),
        (
            "key value [NX|XX] [GET] [EX seconds|PX milliseconds|EXAT unix-time-seconds|PXAT unix-time-milliseconds|KEEPTTL]",
            1,
            "key:key#0 value:string condition:oneof?(nx:pure-token=NX xx:pure-token=XX) get:pure-token=GET? expiration:oneof?(\
             seconds:integer=EX milliseconds:integer=PX unix-time-seconds:unix-time=EXAT unix-time-milliseconds:unix-time=PXAT \
             keepttl:pure-token=KEEPTTL)",
        ),
        (
            "key seconds [NX|XX|GT|LT]",
            1,
            "key:key#0 seconds:integer condition:oneof?(nx:pure-token=NX xx:pure-token=XX gt:pure-token=GT lt:pure-token=LT)",
        ),
        (
            "cursor [MATCH pattern] [COUNT count] [TYPE type]",
            0,
            "cursor:integer pattern:pattern=MATCH? count:integer=COUNT? type:string=TYPE?",
        ),
        (
            "key [BY pattern] [LIMIT offset count] [GET pattern [GET pattern ...]] [ASC|DESC] [ALPHA] [STORE destination]",
            3,
            "key:key#0 pattern:pattern=BY? limit:block=LIMIT?(offset:integer count:integer) pattern:pattern=GET?+* asc-desc:oneof?(\
             asc:pure-token=ASC desc:pure-token=DESC) alpha:pure-token=ALPHA? destination:key=STORE#1?",
        ),
        (
            "key [OVERFLOW WRAP|SAT|FAIL] [SKIPME yes|no]",
            1,
            "key:key#0 wrap-sat-fail:oneof=OVERFLOW?(wrap:pure-token=WRAP sat:pure-token=SAT fail:pure-token=FAIL) \
             yes-no:oneof=SKIPME?(yes:string no:string)",
        ),
        (
            "key [BY by-pattern] [GET get-pattern [GET get-pattern ...]] [STORE destination]",
            3,
            "key:key#0 by-pattern:pattern=BY#1? get-pattern:pattern=GET#1?+* destination:key=STORE#2?",
        ),
        (
            "AND|OR destkey key",
            2,
            "and-or:oneof(and:pure-token=AND or:pure-token=OR) destkey:key#0 key:key#1",
        ),
        (
            "<AND|OR|XOR|NOT> destkey key [key ...]",
            2,
            "and-or-xor-not:oneof(and:pure-token=AND or:pure-token=OR xor:pure-token=XOR not:pure-token=NOT) destkey:key#0 key:key#1+",
        ),
        (
            "key [start end [BYTE|BIT]]",
            1,
            "key:key#0 start-end-byte-bit:block?(start:integer end:integer byte-bit:oneof?(byte:pure-token=BYTE bit:pure-token=BIT))",
        ),
        (
            "numkeys key [key ...] [LIMIT limit]",
            1,
            "numkeys:integer key:key#0+ limit:integer=LIMIT?",
        ),
        (
            "[FILTERBY <MODULE module-name|ACLCAT category|PATTERN pattern>]",
            0,
            "module-name-category-pattern:oneof=FILTERBY?(module-name:string=MODULE category:string=ACLCAT pattern:pattern=PATTERN)",
        ),
        (
            "[NOSAVE|SAVE] [NOW] [FORCE] [ABORT]",
            0,
            "nosave-save:oneof?(nosave:pure-token=NOSAVE save:pure-token=SAVE) now:pure-token=NOW? force:pure-token=FORCE? abort:pure-token=ABORT?",
        ),
        (
            "<host port|NO ONE>",
            0,
            "host-port-no-one:oneof(host-port:block(host:string port:integer) no-one:block(no:pure-token=NO one:pure-token=ONE))",
        ),
        (
            "[protover [AUTH username password] [SETNAME clientname]]",
            0,
            "protover-auth-clientname:block?(protover:integer auth:block=AUTH?(username:string password:string) clientname:string=SETNAME?)",
        ),
        (
            "parameter value [parameter value ...]",
            0,
            "parameter-value:block+(parameter:string value:string)",
        ),
        ("[username] password", 0, "username:string? password:string"),
        (
            "[TIMEOUT|ERROR]",
            0,
            "timeout-error:oneof?(timeout:pure-token=TIMEOUT error:pure-token=ERROR)",
        ),
        (
            "<ON|OFF|SKIP>",
            0,
            "on-off-skip:oneof(on:pure-token=ON off:pure-token=OFF skip:pure-token=SKIP)",
        ),
        (
            "numreplicas timeout",
            0,
            "numreplicas:integer timeout:integer",
        ),
        ("key [SAMPLES count]", 1, "key:key#0 count:integer=SAMPLES?"),
        (
            "key [NX|XX] [GT|LT] [CH] [INCR] score member [score member ...]",
            1,
            "key:key#0 condition:oneof?(nx:pure-token=NX xx:pure-token=XX) gt-lt:oneof?(gt:pure-token=GT lt:pure-token=LT) ch:pure-token=CH? \
             incr:pure-token=INCR? score-member:block+(score:double member:string)",
        ),
        (
            "[COUNT count] [BLOCK milliseconds] STREAMS key [key ...] id [id ...]",
            1,
            "count:integer=COUNT? milliseconds:integer=BLOCK? streams:block=STREAMS(key:key#0+ id:string+)",
        ),
        (
            "key [NOMKSTREAM] [<MAXLEN|MINID> [=|~] threshold [LIMIT count]] <*|id> field value [field value ...]",
            1,
            "key:key#0 nomkstream:pure-token=NOMKSTREAM? maxlen-minid-equal-approximately-threshold-count:block?(\
             maxlen-minid:oneof(maxlen:pure-token=MAXLEN minid:pure-token=MINID) equal-approximately:oneof?(equal:pure-token== approximately:pure-token=~) \
             threshold:string count:integer=LIMIT?) auto-id-id:oneof(auto-id:pure-token=* id:string) field-value:block+(field:string value:string)",
        ),
        (
            "key seconds [NX|XX|GT|LT] FIELDS numfields field [field ...]",
            1,
            "key:key#0 seconds:integer condition:oneof?(nx:pure-token=NX xx:pure-token=XX gt:pure-token=GT lt:pure-token=LT) fields:block=FIELDS(numfields:integer field:string+)",
        ),
        (
            "key [BYFLOAT increment|BYINT increment]",
            1,
            "key:key#0 increment-increment:oneof?(increment:double=BYFLOAT increment:integer=BYINT)",
        ),
        (
            "key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]",
            1,
            "key:key#0 ttl:integer serialized-value:string replace:pure-token=REPLACE? absttl:pure-token=ABSTTL? seconds:integer=IDLETIME? frequency:integer=FREQ?",
        ),
        ("key", 0, "key:string"),
    ];
    for (syntax, key_specs, tree) in table {
        let args = parse(syntax, key_specs).expect(syntax);
        assert_eq!(shown(&args), tree, "{syntax}");
    }
}

#[test]
fn what_is_no_syntax_is_refused() {
    let deep = "[".repeat(40) + "a" + &"]".repeat(40);
    for syntax in [
        "[key", "key]", "<a|b", "a | b", "[]", "[a|]", "<>", "[a>", &deep,
    ] {
        assert!(parse(syntax, 1).is_err(), "{syntax}");
    }
    assert!(parse("...", 0).is_ok_and(|args| args.is_empty()));
}
