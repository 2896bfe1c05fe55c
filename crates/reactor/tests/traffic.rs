//! Bytes in and bytes out, on both drivers: order, partial writes, back-pressure, ends and resets.

mod common;

use std::io::{Read, Write};
use std::net::Shutdown;

use common::{Event, Habit, Stage, both, noise, read_all, round_trip};
use pantala_reactor::Io;

#[test]
fn one_byte_at_a_time() {
    both(|io| {
        let stage = Stage::new(io, Habit::Echo);
        let mut stream = stage.connect();
        for byte in noise(11, 300) {
            assert_eq!(round_trip(&mut stream, &[byte]), [byte]);
        }
        for byte in 0..200_u8 {
            stream.write_all(&[byte]).expect("sent");
        }
        let mut back = [0; 200];
        stream.read_exact(&mut back).expect("came back");
        assert!(
            back.iter()
                .enumerate()
                .all(|(index, &byte)| byte == index as u8)
        );
        stage.end();
    });
}

#[test]
fn much_data_with_back_pressure_arrives_whole() {
    both(|io| {
        let stage = Stage::new(io, Habit::Echo);
        let data = noise(12, 24 << 20);
        let mut stream = stage.connect();
        let mut writer = stream.try_clone().expect("clone");
        let to_send = data.clone();
        let thread = std::thread::spawn(move || {
            writer.write_all(&to_send).expect("sent");
            writer.shutdown(Shutdown::Write).expect("ended");
        });
        // Reading starts late and goes in odd pieces, so that the server's socket fills up.
        stage.until("output piles up", |stage| {
            stage.ask(|io| io.buffer_bytes()) > Io::OUT_HIGH
        });
        let mut back = Vec::new();
        let mut piece = vec![0; 70_001];
        loop {
            let count = stream.read(&mut piece).expect("reads");
            if count == 0 {
                break;
            }
            back.extend_from_slice(&piece[..count]);
        }
        thread.join().expect("writer ends");
        assert!(back == data, "bytes differ");
        stage.end();
    });
}

#[test]
fn a_peer_that_does_not_read_harms_nobody_and_loses_nothing() {
    both(|io| {
        let stage = Stage::new(io, Habit::Echo);
        let (mut silent, id) = stage.connect_known();
        let data = noise(13, 24 << 20);
        let copy = data.clone();
        stage.ask(move |io| io.out(id).extend_from_slice(&copy));
        let mut other = stage.connect();
        assert_eq!(round_trip(&mut other, b"alive"), b"alive");
        assert!(stage.ask(move |io| io.out_len(id)) > 1 << 20);
        // More is appended while the first part is in flight.
        stage.ask(move |io| io.out(id).extend_from_slice(b"tail"));
        let mut back = vec![0; data.len() + 4];
        silent.read_exact(&mut back).expect("all comes");
        assert!(back[..data.len()] == data && back.ends_with(b"tail"));
        let drained = std::iter::repeat_with(|| stage.event())
            .find(|event| matches!(event, Event::Drained(_)));
        assert!(matches!(drained, Some(Event::Drained(conn)) if conn == id));
        assert_eq!(stage.ask(move |io| io.out_len(id)), 0);
        // Nothing of it is kept.
        assert!(stage.ask(|io| io.buffer_bytes()) < 8 << 20);
        stage.end();
    });
}

#[test]
fn half_closed_peers_get_their_answers() {
    both(|io| {
        let stage = Stage::new(io, Habit::Echo);
        let data = noise(14, 3 << 20);
        let mut stream = stage.connect();
        let mut writer = stream.try_clone().expect("clone");
        let to_send = data.clone();
        let thread = std::thread::spawn(move || {
            writer.write_all(&to_send).expect("sent");
            writer.shutdown(Shutdown::Write).expect("ended");
        });
        assert!(read_all(&mut stream) == data);
        thread.join().expect("writer ends");
        stage.until("closed", |stage| stage.ask(|io| io.connections()) == 0);
        stage.end();
    });
}

