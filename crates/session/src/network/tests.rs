// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the network with a TCP/IP stack as the guest and with sockets of the host.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream, UdpSocket};

use board::random::Random;
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::socket::{tcp, udp};
use smoltcp::wire::{EthernetAddress, IpAddress, IpCidr};

use super::*;
use crate::peer::{HOST, MAC, Queues, instant};

const GUEST_MAC: EthernetAddress = EthernetAddress([2, 0, 0, 0, 0, 1]);
const LOOPBACK: Ipv4Addr = Ipv4Addr::LOCALHOST;

/// The network and a scripted guest at the board's end of the cable.
struct World {
    network: Network,
    interface: Interface,
    queues: Queues,
    sockets: SocketSet<'static>,
    ns: u64,
    /// Frames from the guest to the network.
    seen: Vec<Vec<u8>>,
}

impl World {
    fn new(ports: &[u16], host_loopback: bool) -> World {
        let forwards: Vec<Forward> = ports
            .iter()
            .map(|port| format!("0:{port}").parse().unwrap())
            .collect();
        let mut queues = Queues::default();
        let mut interface = Interface::new(Config::new(GUEST_MAC.into()), &mut queues, instant(0));
        interface.update_ip_addrs(|addresses| {
            addresses
                .push(IpCidr::new(IpAddress::Ipv4(BOARD), 24))
                .unwrap();
        });
        interface.routes_mut().add_default_ipv4_route(HOST).unwrap();
        World {
            network: Network::open(&forwards, host_loopback).unwrap(),
            interface,
            queues,
            sockets: SocketSet::new(Vec::new()),
            ns: 0,
            seen: Vec::new(),
        }
    }

    /// Returns the host's port that leads to the guest.
    fn port(&self) -> u16 {
        let listener = &self.network.ports[0].listener;
        listener.local_addr().unwrap().port()
    }

    fn client(&self) -> TcpStream {
        let stream = TcpStream::connect((LOOPBACK, self.port())).unwrap();
        stream.set_nonblocking(true).unwrap();
        stream
    }

    /// Lets 100 microseconds pass for the guest and the network.
    fn step(&mut self) {
        self.ns += 100_000;
        let now = instant(self.ns);
        self.interface
            .poll(now, &mut self.queues, &mut self.sockets);
        for frame in std::mem::take(&mut self.queues.sent) {
            self.seen.push(frame.clone());
            self.network.take(frame, self.ns);
        }
        self.network.look(self.ns, false);
        let answers = std::mem::take(&mut self.network.stack.queues.sent);
        self.queues.received.extend(answers);
    }

    /// Steps until `done` returns a value.
    fn until<T>(&mut self, mut done: impl FnMut(&mut World) -> Option<T>) -> T {
        let start = Instant::now();
        loop {
            if let Some(value) = done(self) {
                return value;
            }
            assert!(start.elapsed() < Duration::from_secs(20), "nothing happens");
            self.step();
        }
    }

    fn tcp(&mut self, handle: SocketHandle) -> &mut tcp::Socket<'static> {
        self.sockets.get_mut(handle)
    }

    fn socket(&mut self) -> SocketHandle {
        let buffer = || tcp::SocketBuffer::new(vec![0; 4096]);
        let mut socket = tcp::Socket::new(buffer(), buffer());
        socket.set_nagle_enabled(false);
        self.sockets.add(socket)
    }

    fn serves(&mut self, port: u16) -> SocketHandle {
        let handle = self.socket();
        self.tcp(handle).listen(port).unwrap();
        handle
    }

    fn opens(&mut self, to: Ipv4Addr, port: u16, from: u16) -> SocketHandle {
        let handle = self.socket();
        let socket = self.sockets.get_mut::<tcp::Socket<'_>>(handle);
        socket
            .connect(self.interface.context(), (to, port), from)
            .unwrap();
        handle
    }

    fn wait_for(&mut self, handle: SocketHandle, state: tcp::State) {
        self.until(|world| (world.tcp(handle).state() == state).then_some(()));
    }

    /// Reads from the guest's socket until `bytes` bytes are there.
    fn guest_reads(&mut self, handle: SocketHandle, bytes: usize) -> Vec<u8> {
        let mut all = Vec::new();
        self.until(|world| {
            let mut buffer = [0; 4096];
            if let Ok(count) = world.tcp(handle).recv_slice(&mut buffer) {
                all.extend(&buffer[..count]);
            }
            (all.len() >= bytes).then_some(())
        });
        all
    }

    /// Reads from the host's socket until its end, or until `bytes` bytes are there.
    fn host_reads(&mut self, stream: &mut TcpStream, bytes: usize) -> Vec<u8> {
        let mut all = Vec::new();
        self.until(|_| {
            let mut buffer = [0; 4096];
            match stream.read(&mut buffer) {
                Ok(0) => return Some(()),
                Ok(count) => all.extend(&buffer[..count]),
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}"),
            }
            (all.len() >= bytes).then_some(())
        });
        all
    }

    /// Waits until the host's socket fails with a reset.
    fn host_is_reset(&mut self, stream: &mut TcpStream) {
        self.until(|_| match stream.read(&mut [0; 64]) {
            Err(error) if error.kind() == ErrorKind::ConnectionReset => Some(()),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}");
                None
            }
            Ok(0) => panic!("an end instead of a reset"),
            Ok(_) => None,
        });
    }
}

