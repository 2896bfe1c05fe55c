//! The semantics and encodings of the data types. Knows no protocol: it works on byte slices and on the store's slots and
//! entries, and says what happened; how that is answered is the commands' concern.

pub mod bitmap;
pub mod hyperloglog;
pub mod string;
