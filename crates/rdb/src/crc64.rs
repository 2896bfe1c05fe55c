//! CRC-64 with the polynomial of D. T. Jones, reflected, without inversion: the checksum of RDB files and payloads.
//!
//! Eight tables let eight bytes be folded at a time ("slicing by 8"): with `t[k]` the effect of a byte that is followed by `k`
//! zero bytes, the effects of eight neighbours are looked up independently of one another and added.

/// `0xad93d23594c935a9`, bits in reverse order.
const POLYNOMIAL: u64 = 0x95ac_9329_ac4b_c9b5;

static TABLES: [[u64; 256]; 8] = tables();

const fn tables() -> [[u64; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u64;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 {
                crc >> 1 ^ POLYNOMIAL
            } else {
                crc >> 1
            };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut zeros = 1;
    while zeros < 8 {
        let mut byte = 0;
        while byte < 256 {
            let shorter = tables[zeros - 1][byte];
            tables[zeros][byte] = shorter >> 8 ^ tables[0][(shorter & 0xff) as usize];
            byte += 1;
        }
        zeros += 1;
    }
    tables
}

/// The checksum of what `crc` is the checksum of, followed by `bytes`. Start with 0.
#[must_use]
pub fn update(crc: u64, bytes: &[u8]) -> u64 {
    let mut crc = crc;
    let (eights, rest) = bytes.as_chunks::<8>();
    for eight in eights {
        let folded = (crc ^ u64::from_le_bytes(*eight)).to_le_bytes();
        crc = 0;
        for (byte, table) in folded.iter().zip(TABLES.iter().rev()) {
            crc ^= table[usize::from(*byte)];
        }
    }
    for byte in rest {
        crc = crc >> 8 ^ TABLES[0][usize::from(crc as u8 ^ byte)];
    }
    crc
}

/// The checksum of `bytes`.
#[must_use]
pub fn checksum(bytes: &[u8]) -> u64 {
    update(0, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        assert_eq!(checksum(b""), 0);
        assert_eq!(checksum(b"123456789"), 0xe9c6_d914_c4b8_d9ca);
    }

    #[test]
    fn pieces_give_the_checksum_of_the_whole() {
        let bytes: Vec<u8> = (0..1000u32).map(|n| (n * 7 + n / 13) as u8).collect();
        let bitwise = bytes.iter().fold(0u64, |crc, byte| {
            (0..8).fold(crc ^ u64::from(*byte), |crc, _| {
                if crc & 1 == 1 {
                    crc >> 1 ^ POLYNOMIAL
                } else {
                    crc >> 1
                }
            })
        });
        assert_eq!(checksum(&bytes), bitwise);
        for cut in [0, 1, 7, 8, 9, 500, 999, 1000] {
            assert_eq!(update(checksum(&bytes[..cut]), &bytes[cut..]), bitwise);
        }
    }
}
