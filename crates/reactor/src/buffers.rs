//! A bounded stock of empty buffers, so that steady traffic allocates nothing and idle connections hold nothing.

/// Buffers that are not in use. Bounded in number and in total bytes; larger ones go back to the system at once.
#[derive(Default)]
pub(crate) struct Stock {
    buffers: Vec<Vec<u8>>,
    bytes: usize,
}

const BUFFERS_MAX: usize = 512;
const BYTES_MAX: usize = 2 * 1024 * 1024;
/// A larger buffer is not worth keeping: filling it costs far more than allocating it.
const ONE_BYTES_MAX: usize = 64 * 1024;

impl Stock {
    /// An empty buffer, with capacity if one is in stock.
    pub fn lend(&mut self) -> Vec<u8> {
        match self.buffers.pop() {
            Some(buffer) => {
                self.bytes -= buffer.capacity();
                buffer
            }
            None => Vec::new(),
        }
    }

    /// Takes a buffer back, or frees it where the stock is full.
    pub fn give_back(&mut self, mut buffer: Vec<u8>) {
        let capacity = buffer.capacity();
        let keep = capacity > 0
            && capacity <= ONE_BYTES_MAX
            && self.buffers.len() < BUFFERS_MAX
            && self.bytes + capacity <= BYTES_MAX;
        if keep {
            buffer.clear();
            self.bytes += capacity;
            self.buffers.push(buffer);
        }
    }

    /// Bytes in stock.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stock_is_bounded() {
        let mut stock = Stock::default();
        stock.give_back(Vec::with_capacity(ONE_BYTES_MAX + 1));
        assert_eq!(stock.bytes(), 0);
        for _ in 0..BUFFERS_MAX * 2 {
            stock.give_back(Vec::with_capacity(ONE_BYTES_MAX));
        }
        assert_eq!(stock.bytes(), BYTES_MAX);
        let mut buffer = stock.lend();
        assert!(buffer.is_empty() && buffer.capacity() == ONE_BYTES_MAX);
        buffer.push(1);
        stock.give_back(buffer);
        assert!(stock.lend().is_empty());
    }
}
