//! Redis's digest of the data: equal data give equal digests, whatever the order in which they are met and however they are stored.
//!
//! Each key is hashed with its type and value to 20 bytes; the bytes of all keys of a database, and the number of the database, are
//! combined by exclusive or, which does not depend on the order. The steps are those of Redis, so the digests of both can be compared.

use sha1::{Digest as _, Sha1};

/// The number of a string in Redis's enumeration of types.
pub const TYPE_STRING: u32 = 0;

/// A digest that is being made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digest([u8; 20]);

impl Digest {
    /// Takes the digest of a key in, without regard to order.
    pub fn combine(&mut self, key: Self) {
        self.xor(&key.0);
    }

    /// Takes bytes in, without regard to order.
    fn xor(&mut self, bytes: &[u8]) {
        let hash: [u8; 20] = Sha1::digest(bytes).into();
        for (byte, other) in self.0.iter_mut().zip(hash) {
            *byte ^= other;
        }
    }

    /// Takes bytes in; their order counts.
    fn mix(&mut self, bytes: &[u8]) {
        self.xor(bytes);
        self.0 = Sha1::digest(self.0).into();
    }

    /// Begins a database: its number is part of what its keys are combined to.
    pub fn database(&mut self, index: u16) {
        self.mix(&u32::from(index).to_be_bytes());
    }

    /// A string with its key.
    pub fn of_string(key: &[u8], value: &[u8], expires: bool) -> Self {
        let mut digest = Self::default();
        digest.mix(key);
        digest.string_value(value, expires);
        digest
    }

    /// A string without its key.
    pub fn of_string_value(value: &[u8], expires: bool) -> Self {
        let mut digest = Self::default();
        digest.string_value(value, expires);
        digest
    }

    fn string_value(&mut self, value: &[u8], expires: bool) {
        self.mix(&TYPE_STRING.to_be_bytes());
        self.mix(value);
        // When it expires does not count, since that differs between servers by what the clock said.
        if expires {
            self.xor(b"!!expire!!");
        }
    }

    /// 40 hex digits.
    pub fn hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_equal_those_of_redis() {
        assert_eq!(
            Digest::of_string_value(b"hello", false).hex(),
            "36b23a1456b2dce2c3ed252c456761301dba8060"
        );
        assert_eq!(
            Digest::of_string_value(b"12345", false).hex(),
            "e1cf90774e995ae03de66e8109dc5cb9d9c2dc83"
        );
        assert_eq!(
            Digest::of_string_value(b"x", true).hex(),
            "0745672cb1bf060476eedeb8a28f5ffe1ff5a2be"
        );
        let mut all = Digest::default();
        all.database(0);
        all.combine(Digest::of_string(b"a", b"hello", false));
        all.combine(Digest::of_string(b"n", b"12345", false));
        all.combine(Digest::of_string(b"e", b"x", true));
        assert_eq!(all.hex(), "a8932b3b7a9ea5cdfba4bfef26b63f2e1f4a4700");
        assert_eq!(Digest::default().hex(), "0".repeat(40));
    }
}
