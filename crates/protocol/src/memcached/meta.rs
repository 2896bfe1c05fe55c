//! The meta commands `mg`, `ms`, `md` and `ma`: their flags, checked.

use super::numbers::{parse_i32, parse_u32, parse_u64};
use super::request::{McKey, Tokens};
use super::{KEY_BYTES_MAX, base64};

/// With the command and the key, counted as memcached does: one more than there are words.
const WORDS_MAX: usize = 20;
const OPAQUE_BYTES_MAX: usize = 32;
pub(super) const BAD_FORMAT: &str = "CLIENT_ERROR bad command line format";
const BAD_TOKEN: &str = "CLIENT_ERROR bad token in command line format";
const BAD_FLAG: &str = "CLIENT_ERROR invalid or duplicate flag";

/// Which meta command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetaVerb {
    /// `mg`.
    Get,
    /// `ms`.
    Set,
    /// `md`.
    Delete,
    /// `ma`.
    Arithmetic,
}

/// A meta command.
#[derive(Clone, Debug)]
pub struct Meta<'a> {
    /// Which one.
    pub verb: MetaVerb,
    /// The key.
    pub key: McKey<'a>,
    /// The flags by meaning.
    pub flags: MetaFlags,
    /// The value of `ms`, else empty.
    pub data: &'a [u8],
    pub(super) words: Tokens<'a>,
}

impl<'a> Meta<'a> {
    /// The flags in the order in which the reply returns them.
    pub fn tokens(&self) -> MetaFlagsIter<'a> {
        MetaFlagsIter(self.words.clone())
    }
}

/// A flag as it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetaFlag<'a> {
    /// The letter.
    pub flag: u8,
    /// What follows it.
    pub token: &'a [u8],
}

/// Iterator over flags in the order in which they were written.
#[derive(Clone, Debug)]
pub struct MetaFlagsIter<'a>(Tokens<'a>);

impl<'a> Iterator for MetaFlagsIter<'a> {
    type Item = MetaFlag<'a>;

    fn next(&mut self) -> Option<MetaFlag<'a>> {
        let (&flag, token) = self.0.next()?.split_first()?;
        Some(MetaFlag { flag, token })
    }
}

/// The flags of a meta command by meaning. Those that only ask for something in the reply (`c f h k l O s t`) are found with [`Meta::tokens`].
/// Times are in seconds from now or Unix times; negative means expired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MetaFlags {
    /// `q`: no reply in the ordinary case.
    pub quiet: bool,
    /// `v`: the value is wanted.
    pub value: bool,
    /// `u`: do not count as an access.
    pub no_update: bool,
    /// `h` or `l` among the flags: what is returned was true before this access.
    pub wants_access_info: bool,
    /// `I`: mark as stale (`md`), or store although the CAS number is older (`ms`).
    pub invalidate: bool,
    /// `x`: `md` removes the value and keeps the item.
    pub remove_value: bool,
    /// `N`: on a miss, create the item with this expiry time.
    pub vivify_s: Option<i32>,
    /// `T`: the new expiry time.
    pub ttl_s: Option<i32>,
    /// `R`: whoever comes when less than this is left wins the right to refresh the item.
    pub recache_s: Option<i32>,
    /// `F`: the client's flags.
    pub client_flags: u32,
    /// `C`: only if the CAS number is this.
    pub cas: Option<u64>,
    /// `E`: the CAS number to give to the item.
    pub new_cas: Option<u64>,
    /// `M`: the mode letter, checked: of `ms` one of `E A P R S`, of `ma` one of `I + D -`.
    pub mode: Option<u8>,
    /// `J`: the initial value for `ma`.
    pub initial: u64,
    /// `D`: the delta for `ma`; 1 without it.
    pub delta: u64,
}