#[test]
fn the_end_comes_once_after_the_last_byte() {
    both(|io| {
        let stage = Stage::new(io, Habit::Report);
        let (mut stream, id) = stage.connect_known();
        stream.write_all(b"last words").expect("sent");
        stream.shutdown(Shutdown::Write).expect("ended");
        assert_eq!(stage.bytes(id, 10), b"last words");
        assert!(matches!(stage.event(), Event::Ended(conn) if conn == id));
        // The service has not closed: it can still answer, much later.
        let turns = stage.ask(|io| io.turns());
        stage.ask(move |io| io.out(id).extend_from_slice(b"answer"));
        let mut answer = [0; 6];
        stream.read_exact(&mut answer).expect("answer");
        assert_eq!(&answer, b"answer");
        assert!(
            stage.ask(|io| io.turns()) - turns < 20,
            "the end must not keep the worker busy"
        );
        stage.ask(move |io| io.close(id));
        assert!(matches!(stage.event(), Event::Closed(conn) if conn == id));
        assert_eq!(read_all(&mut stream), b"");
        stage.end();
    });
}

#[test]
fn a_reset_closes_and_the_id_is_stale() {
    both(|io| {
        let stage = Stage::new(io, Habit::Report);
        let (stream, id) = stage.connect_known();
        socket2::SockRef::from(&stream)
            .set_linger(Some(std::time::Duration::ZERO))
            .expect("option");
        drop(stream);
        assert!(matches!(stage.event(), Event::Closed(conn) if conn == id));
        // The slot gets a new tenant, which the old name must not reach.
        let (mut next, next_id) = stage.connect_known();
        assert_eq!(next_id.index(), id.index());
        stage.ask(move |io| {
            io.out(id).extend_from_slice(b"not for you");
            io.send_now(id);
            io.pause(id);
            io.resume(id);
            io.close_after_flush(id);
            io.close(id);
            assert_eq!(io.out_len(id), 0);
            assert!(!io.is_open(id) && io.is_open(next_id) && !io.is_paused(next_id));
            io.out(next_id).extend_from_slice(b"for you");
        });
        let mut got = [0; 7];
        next.read_exact(&mut got).expect("bytes");
        assert_eq!(&got, b"for you");
        stage.end();
    });
}

#[test]
fn a_reset_with_output_in_flight_frees_it() {
    both(|io| {
        let stage = Stage::new(io, Habit::Report);
        for _ in 0..5 {
            let (mut stream, id) = stage.connect_known();
            stage.ask(move |io| io.out(id).resize(16 << 20, b'x'));
            stream.write_all(b"unread").expect("sent");
            assert_eq!(stage.bytes(id, 6), b"unread");
            // Output waits unread in the peer, so closing it resets the connection.
            drop(stream);
            assert!(
                std::iter::repeat_with(|| stage.event())
                    .any(|event| matches!(event, Event::Closed(conn) if conn == id))
            );
        }
        stage.until("buffers are freed", |stage| {
            stage.ask(|io| io.buffer_bytes()) < 8 << 20
        });
        stage.end();
    });
}

#[test]
fn a_paused_connection_receives_nothing_and_loses_nothing() {
    both(|io| {
        let stage = Stage::new(io, Habit::Report);
        let (mut stream, id) = stage.connect_known();
        stage.ask(move |io| io.pause(id));
        let data = noise(15, 20 << 20);
        let to_send = data.clone();
        let thread = std::thread::spawn(move || {
            stream.write_all(&to_send).expect("sent");
            stream
        });
        stage.until("some is kept", |stage| {
            stage.ask(|io| io.buffer_bytes()) > Io::HELD_LIMIT_BYTES
        });
        let (_other, _) = stage.connect_known();
        let kept = stage.ask(|io| io.buffer_bytes());
        assert!(kept < 16 << 20, "kept {kept} bytes");
        // Pausing twice and resuming twice is once.
        stage.ask(move |io| {
            io.pause(id);
            io.resume(id);
            io.resume(id);
        });
        assert!(stage.bytes(id, data.len()) == data);
        drop(thread.join().expect("writer ends"));
        assert!(matches!(stage.event(), Event::Ended(conn) if conn == id));
        stage.end();
    });
}

