//! What memcached's commands leave behind: in the entry, in the log, for watchers, for Redis's clients.

use super::super::announce;
use super::*;
use pantala_store::{Encoding, Kind};

#[test]
fn an_entry_has_a_section_only_when_it_needs_one() {
    let mut server = Server::new();
    server.say("set a 0 0 1\r\nx\r\nget a\r\nmg a v s f t h l k\r\ntouch a 50\r\n");
    assert_eq!(server.mc("a"), None);
    server.say("gets a\r\n");
    let cas = server.mc("a").expect("a number was asked for").cas;
    server.say("gets a\r\ntouch a 60\r\nmg a T70 c\r\n");
    assert_eq!(
        server.mc("a"),
        Some(McMeta {
            cas,
            ..McMeta::default()
        })
    );
    server.say("set a 0 0 1\r\ny\r\n");
    assert_eq!(server.mc("a"), None);
    server.say("set a 7 0 1\r\n1\r\ngets a\r\nincr a 1\r\n");
    assert_eq!(
        server.mc("a"),
        Some(McMeta {
            flags: 7,
            ..McMeta::default()
        })
    );
    server.say("md a I\r\nms a 1\r\nx\r\n");
    assert_eq!(server.mc("a"), None);
}

#[test]
fn later_flags_of_the_meta_protocol() {
    let mut server = Server::new();
    assert_eq!(
        server.say("ms a 1 E1000 c\r\nx\r\nmg a c\r\nms a 1 C1000 E2000 c\r\ny\r\nmg a c\r\n"),
        "HD c1000\r\nHD c1000\r\nHD c2000\r\nHD c2000\r\n"
    );
    assert_eq!(
        server.say("md a I E3000\r\nmg a c\r\nms n 1\r\n5\r\nma n E77 c v\r\nma m N0 E78 c\r\n"),
        "HD\r\nHD c3000 X W\r\nHD\r\nVA 1 c77\r\n6\r\nHD c78\r\n"
    );
    assert_eq!(
        server.say("mg v N0 E79 c\r\nms a 2 F5 T50 c E80\r\nhi\r\nmd a x\r\nmg a v f t c\r\n"),
        "HD c79 W\r\nHD c80\r\nHD\r\nVA 0 f0 t-1 c80\r\n\r\n"
    );
    assert_eq!(
        server.say("ms a 2 F5\r\nhi\r\nmd a x I T30 F9\r\nmg a v f t\r\nmd none x\r\n"),
        "HD\r\nHD\r\nVA 0 f9 t30 X W\r\n\r\nNF\r\n"
    );
}

#[test]
fn other_types_are_refused_where_a_string_is_needed() {
    let mut server = Server::new();
    let wrong =
        "SERVER_ERROR WRONGTYPE Operation against a key holding the wrong kind of value\r\n";
    let make = |server: &Server| {
        server.on_key("l", |slot| {
            slot.put(Kind::List, Encoding::RAW, b"elements", PutMeta::CLEAR);
        });
    };
    make(&server);
    server.say("set s 0 0 1\r\n5\r\n");
    for request in [
        "get l",
        "gets l",
        "gat 5 l",
        "incr l 1",
        "decr l 1",
        "append l 0 0 1\r\nx",
        "prepend l 0 0 1\r\nx",
        "mg l v",
        "mg l c N30",
        "ma l",
        "ma l N0",
        "ms l 1 MA\r\nx",
        "md l I",
    ] {
        assert_eq!(server.say(&format!("{request}\r\n")), wrong, "{request}");
        assert_eq!(server.mc("l"), None);
    }
    assert_eq!(
        server.say("get s l s\r\n"),
        format!("VALUE s 0 1\r\n5\r\n{wrong}")
    );
    assert_eq!(
        server.say("append l 0 0 1 noreply\r\nx\r\nadd l 0 0 1\r\nx\r\ncas l 0 0 1 5\r\nx\r\n"),
        "NOT_STORED\r\nEXISTS\r\n"
    );
    assert_eq!(server.say("touch l 50\r\n"), "TOUCHED\r\n");
    assert!(server.say("me l\r\n").starts_with("ME l exp=50 "));
    assert_eq!(server.say("delete l\r\n"), "DELETED\r\n");
    make(&server);
    assert_eq!(
        server.say("set l 0 0 1\r\nx\r\nget l\r\n"),
        "STORED\r\nVALUE l 0 1\r\nx\r\nEND\r\n"
    );
}

