//! The addresses where a live device listens.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// An address from the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A Unix socket.
    Unix(PathBuf),
    /// A loopback address with a port; port 0 stands for any free port.
    Tcp(SocketAddr),
}

impl Address {
    /// Parses `unix:PATH` or `tcp:HOST:PORT`.
    ///
    /// # Errors
    /// A message if the text has neither form, or if the host is not this machine.
    pub fn parse(text: &str) -> Result<Address, String> {
        if let Some(path) = text.strip_prefix("unix:").filter(|path| !path.is_empty()) {
            return Ok(Address::Unix(path.into()));
        }
        let Some((host, port)) = text.strip_prefix("tcp:").and_then(|rest| rest.rsplit_once(':')) else {
            return Err(format!("{text:?} is not an address: write unix:PATH or tcp:HOST:PORT"));
        };
        let port: u16 = port.parse().map_err(|_| format!("{text:?}: {port:?} is not a port"))?;
        let host = if host == "localhost" { "127.0.0.1" } else { host.trim_matches(['[', ']']) };
        match host.parse::<IpAddr>() {
            Ok(ip) if ip.is_loopback() => Ok(Address::Tcp(SocketAddr::new(ip, port))),
            _ => Err(format!(
                "{text:?} is not a loopback address, and there is no encryption here: listen on 127.0.0.1, or on a \
                 Unix socket (unix:PATH), and let a tunnel reach it (for example ssh -L)"
            )),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Unix(path) => write!(out, "unix:{}", path.display()),
            Address::Tcp(address) => write!(out, "tcp:{address}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only loopback addresses are accepted; the message for any other address suggests a tunnel.
    #[test]
    fn only_this_machine_is_reached() {
        for text in ["tcp:127.0.0.1:10809", "tcp:[::1]:0", "unix:/run/a.sock"] {
            assert_eq!(Address::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Address::parse("tcp:localhost:1").unwrap(), Address::parse("tcp:127.0.0.1:1").unwrap());
        for text in ["tcp:0.0.0.0:1", "tcp:192.168.0.2:1", "tcp:example.org:1", "tcp:[::]:1"] {
            assert!(Address::parse(text).unwrap_err().contains("tunnel"), "{text}");
        }
        for text in ["", "unix:", "tcp:127.0.0.1", "tcp:127.0.0.1:99999", "nbd://a"] {
            assert!(Address::parse(text).is_err(), "{text}");
        }
    }
}