#[test]
fn a_client_of_a_forwarded_port_talks_to_the_guest() {
    let mut world = World::new(&[22], false);
    let server = world.serves(22);
    let mut client = world.client();
    client.write_all(b"question").unwrap();
    assert_eq!(world.guest_reads(server, 8), b"question");
    world.tcp(server).send_slice(b"answer").unwrap();
    assert_eq!(world.host_reads(&mut client, 6), b"answer");
}

#[test]
fn the_end_of_one_direction_leaves_the_other_open() {
    let mut world = World::new(&[22], false);
    let server = world.serves(22);
    let mut client = world.client();
    client.write_all(b"all").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    world.wait_for(server, tcp::State::CloseWait);
    assert_eq!(world.guest_reads(server, 3), b"all");
    world.tcp(server).send_slice(b"still answers").unwrap();
    assert_eq!(world.host_reads(&mut client, 13), b"still answers");
    world.tcp(server).close();
    assert_eq!(world.host_reads(&mut client, 1), b"");
    // The guest ends its direction first.
    let server = world.serves(22);
    let mut client = world.client();
    world.wait_for(server, tcp::State::Established);
    world.tcp(server).send_slice(b"bye").unwrap();
    world.tcp(server).close();
    assert_eq!(world.host_reads(&mut client, usize::MAX), b"bye");
    client.write_all(b"late").unwrap();
    assert_eq!(world.guest_reads(server, 4), b"late");
    drop(client);
    world.until(|world| (!world.tcp(server).is_open()).then_some(()));
    world.until(|world| (world.network.connections.count() <= 1).then_some(()));
}

#[test]
fn a_megabyte_each_way_arrives_whole_and_a_slow_reader_stops_the_sender() {
    let mut world = World::new(&[9], false);
    let server = world.serves(9);
    let mut client = world.client();
    let mut random = Random::new(1);
    let sent: Vec<u8> = (0..1 << 20).map(|_| random.below(256) as u8).collect();
    let (mut host_at, mut guest_at) = (0, 0);
    let (mut host_has, mut guest_has) = (Vec::<u8>::new(), Vec::<u8>::new());
    world.until(|world| {
        let mut buffer = [0; 1500];
        if host_at < sent.len() {
            host_at += client.write(&sent[host_at..]).unwrap_or(0);
        }
        let count = client.read(&mut buffer).unwrap_or(0);
        host_has.extend(&buffer[..count]);
        let guest = world.tcp(server);
        let count = guest.recv_slice(&mut buffer).unwrap_or(0);
        guest_has.extend(&buffer[..count]);
        if guest.may_send() && guest_at < sent.len() {
            guest_at += guest.send_slice(&sent[guest_at..]).unwrap_or(0);
        }
        (host_has.len() == sent.len() && guest_has.len() == sent.len()).then_some(())
    });
    assert!(host_has == sent && guest_has == sent);
    // The guest reads nothing. Its own buffer, the stack's buffer and the host's buffers fill, and no frames follow.
    let mut moved = 0;
    let mut quiet = 0;
    world.until(|world| {
        match client.write(&sent) {
            Ok(count) => (moved, quiet) = (moved + count, 0),
            Err(_) => quiet += 1,
        }
        assert!(moved < 64 << 20);
        assert!(world.network.stack.queues.sent.len() < 128);
        (quiet > 2000).then_some(())
    });
    assert!(world.tcp(server).is_active());
}