#[test]
fn pausing_inside_received_keeps_the_order() {
    both(|io| {
        let stage = Stage::new(io, Habit::ReportAndPause);
        let (mut stream, id) = stage.connect_known();
        let data = noise(16, 3 << 20);
        let to_send = data.clone();
        let thread = std::thread::spawn(move || {
            for piece in to_send.chunks(7_777) {
                stream.write_all(piece).expect("sent");
            }
        });
        let mut got = Vec::new();
        loop {
            match stage.event() {
                Event::Received(_, bytes) => {
                    got.extend_from_slice(&bytes);
                    stage.ask(move |io| io.resume(id));
                }
                Event::Ended(_) => break,
                other => panic!("unexpected: {other:?}"),
            }
        }
        assert!(got == data);
        thread.join().expect("writer ends");
        stage.end();
    });
}

#[test]
fn the_end_of_a_paused_connection_is_told_unless_bytes_wait() {
    both(|io| {
        let stage = Stage::new(io, Habit::Report);
        let (stream, id) = stage.connect_known();
        stage.ask(move |io| io.pause(id));
        drop(stream);
        assert!(matches!(stage.event(), Event::Ended(conn) if conn == id));

        let (mut stream, id) = stage.connect_known();
        stage.ask(move |io| io.pause(id));
        stream.write_all(b"wait").expect("sent");
        drop(stream);
        let (_other, other_id) = stage.connect_known();
        stage.ask(move |io| io.close(other_id));
        assert!(
            matches!(stage.event(), Event::Closed(conn) if conn == other_id),
            "nothing came before"
        );
        stage.ask(move |io| io.resume(id));
        assert_eq!(stage.bytes(id, 4), b"wait");
        assert!(matches!(stage.event(), Event::Ended(conn) if conn == id));
        stage.end();
    });
}

#[test]
fn close_after_flush_sends_everything_first() {
    both(|io| {
        let stage = Stage::new(io, Habit::Report);
        let (mut stream, id) = stage.connect_known();
        let data = noise(17, 12 << 20);
        let copy = data.clone();
        stage.ask(move |io| {
            io.close_after_flush(id);
            io.out(id).extend_from_slice(&copy);
            io.close_after_flush(id);
        });
        // Input is dropped meanwhile; that it was read keeps our close from becoming a reset.
        stream.write_all(b"ignored").expect("sent");
        assert!(read_all(&mut stream) == data);
        assert!(matches!(stage.event(), Event::Closed(conn) if conn == id));
        // With nothing to send it closes at once.
        let (mut stream, id) = stage.connect_known();
        stage.ask(move |io| io.close_after_flush(id));
        assert_eq!(read_all(&mut stream), b"");
        stage.end();
    });
}

#[test]
fn close_after_flush_gives_up_without_progress() {
    both(|io| {
        let stage = Stage::new(io, Habit::Report);
        let (_stream, id) = stage.connect_known();
        let start = std::time::Instant::now();
        stage.ask(move |io| {
            io.out(id).resize(32 << 20, b'x');
            io.close_after_flush(id);
        });
        assert!(matches!(stage.event(), Event::Closed(conn) if conn == id));
        assert!(start.elapsed() >= Io::FLUSH_TIMEOUT);
        stage.end();
    });
}

