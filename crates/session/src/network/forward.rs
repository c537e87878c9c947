// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ports of the host that lead to ports of the guest.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::str::FromStr;

use anyhow::{Context as _, Result, anyhow};

/// A port of the host that leads to a port of the guest: `[ADDR:]PORT:GUEST_PORT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forward {
    /// Address and port on the host. Port 0 is any free port.
    pub host: SocketAddrV4,
    /// Port of the guest.
    pub guest: u16,
}

impl FromStr for Forward {
    type Err = String;

    fn from_str(text: &str) -> Result<Forward, String> {
        let form = || "not [ADDR:]PORT:GUEST_PORT, such as 2222:22 or 0.0.0.0:2222:22".to_string();
        let (host, guest) = text.rsplit_once(':').ok_or_else(form)?;
        let (address, port) = host.rsplit_once(':').unwrap_or(("127.0.0.1", host));
        let address: Ipv4Addr = address
            .parse()
            .map_err(|_| format!("{address} is no IPv4 address"))?;
        let number = |port: &str| {
            port.parse::<u16>()
                .map_err(|_| format!("{port:?} is no port from 1 to 65535"))
        };
        let (port, guest) = (number(port)?, number(guest)?);
        if guest == 0 {
            return Err("the guest's port is 0; use a port from 1 to 65535".to_string());
        }
        Ok(Forward {
            host: SocketAddrV4::new(address, port),
            guest,
        })
    }
}

impl fmt::Display for Forward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.guest)
    }
}

impl Forward {
    /// Listens on the host's port.
    ///
    /// # Errors
    /// Fails when another program has the port, and when the address is not the host's.
    pub(crate) fn listen(self) -> Result<Listening> {
        let cannot = || {
            anyhow!(
                "--forward {self}: cannot listen on {}; give another port of the host",
                self.host
            )
        };
        let listener = TcpListener::bind(self.host).with_context(cannot)?;
        listener.set_nonblocking(true).with_context(cannot)?;
        Ok(Listening {
            listener,
            guest: self.guest,
        })
    }
}

/// A port of the host on which clients arrive.
pub(crate) struct Listening {
    pub(crate) listener: TcpListener,
    pub(crate) guest: u16,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forward_has_two_ports_and_may_have_an_address() {
        let parse = |text: &str| text.parse::<Forward>();
        let plain = parse("2222:22").unwrap();
        assert_eq!(plain.to_string(), "127.0.0.1:2222:22");
        assert_eq!(parse("127.0.0.1:2222:22"), Ok(plain));
        assert_eq!(parse("0.0.0.0:0:1").unwrap().host.port(), 0);
        for bad in [
            "", ":", "22", "2222:", ":22", "a:22", "1:0", "65536:1", "1:65536", "-1:1", "x:1:1",
            "::1:1:1", "1:1:1:1", "1 :1",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_taken_port_is_an_error_that_names_the_port() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = taken.local_addr().unwrap().port();
        let forward: Forward = format!("{port}:22").parse().unwrap();
        let error = forward.listen().err().expect("an error");
        let text = format!("{error:#}");
        assert!(text.contains(&format!("127.0.0.1:{port};")), "{text}");
        assert!(text.contains("in use"), "{text}");
    }
}