#[test]
fn both_sides_count_on_the_same_numbers() {
    let mut server = Server::new();
    server.on_key("n", |slot| string::store(slot, b"99", PutMeta::CLEAR));
    assert_eq!(
        server.say("incr n 1\r\ndecr n 5\r\nget n\r\n"),
        "100\r\n95\r\nVALUE n 0 3\r\n95 \r\nEND\r\n"
    );
    let int = server.on_key("n", |slot| {
        slot.entry()
            .and_then(string::StrRef::of)
            .and_then(|text| text.to_int())
    });
    assert_eq!(int, Some(95));
    // The blanks behind the number are memcached's alone, and only a number has them.
    server.on_key("n", |slot| string::append(slot, b"x"));
    assert_eq!(server.say("get n\r\n"), "VALUE n 0 3\r\n95x\r\nEND\r\n");
    server.on_key("n", |slot| string::store(slot, b"-3", PutMeta::CLEAR));
    assert_eq!(
        server.say("incr n 1\r\n"),
        "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"
    );
    // What Redis changes, a number that was shown before no longer matches.
    server.say("set s 4 0 1\r\nx\r\n");
    let cas = server.say("mg s c\r\n");
    let cas = cas.trim_end().trim_start_matches("HD c").to_owned();
    server.on_key("s", |slot| string::store(slot, b"y", PutMeta::CLEAR));
    assert_eq!(
        server.say(&format!("cas s 0 0 1 {cas}\r\nz\r\nget s\r\n")),
        "EXISTS\r\nVALUE s 0 1\r\ny\r\nEND\r\n"
    );
}

#[test]
fn watchers_hear_of_changes_and_of_nothing_else() {
    let mut server = Server::new();
    server.say("set a 0 0 1\r\n1\r\n");
    let watched = |server: &mut Server, request: &str| {
        let shared = Arc::clone(&server.shared);
        let key = shared.store.key(b"a");
        let flag = WatchFlag::new();
        let borrow = || {
            shared
                .store
                .try_borrow_one(shared.store.shard_of(key.hash))
                .expect("nobody else borrows")
        };
        borrow().watch(0, &key, &flag, server.now_ms);
        server.say(request);
        borrow().unwatch(0, &key, &flag);
        flag.is_dirty()
    };
    for request in [
        "get a\r\n",
        "gets a\r\n",
        "mg a v c h\r\n",
        "add a 0 0 1\r\nx\r\n",
        "cas a 0 0 1 1\r\nx\r\n",
        "mg a R30\r\n",
        "gat 0 a\r\n",
        "set b 0 0 1\r\nx\r\n",
        "me a\r\n",
    ] {
        assert!(!watched(&mut server, request), "{request}");
    }
    for request in [
        "set a 0 0 1\r\n1\r\n",
        "incr a 1\r\n",
        "ma a\r\n",
        "append a 0 0 1\r\n1\r\n",
        "touch a 50\r\n",
        "gat 60 a\r\n",
        "mg a T70\r\n",
        "ms a 1\r\nx\r\n",
        "flush_all\r\n",
        "mg a N30\r\n",
        "md a\r\n",
        "set a 0 0 1\r\nx\r\n",
        "delete a\r\n",
    ] {
        assert!(watched(&mut server, request), "{request}");
    }
    let changes = server.shared.stats.sum(|party| &party.changes);
    assert!(changes > 13, "{changes}");
}

#[test]
fn effects_are_redis_commands() {
    let mut fx = Effects::default();
    let mut recorded = |write: &dyn Fn(&mut Effects)| {
        fx.begin(Listening::all(), 0);
        write(&mut fx);
        let words: Vec<String> = String::from_utf8_lossy(fx.record())
            .split("\r\n")
            .filter(|word| !word.starts_with(['*', '$']) && !word.is_empty())
            .map(str::to_owned)
            .collect();
        let events: Vec<&str> = fx.keys().iter().map(|modified| modified.event).collect();
        format!(
            "{} ({}) {}",
            words.join(" "),
            events.join(" "),
            fx.changes()
        )
    };
    assert_eq!(
        recorded(&|fx| announce::stored(fx, b"k", b"v", Some(50), None)),
        "SET k v PXAT 50 (new set expire) 1"
    );
    assert_eq!(
        recorded(&|fx| announce::stored(fx, b"k", b"v", None, Some(Kind::List))),
        "SET k v (overwritten type_changed set) 1"
    );
    assert_eq!(
        recorded(&|fx| announce::changed(fx, b"k", b"6", "incrby")),
        "SET k 6 KEEPTTL (incrby) 1"
    );
    assert_eq!(recorded(&|fx| announce::removed(fx, b"k")), "DEL k (del) 1");
    assert_eq!(
        recorded(&|fx| announce::expiry(fx, b"k", Some(9))),
        "PEXPIREAT k 9 (expire) 1"
    );
    assert_eq!(
        recorded(&|fx| announce::expiry(fx, b"k", None)),
        "PERSIST k (persist) 1"
    );
}

