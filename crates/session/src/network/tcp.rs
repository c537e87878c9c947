// SPDX-License-Identifier: MIT OR Apache-2.0
//! TCP connections. Each connection joins a socket of the host and a socket of the stack that the guest sees.
//!
//! A side that reads nothing stops the other side when the buffers are full. The end of one direction leaves the other
//! direction open. A reset of one side resets the other.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddrV4, TcpStream};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt};
use smoltcp::iface::SocketHandle;
use smoltcp::socket::tcp::{Socket, State};

use super::forward::Listening;
use super::reach::Reach;
use super::stack::Stack;
use crate::peer::HOST;

/// Largest number of connections.
pub(crate) const MOST: usize = 64;
/// Largest number of clients that a port takes at once.
const AT_ONCE: usize = 16;
/// Real time in which the far machine must accept a connection of the guest.
const DIAL: Duration = Duration::from_secs(20);
/// Real time in which the guest must accept a connection. A guest boots in this time.
const GREET: Duration = Duration::from_secs(600);
/// First port from which clients of forwarded ports seem to come.
const FIRST_PORT: u16 = 49_152;

/// A connection.
struct Connection {
    stream: TcpStream,
    guest: u16,
    /// The other end, as the guest sees it.
    far: SocketAddrV4,
    since: Instant,
    stage: Stage,
}

enum Stage {
    /// The host connects to the far machine. The guest's first frame waits.
    Dials { syn: Vec<u8> },
    /// The stack has a socket.
    Open(Ends),
}

/// The stack's socket and the ends of the two directions.
struct Ends {
    handle: SocketHandle,
    /// Whether the host's side sends nothing more.
    host: bool,
    /// Whether the guest has ended its direction. The host's side may not have all bytes yet.
    guest: bool,
    /// Whether the host's side has all bytes of the guest.
    passed: bool,
}

/// State of a connection after a look.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    Goes,
    Over,
    /// One of the sides broke the connection.
    Broken,
}

/// All connections.
pub(crate) struct Connections {
    all: Vec<Connection>,
    /// Sockets that were reset. They are removed when the stack has sent the reset.
    reset: Vec<SocketHandle>,
    next_port: u16,
    /// Number of connections that were refused because there were too many.
    pub(crate) too_many: u64,
}

impl Connections {
    pub(crate) fn new() -> Connections {
        Connections {
            all: Vec::new(),
            reset: Vec::new(),
            next_port: FIRST_PORT,
            too_many: 0,
        }
    }

    /// Handles the guest's first frame of a connection. Returns the frame if the stack must answer it now.
    pub(crate) fn opens(
        &mut self,
        (guest, far): (u16, SocketAddrV4),
        syn: Vec<u8>,
        reach: &Reach,
        stack: &mut Stack,
    ) -> Option<Vec<u8>> {
        let same = |c: &&Connection| c.guest == guest && c.far == far;
        match self.all.iter().find(same).map(|c| &c.stage) {
            Some(Stage::Dials { .. }) => return None,
            Some(Stage::Open(_)) => return Some(syn),
            None => {}
        }
        let Some(target) = reach.target(far) else {
            return Some(syn);
        };
        if !self.has_room(stack) {
            return Some(syn);
        }
        let Ok(stream) = dial(target) else {
            return Some(syn);
        };
        self.add(stream, (guest, far), Stage::Dials { syn });
        None
    }

    fn add(&mut self, stream: TcpStream, (guest, far): (u16, SocketAddrV4), stage: Stage) {
        self.all.push(Connection {
            stream,
            guest,
            far,
            since: Instant::now(),
            stage,
        });
    }

    /// Returns whether another connection may begin. A closed connection that only waits for late frames makes room.
    fn has_room(&mut self, stack: &mut Stack) -> bool {
        if self.all.len() < MOST {
            return true;
        }
        let mut waits = |c: &Connection| match &c.stage {
            Stage::Open(ends) => stack.socket(ends.handle).state() == State::TimeWait,
            Stage::Dials { .. } => false,
        };
        let Some(at) = self.all.iter().position(&mut waits) else {
            self.too_many += 1;
            return false;
        };
        if let Stage::Open(ends) = self.all.remove(at).stage {
            stack.remove(ends.handle);
        }
        true
    }

    /// Takes the clients of a forwarded port.
    pub(crate) fn take_clients(&mut self, port: &Listening, stack: &mut Stack) {
        for _ in 0..AT_ONCE {
            let Ok((stream, _)) = port.listener.accept() else {
                return;
            };
            let prepared = stream.set_nonblocking(true).is_ok() && self.has_room(stack);
            let far = SocketAddrV4::new(HOST, self.free_port(port.guest));
            let handle = prepared.then(|| stack.connect(port.guest, far)).flatten();
            match handle {
                Some(handle) => {
                    let _ = stream.set_nodelay(true);
                    self.add(stream, (port.guest, far), Stage::Open(Ends::new(handle)));
                }
                None => reset(stream),
            }
        }
    }

