// SPDX-License-Identifier: MIT OR Apache-2.0
//! The connection to gdb: TCP, or standard input and output. A thread reads the connection, so that a running board can
//! check for input without blocking.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::mpsc::{Receiver, TryRecvError, channel};

use gdbstub::conn::{Connection, ConnectionExt};

/// A connection to gdb.
pub struct Link {
    input: Receiver<Vec<u8>>,
    read: VecDeque<u8>,
    output: Box<dyn Write>,
}

impl Link {
    /// Uses a TCP connection.
    pub fn tcp(stream: TcpStream) -> io::Result<Link> {
        stream.set_nodelay(true)?;
        Ok(Link::new(stream.try_clone()?, stream))
    }

    /// Uses standard input and output, for gdb's `target remote | command`.
    pub fn stdio() -> Link {
        Link::new(io::stdin(), io::stdout())
    }

    fn new(mut input: impl Read + Send + 'static, output: impl Write + 'static) -> Link {
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = input.read(&mut buffer) {
                if sender.send(buffer[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        Link {
            input: receiver,
            read: VecDeque::new(),
            output: Box::new(output),
        }
    }
}

fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "gdb closed the connection")
}

impl Connection for Link {
    type Error = io::Error;

    fn write(&mut self, byte: u8) -> io::Result<()> {
        self.output.write_all(&[byte])
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.output.write_all(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

impl ConnectionExt for Link {
    fn read(&mut self) -> io::Result<u8> {
        loop {
            if let Some(byte) = self.read.pop_front() {
                return Ok(byte);
            }
            self.read.extend(self.input.recv().map_err(|_| closed())?);
        }
    }

    fn peek(&mut self) -> io::Result<Option<u8>> {
        if self.read.is_empty() {
            match self.input.try_recv() {
                Ok(bytes) => self.read.extend(bytes),
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => return Err(closed()),
            }
        }
        Ok(self.read.front().copied())
    }
}
