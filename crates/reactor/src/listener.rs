//! Sockets that listen: TCP addresses and Unix paths. Binding happens here, in the caller's thread, so that a start
//! can fail with a clear error; accepting is the acceptor's.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use socket2::{Domain, Protocol, SockAddr, SockRef, Socket, TcpKeepalive, Type};

use crate::conn::Origin;

/// One listening socket. Connections that come through it carry its index; several listeners may share one (for
/// example the addresses of one port).
pub struct Listener {
    socket: Socket,
    index: u16,
    place: Place,
    rejection: Vec<u8>,
}

enum Place {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl Listener {
    /// Listens on a TCP address (port 0: the system chooses, see [`local_addr`](Self::local_addr)). An IPv6 address
    /// does not take IPv4 connections. Errors: those of `socket`, `bind` and `listen`.
    pub fn tcp(index: u16, address: SocketAddr, backlog: i32) -> io::Result<Self> {
        let socket = Socket::new(
            Domain::for_address(address),
            Type::STREAM,
            Some(Protocol::TCP),
        )?;
        socket.set_reuse_address(true)?;
        if address.is_ipv6() {
            socket.set_only_v6(true)?;
        }
        socket.bind(&address.into())?;
        let bound = socket.local_addr()?.as_socket().unwrap_or(address);
        Self::listen(socket, backlog, index, Place::Tcp(bound))
    }

    /// Listens on a Unix socket. A socket file that is there already is replaced, as Redis does; any other file is
    /// an error. `mode` are the file's permissions (`None`: as the umask says). The file is removed when the
    /// listener is dropped.
    pub fn unix(index: u16, path: &Path, mode: Option<u32>, backlog: i32) -> io::Result<Self> {
        match fs::symlink_metadata(path) {
            Ok(found) if found.file_type().is_socket() => fs::remove_file(path)?,
            Ok(_) => {
                return Err(io::Error::new(
                    io::ErrorKind::AddrInUse,
                    format!("{} exists and is not a socket", path.display()),
                ));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        socket.bind(&SockAddr::unix(path)?)?;
        // Before it listens: nobody connects with other permissions.
        if let Some(mode) = mode {
            fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
        }
        Self::listen(socket, backlog, index, Place::Unix(path.to_owned()))
    }

    fn listen(socket: Socket, backlog: i32, index: u16, place: Place) -> io::Result<Self> {
        let listener = Self {
            socket,
            index,
            place,
            rejection: Vec::new(),
        };
        listener.socket.listen(backlog)?;
        listener.socket.set_nonblocking(true)?;
        Ok(listener)
    }

    /// What a connection above the limit of clients is told before it is closed (default: nothing).
    #[must_use]
    pub fn with_rejection(mut self, message: &[u8]) -> Self {
        self.rejection = message.to_vec();
        self
    }

    /// The index that was given.
    pub fn index(&self) -> u16 {
        self.index
    }

    /// The TCP address, with the port that the system chose; `None` for a Unix socket.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        match self.place {
            Place::Tcp(address) => Some(address),
            Place::Unix(_) => None,
        }
    }

    pub(crate) fn raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    pub(crate) fn rejection(&self) -> &[u8] {
        &self.rejection
    }

    /// Takes one waiting connection; `WouldBlock` when there is none.
    pub(crate) fn accept(&self, keepalive_s: u32) -> io::Result<(OwnedFd, Origin)> {
        let (socket, peer) = self.socket.accept()?;
        let fd = socket.as_raw_fd();
        let origin = match &self.place {
            Place::Tcp(address) => {
                // Both are comforts: a connection that is already gone may refuse them, and its first receive tells.
                let _ = socket.set_tcp_nodelay(true);
                let _ = set_keepalive(&socket, keepalive_s);
                let peer = peer.as_socket();
                // A listener on all addresses does not know which one the peer used.
                let local = socket.local_addr().ok().and_then(|local| local.as_socket());
                Origin {
                    listener: self.index,
                    peer: peer.map_or_else(|| "?:0".to_owned(), |peer| peer.to_string()),
                    local: local.unwrap_or(*address).to_string(),
                    fd,
                    unix: false,
                    loopback: peer.is_some_and(|peer| is_loopback(&peer)),
                }
            }
            Place::Unix(path) => {
                let name = format!("{}:0", path.display());
                Origin {
                    listener: self.index,
                    peer: name.clone(),
                    local: name,
                    fd,
                    unix: true,
                    loopback: true,
                }
            }
        };
        Ok((socket.into(), origin))
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Place::Unix(path) = &self.place {
            // Somebody may have removed it before us; that is what we want anyway.
            let _ = fs::remove_file(path);
        }
    }
}

fn is_loopback(peer: &SocketAddr) -> bool {
    peer.ip().to_canonical().is_loopback()
}

/// As Redis: the first probe after `seconds`, then three more, a third of that apart. 0: no probes.
fn set_keepalive(socket: &Socket, seconds: u32) -> io::Result<()> {
    if seconds == 0 {
        return Ok(());
    }
    let pause_s = u64::from((seconds / 3).max(1));
    SockRef::from(socket).set_tcp_keepalive(
        &TcpKeepalive::new()
            .with_time(Duration::from_secs(u64::from(seconds)))
            .with_interval(Duration::from_secs(pause_s))
            .with_retries(3),
    )
}
