//! Laws of ranges and subnets, and their edges.

use proptest::prelude::*;
use rstest::rstest;

use super::*;

fn range(start: &str, stop: &str) -> IpRange {
    IpRange::parse(start, stop).expect("a range")
}

fn subnet(text: &str) -> Subnet {
    text.parse().expect("a subnet")
}

/// Small ranges of both families, also at the very end of each.
fn small() -> impl Strategy<Value = IpRange> {
    (
        prop_oneof![
            Just("10.0.0.240"),
            Just("255.255.255.240"),
            Just("2600::fff0"),
            Just("ffff:ffff:ffff:ffff:ffff:ffff:ffff:fff0")
        ],
        0u128..16,
        0u128..16,
    )
        .prop_map(|(base, one, other)| {
            let base = parse(base).expect("an address");
            let at = |n| address(number(base) + n, base);
            IpRange::new(at(one.min(other)), at(one.max(other))).expect("in order")
        })
}

proptest! {
    #[test]
    fn ranges_overlap_exactly_when_they_share_an_address(one in small(), other in small()) {
        prop_assert_eq!(one.overlaps(other), one.addresses().any(|ip| other.contains(ip)));
        prop_assert_eq!(one.covers(other), other.addresses().all(|ip| one.contains(ip)));
    }

    #[test]
    fn as_many_addresses_as_the_size_says(range in small()) {
        prop_assert_eq!(range.addresses().count() as u128, range.size());
    }

    #[test]
    fn blocks_follow_each_other_and_leave_less_than_one(range in small(), bit_step in 0u32..6) {
        let blocks: Vec<IpRange> = range.blocks(bit_step).collect();
        let covered: Vec<IpAddr> = blocks.iter().flat_map(|block| block.addresses()).collect();
        let all: Vec<IpAddr> = range.addresses().collect();
        prop_assert_eq!(&covered[..], &all[..covered.len()]);
        prop_assert!(all.len() - covered.len() < 1 << bit_step);
        prop_assert!(blocks.iter().all(|block| block.size() == 1 << bit_step));
    }

    #[test]
    fn a_subnet_is_written_and_read_back(bytes in any::<u128>(), v6 in any::<bool>(), prefix in 0u32..=128) {
        let ip = if v6 { IpAddr::V6(bytes.into()) } else { IpAddr::V4(Ipv4Addr::from(u32::try_from(bytes >> 96).expect("32 bits"))) };
        let prefix = prefix.min(bits(ip));
        let subnet = Subnet::new(ip, prefix).expect("a subnet");
        prop_assert!(subnet.contains(ip));
        prop_assert_eq!(subnet.to_string().parse(), Ok(subnet));
        prop_assert_eq!(format!("{ip}/{prefix}").parse(), Ok(subnet), "host bits do not matter");
        prop_assert_eq!(Subnet::with_netmask(ip, subnet.netmask()), Some(subnet));
    }
}

#[rstest]
#[case("192.168.2.0/20", "192.168.0.0/20", "192.168.0.0-192.168.15.255", "255.255.240.0")]
#[case("0.0.0.0/0", "0.0.0.0/0", "0.0.0.0-255.255.255.255", "0.0.0.0")]
#[case("10.0.0.1/32", "10.0.0.1/32", "10.0.0.1-10.0.0.1", "255.255.255.255")]
#[case("0001:0000:0000:0001::/32", "1::/32", "1::-1:0:ffff:ffff:ffff:ffff:ffff:ffff", "ffff:ffff::")]
#[case("::/0", "::/0", "::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "::")]
fn subnets_and_their_ranges(#[case] text: &str, #[case] canonical: &str, #[case] all: &str, #[case] mask: &str) {
    let subnet = subnet(text);
    assert_eq!((subnet.to_string().as_str(), subnet.range().to_string().as_str()), (canonical, all));
    assert_eq!(subnet.netmask().to_string(), mask);
}

#[rstest]
#[case("10.0.0.0")]
#[case("10.0.0.0/33")]
#[case("10.0.0/8")]
#[case("10.0.0.0/+8")]
#[case("2600::/129")]
#[case("10.0.0.0/")]
fn what_is_no_subnet(#[case] text: &str) {
    assert_eq!(text.parse::<Subnet>(), Err(BadAddress::NotASubnet(text.to_owned())));
}

#[test]
fn errors_say_what_the_original_said() {
    assert_eq!(
        IpRange::parse("10.0.0.2.x", "10.0.0.3").expect_err("no address").to_string(),
        "IP address 10.0.0.2.x is invalid"
    );
    assert_eq!(
        IpRange::parse("10.0.0.2", "10.0.0.1").expect_err("reversed").to_string(),
        "IPAM range [10.0.0.2,10.0.0.1] is invalid"
    );
    assert!(IpRange::parse("10.0.0.2", "2600::1").is_err(), "of two families");
}

#[test]
fn blocks_as_in_the_original() {
    let of = |range: IpRange, step| range.blocks(step).map(|block| block.to_string()).collect::<Vec<_>>();
    let all = of(range("192.168.4.0", "192.168.7.255"), 4);
    assert_eq!(
        (all.len(), all[0].as_str(), all[63].as_str()),
        (64, "192.168.4.0-192.168.4.15", "192.168.7.240-192.168.7.255")
    );
    assert_eq!(of(range("192.168.4.0", "192.168.7.255"), 6).len(), 16);
    assert_eq!(of(range("192.168.4.5", "192.168.4.40"), 4), ["192.168.4.5-192.168.4.20", "192.168.4.21-192.168.4.36"]);
    assert_eq!(of(range("10.0.0.0", "10.0.0.255"), 128), [""; 0], "a block larger than any range");
}

#[test]
fn the_last_address_of_all_is_an_end_and_no_beginning() {
    let range = range("ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff");
    assert_eq!(range.addresses().count(), 2);
    assert_eq!(range.blocks(0).count(), 2);
    assert_eq!(subnet("::/0").range().size(), u128::MAX);
}

#[test]
fn addresses_that_no_interface_may_have() {
    let hosts = |text: &str| {
        let subnet = subnet(text);
        subnet.range().addresses().filter(|ip| subnet.is_host(*ip)).count()
    };
    assert_eq!((hosts("10.0.0.0/30"), hosts("10.0.0.0/31"), hosts("10.0.0.0/32")), (2, 2, 1));
    assert_eq!((hosts("2600::/126"), hosts("2600::/127")), (3, 2));
    assert!(!subnet("10.0.0.0/30").is_host(parse("10.0.1.1").expect("an address")));
}
