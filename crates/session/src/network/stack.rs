// SPDX-License-Identifier: MIT OR Apache-2.0
//! The TCP/IP stack at the host's end of the cable. It has the address of every machine that the guest can reach.

use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::socket::tcp;
use smoltcp::wire::{IpAddress, IpCidr, IpEndpoint};
use std::net::SocketAddrV4;

use crate::peer::{BOARD, HOST, MAC, Queues, instant};

/// Bytes of a connection's buffer, in each direction.
pub(crate) const BUFFER: usize = 64 * 1024;

/// The stack, its connections and its frames.
pub(crate) struct Stack {
    interface: Interface,
    pub(crate) queues: Queues,
    sockets: SocketSet<'static>,
    /// Time of the last poll, in nanoseconds since power-on. It never runs backwards.
    pub(crate) ns: u64,
}

impl Stack {
    pub(crate) fn new() -> Stack {
        let mut queues = Queues::default();
        let mut interface = Interface::new(Config::new(MAC.into()), &mut queues, instant(0));
        interface.update_ip_addrs(|addresses| {
            // The list has room for one address.
            let _ = addresses.push(IpCidr::new(IpAddress::Ipv4(HOST), 24));
        });
        // The stack takes packets to other addresses only if it is the router to them.
        interface.set_any_ip(true);
        // The list has room for one route.
        let _ = interface.routes_mut().add_default_ipv4_route(HOST);
        Stack {
            interface,
            queues,
            sockets: SocketSet::new(Vec::new()),
            ns: 0,
        }
    }

    /// Takes the waiting frames and makes new frames.
    pub(crate) fn poll(&mut self, ns: u64) {
        self.ns = self.ns.max(ns);
        let now = instant(self.ns);
        self.interface
            .poll(now, &mut self.queues, &mut self.sockets);
    }

    /// Returns the time at which the stack next has work, in nanoseconds since power-on.
    pub(crate) fn wakes_ns(&mut self) -> u64 {
        let wakes = self.interface.poll_at(instant(self.ns), &self.sockets);
        wakes.map_or(u64::MAX, |at| {
            (at.total_micros() as u64 + 1).max(self.ns / 1000 + 1) * 1000
        })
    }

    /// Returns a connection's socket.
    pub(crate) fn socket(&mut self, handle: SocketHandle) -> &mut tcp::Socket<'static> {
        self.sockets.get_mut(handle)
    }

    /// Removes a socket.
    pub(crate) fn remove(&mut self, handle: SocketHandle) {
        self.sockets.remove(handle);
    }

    /// Takes the connection that the guest opens with the frame `syn`. Returns `None` if the stack refuses the frame.
    pub(crate) fn accept(&mut self, far: SocketAddrV4, syn: Vec<u8>) -> Option<SocketHandle> {
        let mut socket = socket();
        if socket.listen(endpoint(far)).is_err() {
            return None;
        }
        let handle = self.sockets.add(socket);
        self.queues.received.push_back(syn);
        self.poll(self.ns);
        if self.socket(handle).is_listening() {
            self.remove(handle);
            return None;
        }
        Some(handle)
    }

    /// Opens a connection to a port of the guest. Returns `None` if the stack refuses the port.
    pub(crate) fn connect(&mut self, guest: u16, from: SocketAddrV4) -> Option<SocketHandle> {
        let mut socket = socket();
        let context = self.interface.context();
        let opened = socket.connect(context, (IpAddress::Ipv4(BOARD), guest), endpoint(from));
        opened.ok().map(|()| self.sockets.add(socket))
    }
}

fn endpoint(address: SocketAddrV4) -> IpEndpoint {
    IpEndpoint::new(IpAddress::Ipv4(*address.ip()), address.port())
}

fn socket() -> tcp::Socket<'static> {
    let buffer = || tcp::SocketBuffer::new(vec![0; BUFFER]);
    let mut socket = tcp::Socket::new(buffer(), buffer());
    // The host's sockets have joined small pieces already.
    socket.set_nagle_enabled(false);
    socket
}
