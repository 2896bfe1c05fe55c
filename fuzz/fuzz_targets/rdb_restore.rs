//! Any payload of `RESTORE` is decoded or refused; what was decoded comes back from its own `DUMP`. The input is tried as it is
//! and with a footer that is right, because no fuzzer guesses a CRC.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pantala_rdb::{Restored, Text, VERSION, crc64, dump_integer, dump_string, restore};

const LIMIT_BYTES: u64 = 1 << 16;

fn round_trip(payload: &[u8]) {
    match restore(payload, LIMIT_BYTES) {
        Ok(Restored::String(Text::Integer(value))) => {
            let again = dump_integer(value);
            assert_eq!(restore(&again, LIMIT_BYTES), Ok(Restored::String(Text::Integer(value))));
        }
        Ok(Restored::String(Text::Bytes(bytes))) => {
            assert!(bytes.len() as u64 <= LIMIT_BYTES);
            for compress in [false, true] {
                let again = dump_string(&bytes, compress);
                match restore(&again, LIMIT_BYTES) {
                    Ok(Restored::String(Text::Bytes(same))) => assert_eq!(same, bytes),
                    Ok(Restored::String(Text::Integer(value))) => {
                        assert_eq!(value.to_string().as_bytes(), &*bytes);
                    }
                    other => panic!("our own payload is refused: {other:?}"),
                }
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fuzz_target!(|input: &[u8]| {
    round_trip(input);
    let mut sealed = input.to_vec();
    sealed.extend_from_slice(&VERSION.to_le_bytes());
    sealed.extend_from_slice(&crc64::checksum(&sealed).to_le_bytes());
    round_trip(&sealed);
});