#[test]
fn send_now_sends_before_the_turn_ends() {
    both(|io| {
        let stage = Stage::new(io, Habit::Report);
        let (mut stream, id) = stage.connect_known();
        let left = stage.ask(move |io| {
            io.out(id).extend_from_slice(b"now");
            io.send_now(id);
            let left = io.out_len(id);
            io.out(id).extend_from_slice(b" and then");
            left
        });
        assert_eq!(left, 0);
        let mut got = [0; 12];
        stream.read_exact(&mut got).expect("bytes");
        assert_eq!(&got, b"now and then");
        // As much as goes in at once; the rest follows in order.
        let data = noise(18, 16 << 20);
        let copy = data.clone();
        let left = stage.ask(move |io| {
            io.out(id).extend_from_slice(&copy);
            io.send_now(id);
            io.out_len(id)
        });
        assert!(left > 0 && left < data.len());
        let mut got = vec![0; data.len()];
        stream.read_exact(&mut got).expect("bytes");
        assert!(got == data);
        stage.end();
    });
}

#[test]
fn many_connections_speak_at_once() {
    both(|io| {
        let stage = Stage::new(io, Habit::Echo);
        let mut streams: Vec<_> = (0..600).map(|_| stage.connect()).collect();
        let data = noise(19, 40_000);
        // More bytes at once than the receive buffers hold.
        for stream in &mut streams {
            stream.write_all(&data).expect("sent");
        }
        let mut back = vec![0; data.len()];
        for stream in &mut streams {
            stream.read_exact(&mut back).expect("came back");
            assert!(back == data);
        }
        drop(streams);
        stage.until("all closed", |stage| stage.ask(|io| io.connections()) == 0);
        stage.end();
    });
}

#[test]
fn callbacks_may_close_anything() {
    both(|io| {
        let stage = Stage::new(io, Habit::Report);
        let (mut first, first_id) = stage.connect_known();
        let (mut second, second_id) = stage.connect_known();
        let (mut third, third_id) = stage.connect_known();
        stage.ask(move |io| {
            io.out(first_id).extend_from_slice(b"dropped");
            io.close(first_id);
            io.close(first_id);
            io.out(first_id).extend_from_slice(b"sink");
            io.pause(second_id);
            io.close(second_id);
            io.resume(second_id);
            io.close_after_flush(second_id);
            io.out(third_id).extend_from_slice(b"stays");
        });
        assert_eq!(read_all(&mut first), b"");
        assert_eq!(read_all(&mut second), b"");
        let mut got = [0; 5];
        third.read_exact(&mut got).expect("bytes");
        assert_eq!(&got, b"stays");
        let mut closed = [first_id, second_id].to_vec();
        while !closed.is_empty() {
            let Event::Closed(id) = stage.event() else {
                panic!("only closes are expected")
            };
            let position = closed
                .iter()
                .position(|&known| known == id)
                .expect("closed once");
            closed.remove(position);
        }
        assert_eq!(stage.ask(|io| io.connections()), 1);
        stage.end();
    });
}

#[test]
fn drained_follows_even_if_the_mark_was_passed_while_sending() {
    both(|io| {
        let stage = Stage::new(io, Habit::Report);
        let (mut stream, id) = stage.connect_known();
        // Fill the socket until a little is left that the kernel does not take.
        let piece = 64 << 10;
        let mut total = 0;
        stage.until("the socket is full", |stage| {
            let left = stage.ask(move |io| io.out_len(id));
            if left == 0 {
                stage.ask(move |io| io.out(id).resize(piece, b'a'));
                total += piece;
            }
            left > 0
        });
        // Now pass the mark, which one part in flight and one part queued do only together.
        let (before, after) = stage.ask(move |io| {
            let before = io.out_len(id);
            let length = io.out(id).len() + Io::OUT_HIGH - before + 1;
            io.out(id).resize(length, b'b');
            (before, io.out_len(id))
        });
        assert!(before <= piece && after == Io::OUT_HIGH + 1);
        total += after - before;
        let mut got = vec![0; total];
        stream.read_exact(&mut got).expect("all comes");
        assert!(matches!(stage.event(), Event::Drained(conn) if conn == id));
        stage.end();
    });
}
