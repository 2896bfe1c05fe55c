//! Keyspace notifications: what happened to keys, published on channels made from their names.
//!
//! They are published while the key's shard is held, so messages about one key come in the order of its changes.

use super::Kind;
use crate::shared::{Mail, Shared};
use pantala_commands::EventClass;
use pantala_config::KeyspaceEvents;

/// Publishes an event of a key, if its class is configured and anybody listens.
pub fn notify(shared: &Shared, db: u16, key: &[u8], class: EventClass, event: &str) {
    let registry = &shared.pubsub;
    let wanted = registry.events();
    let Some(class) = configured(class) else {
        return;
    };
    if !wanted.wants(class) || !registry.has_listeners() {
        return;
    }
    let publish = |channel: &[u8], payload: &[u8]| {
        registry.publish(Kind::Channel, channel, payload, None, |worker, message| {
            shared.send(worker, Mail::Published(message));
        });
    };
    if wanted.contains(KeyspaceEvents::KEYSPACE) {
        let mut channel = format!("__keyspace@{db}__:").into_bytes();
        channel.extend_from_slice(key);
        publish(&channel, event.as_bytes());
    }
    if wanted.contains(KeyspaceEvents::KEYEVENT) {
        publish(format!("__keyevent@{db}__:{event}").as_bytes(), key);
    }
}

/// The class as `notify-keyspace-events` names it. `None`: it cannot be asked for.
fn configured(class: EventClass) -> Option<KeyspaceEvents> {
    const CLASSES: [(EventClass, KeyspaceEvents); 12] = [
        (EventClass::GENERIC, KeyspaceEvents::GENERIC),
        (EventClass::STRING, KeyspaceEvents::STRING),
        (EventClass::LIST, KeyspaceEvents::LIST),
        (EventClass::SET, KeyspaceEvents::SET),
        (EventClass::HASH, KeyspaceEvents::HASH),
        (EventClass::ZSET, KeyspaceEvents::ZSET),
        (EventClass::EXPIRED, KeyspaceEvents::EXPIRED),
        (EventClass::EVICTED, KeyspaceEvents::EVICTED),
        (EventClass::STREAM, KeyspaceEvents::STREAM),
        (EventClass::KEY_MISS, KeyspaceEvents::KEY_MISS),
        (EventClass::MODULE, KeyspaceEvents::MODULE),
        (EventClass::NEW, KeyspaceEvents::NEW),
    ];
    CLASSES
        .iter()
        .find(|(known, _)| *known == class)
        .map(|&(_, configured)| configured)
}
