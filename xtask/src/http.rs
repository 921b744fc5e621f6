//! Asks a health endpoint over plain HTTP.

use std::{
    io::{Read, Write},
    net::{IpAddr, SocketAddr, TcpStream},
    time::Duration,
};

/// Whether `http://address:port/path` answers 200 within two seconds.
pub fn healthy(address: impl Into<IpAddr>, port: u16, path: &str) -> bool {
    status(SocketAddr::new(address.into(), port), path).is_ok_and(|line| line.split(' ').nth(1) == Some("200"))
}

fn status(address: SocketAddr, path: &str) -> std::io::Result<String> {
    let limit = Duration::from_secs(2);
    let mut stream = TcpStream::connect_timeout(&address, limit)?;
    stream.set_read_timeout(Some(limit))?;
    stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n").as_bytes())?;
    let mut answer = String::new();
    stream.take(64).read_to_string(&mut answer)?;
    Ok(answer.lines().next().unwrap_or_default().to_owned())
}

/// Whether who listens at `address:port` says at once something that starts with `word`.
pub fn greets(address: impl Into<IpAddr>, port: u16, word: &str) -> bool {
    let greeting = || -> std::io::Result<Vec<u8>> {
        let limit = Duration::from_secs(2);
        let mut stream = TcpStream::connect_timeout(&SocketAddr::new(address.into(), port), limit)?;
        stream.set_read_timeout(Some(limit))?;
        let mut said = vec![0; word.len()];
        stream.read_exact(&mut said)?;
        Ok(said)
    };
    greeting().is_ok_and(|said| said == word.as_bytes())
}

/// Whether somebody takes connections at `address:port`.
pub fn listens(address: impl Into<IpAddr>, port: u16) -> bool {
    TcpStream::connect_timeout(&SocketAddr::new(address.into(), port), Duration::from_secs(2)).is_ok()
}
