//! Telling the service manager how the mount is (sd_notify(3)): a datagram to the socket that NOTIFY_SOCKET names.

use std::env;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Where the service manager listens; a leading `@` is an abstract address.
const SOCKET: &str = "NOTIFY_SOCKET";

/// The mount is usable: a unit of Type=notify has started.
pub(super) fn ready(status: &str) {
    tell(&format!("READY=1\nMAINPID={}\nSTATUS={status}\n", std::process::id()));
}

/// The mount ends; closing the store may take a while.
pub(super) fn stopping() {
    tell("STOPPING=1\nSTATUS=closing the store\n");
}

fn tell(message: &str) {
    let Some(socket) = env::var_os(SOCKET).filter(|socket| !socket.is_empty()) else { return };
    if let Err(error) = send(socket.as_bytes(), message.as_bytes()) {
        log::warn!("the service manager was not told: {error}");
    }
}

fn send(socket: &[u8], message: &[u8]) -> io::Result<()> {
    let address = match socket.strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(socket))?,
    };
    UnixDatagram::unbound()?.send_to_addr(message, &address).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_sockets_are_reached() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("socket");
        let listener = UnixDatagram::bind(&path).expect("bind");
        send(path.as_os_str().as_bytes(), b"READY=1").expect("sent");
        let mut buf = [0; 64];
        assert_eq!(listener.recv(&mut buf).map(|len| buf[..len].to_vec()).expect("received"), b"READY=1");

        let name = format!("cellfs-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).expect("an address");
        let listener = UnixDatagram::bind_addr(&address).expect("bind");
        send(format!("@{name}").as_bytes(), b"STOPPING=1").expect("sent");
        assert_eq!(listener.recv(&mut buf).map(|len| buf[..len].to_vec()).expect("received"), b"STOPPING=1");
    }
}