#[test]
fn a_reset_of_one_side_resets_the_other() {
    let mut world = World::new(&[22], false);
    let server = world.serves(22);
    let mut client = world.client();
    world.wait_for(server, tcp::State::Established);
    world.tcp(server).abort();
    world.host_is_reset(&mut client);
    let server = world.serves(22);
    let client = world.client();
    world.wait_for(server, tcp::State::Established);
    rustix::net::sockopt::set_socket_linger(&client, Some(Duration::ZERO)).unwrap();
    drop(client);
    world.wait_for(server, tcp::State::Closed);
    // A port on which no program of the guest listens.
    let mut client = world.client();
    world.host_is_reset(&mut client);
    world.until(|world| (world.network.connections.count() == 0).then_some(()));
}

#[test]
fn a_thousand_clients_and_a_thousand_requests_of_the_guest_are_refused_beyond_the_limit() {
    let mut world = World::new(&[22], true);
    let clients: Vec<TcpStream> = (0..300)
        .map(|_| {
            let client = world.client();
            // The guest does not answer.
            world.network.look(0, false);
            client
        })
        .collect();
    assert_eq!(world.network.connections.count(), super::tcp::MOST);
    assert!(world.network.connections.too_many >= 200);
    assert_eq!(world.network.notes().len(), 1);
    drop(clients);
    // Without an answer, clients that have left are forgotten.
    world.until(|world| (world.network.connections.count() == 0).then_some(()));
    let listener = TcpListener::bind((LOOPBACK, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    for from in 1000..2000 {
        let handle = world.opens(HOST, port, from);
        world.step();
        world.step();
        assert!(world.network.connections.count() <= super::tcp::MOST);
        // The guest forgets the connection and does not tell.
        world.sockets.remove(handle);
    }
}

#[test]
fn the_guest_reaches_the_host_only_with_permission() {
    let listener = TcpListener::bind((LOOPBACK, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut world = World::new(&[], false);
    for ip in [HOST, Ipv4Addr::new(10, 0, 0, 77), LOOPBACK] {
        let handle = world.opens(ip, port, 4000);
        for _ in 0..50 {
            world.step();
        }
        assert_ne!(world.tcp(handle).state(), tcp::State::Established, "{ip}");
        world.sockets.remove(handle);
    }
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err());
    listener.set_nonblocking(false).unwrap();
    let mut world = World::new(&[], true);
    let handle = world.opens(HOST, port, 4000);
    world.wait_for(handle, tcp::State::Established);
    let (mut far, _) = listener.accept().unwrap();
    far.set_nonblocking(true).unwrap();
    world.tcp(handle).send_slice(b"out").unwrap();
    assert_eq!(world.host_reads(&mut far, 3), b"out");
    // Without a listener, the guest's connection is refused, not lost.
    drop((far, listener));
    let handle = world.opens(HOST, port, 4001);
    world.wait_for(handle, tcp::State::Closed);
}

/// Adds a UDP socket to the guest.
fn udp_socket(world: &mut World, port: u16) -> SocketHandle {
    let buffer = || udp::PacketBuffer::new(vec![udp::PacketMetadata::EMPTY; 8], vec![0; 8192]);
    let mut socket = udp::Socket::new(buffer(), buffer());
    socket.bind(port).unwrap();
    world.sockets.add(socket)
}

#[test]
fn datagrams_go_out_and_answers_come_back() {
    let far = UdpSocket::bind((LOOPBACK, 0)).unwrap();
    far.set_nonblocking(true).unwrap();
    let port = far.local_addr().unwrap().port();
    let mut world = World::new(&[], true);
    let handle = udp_socket(&mut world, 5000);
    let guest = world.sockets.get_mut::<udp::Socket<'_>>(handle);
    guest.send_slice(b"ask", (HOST, port)).unwrap();
    let mut buffer = [0; 2000];
    let from = world.until(|_| far.recv_from(&mut buffer).ok());
    assert_eq!((&buffer[..from.0], from.0), (&b"ask"[..], 3));
    // A datagram that does not fit into a frame is lost. The next one arrives.
    far.send_to(&buffer, from.1).unwrap();
    far.send_to(b"answer", from.1).unwrap();
    let answer = world.until(|world| {
        let guest = world.sockets.get_mut::<udp::Socket<'_>>(handle);
        guest
            .recv()
            .ok()
            .map(|(bytes, meta)| (bytes.to_vec(), meta))
    });
    assert_eq!(answer.0, b"answer");
    assert_eq!(answer.1.endpoint, (HOST, port).into());
}

#[test]
fn a_guest_that_uses_all_ports_keeps_a_bounded_number() {
    let mut world = World::new(&[], true);
    for port in 0..1000u16 {
        let to = std::net::SocketAddrV4::new(HOST, 1 + port);
        let Network {
            datagrams, reach, ..
        } = &mut world.network;
        datagrams.send((GUEST_MAC, 7), to, b"x", reach);
        assert!(datagrams.pairs() <= 64);
    }
    assert_eq!(world.network.datagrams.pairs(), 64);
}

#[test]
fn a_guest_with_another_address_is_told_in_a_note() {
    let mut world = World::new(&[], false);
    world.interface.update_ip_addrs(|addresses| {
        addresses.clear();
        let other = IpAddress::Ipv4(Ipv4Addr::new(10, 0, 0, 5));
        addresses.push(IpCidr::new(other, 24)).unwrap();
    });
    world.opens(HOST, 1, 4000);
    world.step();
    assert!(world.network.notes()[0].contains("10.0.0.2"));
}

/// Returns a frame of the guest with random content behind correct addresses, so that every layer sees some.
fn rough(random: &mut Random, good: &[Vec<u8>]) -> Vec<u8> {
    let mut frame = match good.len() {
        0 => vec![0; 60],
        some => good[random.below(some as u64) as usize].clone(),
    };
    frame.resize(frame.len().max(14), 0);
    frame[..6].copy_from_slice(&MAC.0);
    for _ in 0..random.below(6) {
        let at = random.below(frame.len() as u64) as usize;
        frame[at] = random.below(256) as u8;
    }
    // Nothing leaves this machine.
    if let Some(to) = frame.get_mut(30..34) {
        to.copy_from_slice(&[10, 0, 0, [1, 1, 1, 77][random.below(4) as usize]]);
    }
    if random.below(4) == 0 {
        frame.truncate(random.below(frame.len() as u64 + 1) as usize);
    }
    repair(&mut frame);
    frame
}

/// Sets the checksum of the IP header, so that the frame is not refused because of it.
fn repair(frame: &mut [u8]) {
    if frame.len() < 34 {
        return;
    }
    frame[24..26].fill(0);
    let halves = frame[14..34].chunks(2);
    let sum: u32 = halves
        .map(|half| u32::from(half[0]) << 8 | u32::from(half[1]))
        .sum();
    let folded = (sum & 0xFFFF) + (sum >> 16);
    let sum = !((folded & 0xFFFF) + (folded >> 16)) as u16;
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
}

#[test]
fn no_frame_of_the_guest_is_a_panic() {
    let listener = TcpListener::bind((LOOPBACK, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut world = World::new(&[22], true);
    world.serves(22);
    let _client = world.client();
    let udp = udp_socket(&mut world, 5000);
    let guest = world.sockets.get_mut::<udp::Socket<'_>>(udp);
    guest.send_slice(b"ask", (HOST, 9)).unwrap();
    let out = world.opens(HOST, port, 4000);
    for step in 0..60 {
        if step == 40 {
            world.tcp(out).close();
        } else if world.tcp(out).can_send() {
            world.tcp(out).send_slice(b"something").unwrap();
        }
        world.step();
    }
    let good = std::mem::take(&mut world.seen);
    assert!(good.len() > 20, "{}", good.len());
    let mut random = Random::new(7);
    for _ in 0..20_000 {
        let frame = rough(&mut random, &good);
        world.network.take(frame, world.ns);
        world.step();
        assert!(world.network.connections.count() <= super::tcp::MOST);
    }
}
