//! The sockets that the server listens on, and how they follow the configuration.

use pantala_config::Settings;
use pantala_engine::shared::{MEMCACHED_LISTENER, RESP_LISTENER, UNIX_LISTENER};
use pantala_reactor::{Acceptor, Listener};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::path::Path;

/// What Redis and memcached say to a client beyond `maxclients`.
const RESP_FULL: &[u8] = b"-ERR max number of clients reached\r\n";
const MEMCACHED_FULL: &[u8] = b"ERROR Too many open connections\r\n";

/// Binds the Redis port on every address of `bind`. Errors name the address.
pub fn resp(settings: &Settings) -> Result<Vec<Listener>, String> {
    tcp(settings, settings.port, RESP_LISTENER, RESP_FULL)
}

/// Binds the memcached port.
pub fn memcached(settings: &Settings) -> Result<Vec<Listener>, String> {
    tcp(
        settings,
        settings.memcached_port,
        MEMCACHED_LISTENER,
        MEMCACHED_FULL,
    )
}

/// Binds the Unix socket, if one is configured.
pub fn unix(settings: &Settings) -> Result<Option<Listener>, String> {
    if settings.unixsocket.is_empty() {
        return Ok(None);
    }
    let mode = (settings.unixsocketperm != 0).then_some(settings.unixsocketperm);
    Listener::unix(
        UNIX_LISTENER,
        Path::new(&settings.unixsocket),
        mode,
        backlog(settings),
    )
    .map(|listener| Some(listener.with_rejection(RESP_FULL)))
    .map_err(|error| {
        format!(
            "Failed opening Unix socket {}: {error}",
            settings.unixsocket
        )
    })
}

/// Takes the Redis port elsewhere (`CONFIG SET port` and `bind`). The reason why that failed goes to the log; the client gets the text that
/// Redis has for it.
pub fn move_resp(acceptor: &Acceptor, old: &Settings, new: &Settings) -> Result<(), String> {
    if old.port == new.port && old.bind == new.bind {
        return Ok(());
    }
    rebind(acceptor, old, new).map_err(|reason| {
        log::warn!("{reason}");
        if old.bind == new.bind {
            "Unable to listen on this port. Check server logs.".to_owned()
        } else {
            "Failed to bind to specified addresses.".to_owned()
        }
    })
}

/// The new sockets are bound before the old ones are closed, unless they overlap.
fn rebind(acceptor: &Acceptor, old: &Settings, new: &Settings) -> Result<(), String> {
    if old.port == new.port {
        acceptor.remove(RESP_LISTENER);
        match resp(new) {
            Ok(listeners) => listeners
                .into_iter()
                .for_each(|listener| acceptor.add(listener)),
            Err(text) => {
                // What served before serves again.
                resp(old)?
                    .into_iter()
                    .for_each(|listener| acceptor.add(listener));
                return Err(text);
            }
        }
    } else {
        let listeners = resp(new)?;
        acceptor.remove(RESP_LISTENER);
        listeners
            .into_iter()
            .for_each(|listener| acceptor.add(listener));
    }
    Ok(())
}

fn backlog(settings: &Settings) -> i32 {
    i32::try_from(settings.tcp_backlog).unwrap_or(i32::MAX)
}

fn tcp(
    settings: &Settings,
    port: u16,
    index: u16,
    rejection: &[u8],
) -> Result<Vec<Listener>, String> {
    if port == 0 {
        return Ok(Vec::new());
    }
    let mut listeners = Vec::new();
    for bind in &settings.bind.0 {
        for address in addresses(&bind.address, port)
            .map_err(|error| format!("Could not resolve bind address {}: {error}", bind.address))?
        {
            match Listener::tcp(index, address, backlog(settings)) {
                Ok(listener) => listeners.push(listener.with_rejection(rejection)),
                // A leading `-` says that the address may be missing on this machine.
                Err(error) if bind.optional => {
                    log::debug!("Optional address {address} is not available: {error}")
                }
                Err(error) => {
                    return Err(format!(
                        "Could not create server TCP listening socket {address}: bind: {error}"
                    ));
                }
            }
        }
    }
    if listeners.is_empty() && !settings.bind.0.is_empty() {
        return Err(format!("Failed listening on port {port}, aborting."));
    }
    Ok(listeners)
}

fn addresses(text: &str, port: u16) -> std::io::Result<Vec<SocketAddr>> {
    match text {
        "*" => Ok(vec![SocketAddr::new(
            IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            port,
        )]),
        "::*" => Ok(vec![SocketAddr::new(
            IpAddr::V6(Ipv6Addr::UNSPECIFIED),
            port,
        )]),
        name => Ok((name, port).to_socket_addrs()?.collect()),
    }
}