/// Splits the line behind the verb into key and flags, and checks all. For [`MetaVerb::Set`], `words` begin behind the length.
pub(super) fn parse<'a>(
    verb: MetaVerb,
    key: &'a [u8],
    words: Tokens<'a>,
) -> Result<Meta<'a>, &'static str> {
    let mut meta = Meta {
        verb,
        key: McKey::Plain(key),
        flags: MetaFlags {
            delta: 1,
            ..MetaFlags::default()
        },
        data: &[],
        words,
    };
    parse_flags(&mut meta, key).map_err(|error| match verb {
        MetaVerb::Delete | MetaVerb::Arithmetic => BAD_FLAG,
        MetaVerb::Get | MetaVerb::Set => error,
    })?;
    match (verb, meta.flags.mode) {
        (MetaVerb::Set, Some(mode)) if !b"EAPRS".contains(&mode) => {
            return Err("CLIENT_ERROR invalid mode for ms M token");
        }
        (MetaVerb::Arithmetic, Some(mode)) if !b"I+D-".contains(&mode) => {
            return Err("CLIENT_ERROR invalid mode for ma M token");
        }
        _ => {}
    }
    let mut opaque = meta.tokens().filter(|token| token.flag == b'O');
    if opaque.any(|token| token.token.len() >= OPAQUE_BYTES_MAX) {
        return Err("CLIENT_ERROR opaque token too long");
    }
    Ok(meta)
}

/// What stands before any look at the flags. `words` counts the command, the key and what follows.
pub(super) fn check_line(verb: MetaVerb, key: &[u8], words: usize) -> Result<(), &'static str> {
    if key.len() > KEY_BYTES_MAX {
        return Err(BAD_FORMAT);
    }
    if words + 1 > WORDS_MAX {
        return Err(match verb {
            MetaVerb::Get => "CLIENT_ERROR options flags are too long",
            _ => "CLIENT_ERROR options flags too long",
        });
    }
    Ok(())
}

/// As memcached does, this reads on after a bad token, so the last complaint is the one that is reported; a flag that is unknown or
/// repeated ends it.
fn parse_flags<'a>(meta: &mut Meta<'a>, key: &'a [u8]) -> Result<(), &'static str> {
    let mut seen = 0u128;
    let mut complaint = None;
    for MetaFlag { flag, token } in meta.tokens() {
        if flag >= 127 || seen & (1 << flag) != 0 {
            return Err("CLIENT_ERROR duplicate flag");
        }
        seen |= 1 << flag;
        let flags = &mut meta.flags;
        let problem = match flag {
            b'b' => match base64::decode(key) {
                Some(bytes) => {
                    meta.key = McKey::Binary(bytes.into());
                    None
                }
                None => Some("CLIENT_ERROR error decoding key"),
            },
            b'N' => set(&mut flags.vivify_s, parse_i32(token), BAD_TOKEN),
            b'T' => set(&mut flags.ttl_s, parse_i32(token), BAD_TOKEN),
            b'R' => set(&mut flags.recache_s, parse_i32(token), BAD_TOKEN),
            b'C' => set(&mut flags.cas, parse_u64(token), BAD_TOKEN),
            b'E' => set(&mut flags.new_cas, parse_u64(token), BAD_TOKEN),
            b'F' => set_number(
                &mut flags.client_flags,
                parse_u32(token),
                complaint.unwrap_or(BAD_FORMAT),
            ),
            b'J' => set_number(
                &mut flags.initial,
                parse_u64(token),
                "CLIENT_ERROR invalid numeric initial value",
            ),
            b'D' => set_number(
                &mut flags.delta,
                parse_u64(token),
                "CLIENT_ERROR invalid numeric delta value",
            ),
            b'M' => {
                let mode = match token {
                    [mode] => Some(*mode),
                    _ => None,
                };
                set(
                    &mut flags.mode,
                    mode,
                    "CLIENT_ERROR incorrect length for M token",
                )
            }
            _ => {
                switch(flags, flag)?;
                None
            }
        };
        complaint = problem.or(complaint);
    }
    complaint.map_or(Ok(()), Err)
}

fn set<T>(slot: &mut Option<T>, value: Option<T>, error: &'static str) -> Option<&'static str> {
    *slot = value;
    slot.is_none().then_some(error)
}

fn set_number<T>(slot: &mut T, value: Option<T>, error: &'static str) -> Option<&'static str> {
    match value {
        Some(value) => {
            *slot = value;
            None
        }
        None => Some(error),
    }
}

/// The flags that have no token.
fn switch(flags: &mut MetaFlags, flag: u8) -> Result<(), &'static str> {
    match flag {
        b'q' => flags.quiet = true,
        b'v' => flags.value = true,
        b'u' => flags.no_update = true,
        b'h' | b'l' => flags.wants_access_info = true,
        b'I' => flags.invalidate = true,
        b'x' => flags.remove_value = true,
        // Only of interest to the reply, or to proxies.
        b'O' | b'P' | b'L' | b'k' | b's' | b't' | b'c' | b'f' => {}
        _ => return Err("CLIENT_ERROR invalid flag"),
    }
    Ok(())
}
