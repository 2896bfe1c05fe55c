//! Turns the words of a drawn form into bytes for one server, and its reply into text that can be compared: unique numbers become `cas1`, `cas2`, …
//! in order of appearance, times to live become a sign, `me` shows only what does not depend on the server.

use std::collections::HashMap;
use std::time::Duration;

use pantala_tests::memcache::McConn;
use pantala_tests::quote::escape;
use pantala_tests::server::Server;

/// How long a reply may take: a request that both servers go on reading would cost this much each time.
const TIMEOUT: Duration = Duration::from_secs(3);

/// One server's half of a comparison.
pub struct Side<'a> {
    server: &'a Server,
    conn: McConn,
    prefix: String,
    /// Unique numbers in order of appearance.
    seen: Vec<String>,
    /// The last unique number seen for each key.
    last: HashMap<Vec<u8>, String>,
}

impl<'a> Side<'a> {
    /// Opens a connection; `prefix` begins every key.
    pub fn open(server: &'a Server, prefix: &str) -> Self {
        Self {
            server,
            conn: connect(server),
            prefix: prefix.to_owned(),
            seen: Vec::new(),
            last: HashMap::new(),
        }
    }

    /// Sends one request and gives its whole reply in a form that can be compared.
    pub fn call(&mut self, words: &[Vec<u8>]) -> String {
        let bytes = self.bytes(words);
        match self.conn.call_fenced(&bytes) {
            Ok(reply) => self.normal(words, &reply),
            Err(error) => {
                println!("no whole reply to {}", escape(&bytes));
                self.conn = connect(self.server);
                format!("({:?})", error.kind())
            }
        }
    }

    fn bytes(&self, words: &[Vec<u8>]) -> Vec<u8> {
        let data_at = words.iter().position(|w| w == b"DATA");
        let data = data_at.map(|at| words.get(at + 1).cloned().unwrap_or_default());
        let key = words
            .iter()
            .skip(1)
            .find_map(|w| self.key(w))
            .unwrap_or_default();
        let length = data.as_ref().map_or(0, Vec::len).to_string();
        let mut line = Vec::new();
        for (at, word) in words[..data_at.unwrap_or(words.len())].iter().enumerate() {
            if at > 0 {
                line.push(b' ');
            }
            let unique = || {
                self.last
                    .get(&key)
                    .cloned()
                    .unwrap_or_else(|| u64::MAX.to_string())
            };
            match word.as_slice() {
                b"LEN" => line.extend_from_slice(length.as_bytes()),
                b"CAS" => line.extend_from_slice(unique().as_bytes()),
                b"CCAS" => line.extend_from_slice(format!("C{}", unique()).as_bytes()),
                [b'B', digit @ b'1'..=b'5'] => {
                    line.extend_from_slice(base64(&self.named(*digit)).as_bytes())
                }
                _ => line.extend_from_slice(self.key(word).as_ref().unwrap_or(word)),
            }
        }
        line.extend_from_slice(b"\r\n");
        if let Some(data) = data {
            line.extend_from_slice(&data);
            line.extend_from_slice(b"\r\n");
        }
        line
    }

    fn named(&self, digit: u8) -> Vec<u8> {
        format!("{}k{}", self.prefix, char::from(digit)).into_bytes()
    }

    fn key(&self, word: &[u8]) -> Option<Vec<u8>> {
        if let [b'K' | b'B', digit @ b'1'..=b'5'] = word {
            Some(self.named(*digit))
        } else {
            None
        }
    }