/// Applies recorded commands to a plain map, as a replica would.
fn replay(mut record: &[u8]) -> BTreeMap<Vec<u8>, (Vec<u8>, Option<i64>)> {
    let mut model: BTreeMap<Vec<u8>, (Vec<u8>, Option<i64>)> = BTreeMap::new();
    let line = |record: &mut &[u8]| {
        let end = record
            .windows(2)
            .position(|two| two == b"\r\n")
            .expect("a line ends");
        let number = std::str::from_utf8(&record[1..end]).expect("a number");
        *record = &record[end + 2..];
        number.parse::<usize>().expect("a number")
    };
    while !record.is_empty() {
        let count = line(&mut record);
        let words: Vec<Vec<u8>> = (0..count)
            .map(|_| {
                let len = line(&mut record);
                let word = record[..len].to_vec();
                record = &record[len + 2..];
                word
            })
            .collect();
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        let time = |text: &[u8]| {
            std::str::from_utf8(text)
                .expect("a number")
                .parse()
                .expect("a number")
        };
        match words[..] {
            [b"SET", key, value] => {
                model.insert(key.to_vec(), (value.to_vec(), None));
            }
            [b"SET", key, value, b"PXAT", at] => {
                model.insert(key.to_vec(), (value.to_vec(), Some(time(at))));
            }
            [b"SET", key, value, b"KEEPTTL"] => {
                model.entry(key.to_vec()).or_default().0 = value.to_vec();
            }
            [b"DEL", key] => drop(model.remove(key).expect("only what is there is removed")),
            [b"PEXPIREAT", key, at] => {
                model.get_mut(key).expect("only what is there expires").1 = Some(time(at));
            }
            [b"PERSIST", key] => model.get_mut(key).expect("only what is there stays").1 = None,
            [b"FLUSHDB"] => model.clear(),
            _ => panic!("unknown effect {words:?}"),
        }
    }
    model
}

/// Every command with every flag, in random order: a replica that follows the effects holds the same.
#[test]
fn effects_replayed_give_the_same_data() {
    let mut server = Server::new();
    server.buffers.recorded = Some(Vec::new());
    let mut seed = 42u64;
    let mut draw = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) % below
    };
    let times = ["0", "-1", "100", "3000000", "1800000050"];
    for _ in 0..20_000 {
        let key = format!("k{}", draw(6));
        let time = times[draw(5) as usize];
        let data = [
            "7",
            "ab",
            "",
            "18446744073709551615",
            "a text of some length, packed",
        ][draw(5) as usize];
        let len = data.len();
        let cas = 10 + draw(40);
        let request = match draw(26) {
            0 | 1 => format!("set {key} {} {time} {len}\r\n{data}", draw(3)),
            2 => format!("add {key} 0 {time} {len}\r\n{data}"),
            3 => format!("replace {key} 0 {time} {len}\r\n{data}"),
            4 => format!("append {key} 0 {time} {len}\r\n{data}"),
            5 => format!("prepend {key} 0 {time} {len}\r\n{data}"),
            6 => format!("cas {key} 0 {time} {len} {cas}\r\n{data}"),
            7 => format!("incr {key} {}", draw(100)),
            8 => format!("decr {key} {}", draw(100)),
            9 => format!("touch {key} {time}"),
            10 => format!("gat {time} {key} k1 k2"),
            11 => format!("delete {key}"),
            12 => format!("gets {key} k3"),
            13 => format!("mg {key} v c t T{time}"),
            14 => format!("mg {key} N{time} R30 h"),
            15 => format!("mg {key} N{time} T100"),
            16 => format!("ms {key} {len} T{time} C{cas} I c\r\n{data}"),
            17 => format!("ms {key} {len} MA F3\r\n{data}"),
            18 => format!("ms {key} {len} ME T{time} E900\r\n{data}"),
            19 => format!("md {key} I T{time}"),
            20 => format!("md {key} x T{time}"),
            21 => format!("md {key} x I q"),
            22 => format!("ma {key} N{time} J5 T100 v"),
            23 => format!("ma {key} N{time} MD D3 t c"),
            24 => format!("ma {key} T{time}"),
            _ if draw(20) == 0 => "flush_all".to_owned(),
            _ => format!("md {key} q"),
        };
        let reply = server.say(&format!("{request}\r\n"));
        assert!(!reply.starts_with("ERROR"), "{request}");
        let record = server.buffers.recorded.take().unwrap_or_default();
        let model = replay(&record);
        server.buffers.recorded = Some(record);
        for n in 0..6 {
            let key = format!("k{n}");
            let held = server.on_key(&key, |slot| {
                let entry = slot.entry()?;
                let mut value = Vec::new();
                string::StrRef::of(entry)?.append_to(&mut value);
                Some((value, entry.expiry_ms()))
            });
            assert_eq!(
                held.as_ref(),
                model.get(key.as_bytes()),
                "{key} after {request}"
            );
        }
        // The history is replaced by what it came to, so that the test does not grow quadratic.
        let mut short = Effects::default();
        short.begin(Listening::RECORD, 0);
        for (key, (value, at)) in &model {
            announce::stored(&mut short, key, value, *at, None);
        }
        server.buffers.recorded = Some(short.record().to_vec());
    }
}
