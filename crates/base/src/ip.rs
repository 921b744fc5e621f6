//! Ranges of IP addresses and subnets, IPv4 and IPv6 alike, over the whole width of both.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
};

/// What is wrong with an address, a range or a subnet. The texts are those of the original operator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadAddress {
    /// A text is no IP address.
    #[error("IP address {0} is invalid")]
    NotAnAddress(String),
    /// A text is no subnet.
    #[error("subnet {0} is invalid: an address and the length of its prefix, such as 192.168.0.0/20")]
    NotASubnet(String),
    /// The bounds are the wrong way round, or not of one family.
    #[error("IPAM range [{0},{1}] is invalid")]
    NotARange(IpAddr, IpAddr),
}

fn number(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(ip) => u128::from(u32::from(ip)),
        IpAddr::V6(ip) => u128::from(ip),
    }
}

/// The address of this number in the family of `like`; callers keep it within the family.
fn address(number: u128, like: IpAddr) -> IpAddr {
    match like {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::from(u32::try_from(number).expect("within a range of IPv4"))),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from(number)),
    }
}

fn bits(ip: IpAddr) -> u32 {
    if ip.is_ipv4() { 32 } else { 128 }
}

/// An address from text, without blanks.
pub fn parse(text: &str) -> Result<IpAddr, BadAddress> {
    text.parse().map_err(|_| BadAddress::NotAnAddress(text.to_owned()))
}

/// An inclusive range of addresses of one family, never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IpRange {
    start: IpAddr,
    stop: IpAddr,
}

impl IpRange {
    /// The range from `start` to `stop`, both included.
    pub fn new(start: IpAddr, stop: IpAddr) -> Result<Self, BadAddress> {
        if start.is_ipv4() == stop.is_ipv4() && start <= stop {
            Ok(Self { start, stop })
        } else {
            Err(BadAddress::NotARange(start, stop))
        }
    }

    /// The same from texts.
    pub fn parse(start: &str, stop: &str) -> Result<Self, BadAddress> {
        Self::new(parse(start)?, parse(stop)?)
    }

    /// First address.
    pub fn start(self) -> IpAddr {
        self.start
    }

    /// Last address.
    pub fn stop(self) -> IpAddr {
        self.stop
    }

    /// How many addresses; all of IPv6 count as one less than they are.
    pub fn size(self) -> u128 {
        (number(self.stop) - number(self.start)).saturating_add(1)
    }

    /// Whether the address lies in it.
    pub fn contains(self, ip: IpAddr) -> bool {
        ip.is_ipv4() == self.start.is_ipv4() && (self.start..=self.stop).contains(&ip)
    }

    /// Whether all of `other` lies in it.
    pub fn covers(self, other: Self) -> bool {
        self.contains(other.start) && self.contains(other.stop)
    }

    /// Whether the two have an address in common.
    pub fn overlaps(self, other: Self) -> bool {
        self.contains(other.start) || other.contains(self.start)
    }

    /// Every address, ascending.
    pub fn addresses(self) -> impl Iterator<Item = IpAddr> {
        (number(self.start)..=number(self.stop)).map(move |n| address(n, self.start))
    }

    /// The consecutive blocks of two to the power of `bit_step` addresses, from the start on; a remainder is left out.
    pub fn blocks(self, bit_step: u32) -> impl Iterator<Item = IpRange> {
        let (first, last) = (number(self.start), number(self.stop));
        let size = 1_u128.checked_shl(bit_step).filter(|size| *size != 0);
        (0_u128..).map_while(move |index| {
            let start = first.checked_add(index.checked_mul(size?)?)?;
            let stop = start.checked_add(size? - 1).filter(|stop| *stop <= last)?;
            Some(Self { start: address(start, self.start), stop: address(stop, self.start) })
        })
    }
}

impl fmt::Display for IpRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.start, self.stop)
    }
}

/// A subnet: the addresses that share a prefix. Its text form has no host bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subnet {
    first: IpAddr,
    prefix: u32,
}

impl Subnet {
    /// The subnet of `ip` whose prefix has this many bits.
    pub fn new(ip: IpAddr, prefix: u32) -> Result<Self, BadAddress> {
        let host = bits(ip).checked_sub(prefix).ok_or_else(|| BadAddress::NotASubnet(format!("{ip}/{prefix}")))?;
        let first = u128::MAX.checked_shl(host).map_or(0, |mask| number(ip) & mask);
        Ok(Self { first: address(first, ip), prefix })
    }

    /// All its addresses.
    pub fn range(self) -> IpRange {
        let host = bits(self.first) - self.prefix;
        let last = number(self.first) | u128::MAX.checked_shl(host).map_or(u128::MAX, |mask| !mask);
        IpRange { start: self.first, stop: address(last, self.first) }
    }

    /// First address: that of the network itself.
    pub fn first(self) -> IpAddr {
        self.first
    }

    /// Bits of the prefix.
    pub fn prefix(self) -> u32 {
        self.prefix
    }

    /// Whether the address lies in it.
    pub fn contains(self, ip: IpAddr) -> bool {
        self.range().contains(ip)
    }

    /// Whether an interface may have the address: in IPv4 neither the first nor the last one of a subnet of more than two
    /// (RFC 1122, RFC 3021), in IPv6 any but the first, which is every router's (RFC 4291).
    pub fn is_host(self, ip: IpAddr) -> bool {
        let range = self.range();
        let reserved = match self.first {
            IpAddr::V4(_) => self.prefix < 31 && (ip == range.start || ip == range.stop),
            IpAddr::V6(_) => self.prefix < 127 && ip == range.start,
        };
        range.contains(ip) && !reserved
    }

    /// The mask: dotted for IPv4, `ffff:...` for IPv6.
    pub fn netmask(self) -> IpAddr {
        let host = bits(self.first) - self.prefix;
        let ones = if self.first.is_ipv4() { u128::from(u32::MAX) } else { u128::MAX };
        address(u128::MAX.checked_shl(host).map_or(0, |mask| mask & ones), self.first)
    }

    /// The subnet of an address and a mask, such as `10.0.0.0` and `255.255.255.0`. None: the mask has holes.
    pub fn with_netmask(ip: IpAddr, mask: IpAddr) -> Option<Self> {
        if ip.is_ipv4() != mask.is_ipv4() {
            return None;
        }
        (0..=bits(ip)).filter_map(|prefix| Self::new(ip, prefix).ok()).find(|subnet| subnet.netmask() == mask)
    }
}

impl fmt::Display for Subnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.prefix)
    }
}

impl FromStr for Subnet {
    type Err = BadAddress;

    /// Host bits may be set.
    fn from_str(text: &str) -> Result<Self, BadAddress> {
        let not = || BadAddress::NotASubnet(text.to_owned());
        let (ip, prefix) = text.split_once('/').ok_or_else(not)?;
        let digits = !prefix.is_empty() && prefix.bytes().all(|b| b.is_ascii_digit());
        let prefix = prefix.parse().ok().filter(|_| digits).ok_or_else(not)?;
        Self::new(ip.parse().map_err(|_| not())?, prefix).map_err(|_| not())
    }
}

#[cfg(test)]
mod tests;