    fn normal(&mut self, words: &[Vec<u8>], reply: &[u8]) -> String {
        let key = words
            .iter()
            .skip(1)
            .find_map(|w| self.key(w))
            .unwrap_or_default();
        let mut out = Vec::new();
        let mut rest = reply;
        while !rest.is_empty() {
            let end = rest
                .iter()
                .position(|b| *b == b'\n')
                .map_or(rest.len(), |n| n + 1);
            let (line, after) = rest.split_at(end);
            rest = after;
            let (shown, data) = self.line(&String::from_utf8_lossy(line), &key);
            out.push(shown);
            if let Some(length) = data {
                let (block, after) = rest.split_at(rest.len().min(length + 2));
                // A number that lost a digit keeps its length in memcached, padded with spaces: allowed, not required. What was appended to it
                // since comes after them, so every space is left out.
                let unpadded: Vec<u8> = block.iter().copied().filter(|b| *b != b' ').collect();
                out.push(escape(&unpadded));
                rest = after;
            }
        }
        // The prefix differs from run to run while a sequence is shrunk.
        out.join("\n").replace(&self.prefix, "")
    }

    /// One line of a reply, and the length of the data block that follows it.
    fn line(&mut self, line: &str, key: &[u8]) -> (String, Option<usize>) {
        let mut words: Vec<String> = line.trim_end().split(' ').map(str::to_owned).collect();
        let mut data = None;
        match words[0].as_str() {
            "VALUE" => {
                data = words.get(3).and_then(|n| n.parse().ok());
                let of = words.get(1).cloned().unwrap_or_default();
                if let Some(unique) = words.get_mut(4) {
                    *unique = self.unique(unique.clone(), of.as_bytes());
                }
                // The length of a padded number is compared through its digits.
                if let Some(length) = words.get_mut(3) {
                    *length = "n".into();
                }
            }
            "VERSION" => return ("VERSION".into(), None),
            "ME" => words.retain(|word| {
                !["exp=", "la=", "cas=", "cls=", "size="]
                    .iter()
                    .any(|p| word.starts_with(p))
            }),
            "VA" | "HD" | "EN" | "NS" | "EX" | "NF" => {
                if words[0] == "VA" {
                    data = words.get(1).and_then(|n| n.parse().ok());
                    if let Some(length) = words.get_mut(1) {
                        *length = "n".into();
                    }
                }
                for word in words.iter_mut().skip(1) {
                    *word = self.flag(word, key);
                }
            }
            _ => {}
        }
        (words.join(" "), data)
    }

    fn flag(&mut self, word: &str, key: &[u8]) -> String {
        let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        match word.split_at_checked(1) {
            Some(("c", rest)) if number(rest) => format!("c{}", self.unique(rest.to_owned(), key)),
            Some(("t", rest)) if number(rest) => "t+".into(),
            Some(("l", rest)) if number(rest) => "l+".into(),
            // The size of a padded number.
            Some(("s", rest)) if number(rest) => "s+".into(),
            _ => word.to_owned(),
        }
    }

    fn unique(&mut self, number: String, key: &[u8]) -> String {
        self.last.insert(key.to_vec(), number.clone());
        let at = self
            .seen
            .iter()
            .position(|n| *n == number)
            .unwrap_or_else(|| {
                self.seen.push(number);
                self.seen.len() - 1
            });
        format!("cas{at}")
    }
}

fn connect(server: &Server) -> McConn {
    let port = server
        .memcached_port
        .expect("both servers have a memcached port");
    McConn::open(port, TIMEOUT).expect("the server accepts connections")
}

/// Standard base64.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for group in bytes.chunks(3) {
        let all =
            group.iter().fold(0u32, |sum, b| sum << 8 | u32::from(*b)) << (8 * (3 - group.len()));
        for at in 0..4 {
            let letter = LETTERS[(all >> (18 - 6 * at) & 63) as usize];
            out.push(if at <= group.len() {
                char::from(letter)
            } else {
                '='
            });
        }
    }
    out
}

#[test]
fn base64_of_every_remainder() {
    assert_eq!(
        [
            base64(b""),
            base64(b"f"),
            base64(b"fo"),
            base64(b"foo"),
            base64(b"foob")
        ],
        ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg=="]
    );
}
