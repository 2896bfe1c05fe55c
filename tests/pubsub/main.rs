//! Publish and subscribe: conversations between several clients, the same with this server and with `redis-server`, compared byte for
//! byte; and subscribers that do not read.

mod conversation;
mod slow;

use std::path::Path;

#[test]
fn conversations_are_as_with_redis() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("pubsub/conversations.txt");
    let text = std::fs::read_to_string(&path).expect("the suite's own file");
    conversation::compare(&text);
}