    /// Returns a port that no connection to the guest's port uses. There are far fewer connections than ports.
    fn free_port(&mut self, guest: u16) -> u16 {
        loop {
            let port = self.next_port;
            self.next_port = port.checked_add(1).unwrap_or(FIRST_PORT);
            let far = SocketAddrV4::new(HOST, port);
            if !self.all.iter().any(|c| c.guest == guest && c.far == far) {
                return port;
            }
        }
    }

    /// Moves what has arrived on either side.
    pub(crate) fn look(&mut self, stack: &mut Stack) {
        for handle in self.reset.drain(..) {
            stack.remove(handle);
        }
        let mut at = 0;
        while at < self.all.len() {
            let look = self.all[at].look(stack);
            if look == Look::Goes {
                at += 1;
                continue;
            }
            let gone = self.all.remove(at);
            match gone.stage {
                Stage::Open(ends) if look == Look::Over => stack.remove(ends.handle),
                Stage::Open(ends) => {
                    stack.socket(ends.handle).abort();
                    self.reset.push(ends.handle);
                }
                // No socket listens, so the stack answers with a reset.
                Stage::Dials { syn } => stack.queues.received.push_back(syn),
            }
            if look == Look::Broken {
                reset(gone.stream);
            }
        }
    }
}

impl Connection {
    fn look(&mut self, stack: &mut Stack) -> Look {
        match &mut self.stage {
            Stage::Dials { syn } => match dialled(&self.stream) {
                Ok(true) => {
                    let _ = self.stream.set_nodelay(true);
                    match stack.accept(self.far, std::mem::take(syn)) {
                        Some(handle) => self.stage = Stage::Open(Ends::new(handle)),
                        None => return Look::Broken,
                    }
                    Look::Goes
                }
                Ok(false) if self.since.elapsed() < DIAL => Look::Goes,
                _ => Look::Broken,
            },
            Stage::Open(ends) => {
                let socket = stack.socket(ends.handle);
                match socket.state() {
                    State::Closed if ends.host && ends.passed => Look::Over,
                    State::Closed if !ends.guest => Look::Broken,
                    State::Listen => Look::Broken,
                    State::SynSent | State::SynReceived => {
                        let waits = self.since.elapsed() < GREET && !is_gone(&self.stream);
                        if waits { Look::Goes } else { Look::Broken }
                    }
                    _ => match ends.transfer(&mut self.stream, socket) {
                        Ok(()) => Look::Goes,
                        Err(_) => Look::Broken,
                    },
                }
            }
        }
    }
}

impl Ends {
    fn new(handle: SocketHandle) -> Ends {
        Ends {
            handle,
            host: false,
            guest: false,
            passed: false,
        }
    }

    /// Moves bytes in both directions until one side has none, or the other has no room. Passes on the ends of the
    /// directions.
    fn transfer(&mut self, stream: &mut TcpStream, socket: &mut Socket<'_>) -> io::Result<()> {
        while !self.host && socket.can_send() {
            let read = socket.send(|room| count(stream.read(room)));
            match read.map_err(io::Error::other)? {
                Ok(0) => {
                    self.host = true;
                    socket.close();
                }
                Ok(_) => {}
                Err(error) if is_later(&error) => break,
                Err(error) => return Err(error),
            }
        }
        while socket.can_recv() {
            let written = socket.recv(|bytes| count(stream.write(bytes)));
            match written.map_err(io::Error::other)? {
                Ok(_) => {}
                Err(error) if is_later(&error) => break,
                Err(error) => return Err(error),
            }
        }
        self.guest |= matches!(
            socket.state(),
            State::CloseWait | State::Closing | State::LastAck | State::TimeWait
        );
        if self.guest && !self.passed && !socket.may_recv() {
            stream.shutdown(Shutdown::Write)?;
            self.passed = true;
        }
        Ok(())
    }
}

/// Returns the number of moved bytes, and the result.
fn count(result: io::Result<usize>) -> (usize, io::Result<usize>) {
    (*result.as_ref().unwrap_or(&0), result)
}

fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// Returns whether a client has left and sent nothing.
fn is_gone(stream: &TcpStream) -> bool {
    match stream.peek(&mut [0]) {
        Ok(count) => count == 0,
        Err(error) => !is_later(&error),
    }
}

/// Begins a connection to a machine without waiting for it.
fn dial(to: SocketAddrV4) -> rustix::io::Result<TcpStream> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    match connect(&socket, &to) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(TcpStream::from(socket)),
        Err(error) => Err(error),
    }
}

/// Returns whether a begun connection is open. Fails if the other machine refuses it.
fn dialled(stream: &TcpStream) -> io::Result<bool> {
    match stream.take_error()? {
        Some(error) => Err(error),
        None => Ok(stream.peer_addr().is_ok()),
    }
}

/// Ends a connection of the host with a reset.
fn reset(stream: TcpStream) {
    // If the option fails, the client sees an ordinary end.
    let _ = sockopt::set_socket_linger(&stream, Some(Duration::ZERO));
}

#[cfg(test)]
impl Connections {
    /// Returns the number of connections.
    pub(crate) fn count(&self) -> usize {
        self.all.len()
    }
}
