//! Laws of every definition: what is built and read back is the same; what is not what it should be is named.

use std::net::IpAddr;

use base::{CpuSet, Mac};
use proptest::{collection::vec, option, prelude::*};
use rstest::rstest;
use uuid::Uuid;

use super::{
    samples::{DEFAULT_NETWORK, FOREIGN},
    *,
};
use crate::{
    Boot, BootTarget, Chipset, DhcpHost, DhcpSpec, Disk, DiskSource, DomainSpec, Engine, Error, Firmware, Forward,
    Hold, LastPower, Mark, Media, NetBoot, NetworkMark, NetworkSpec, Nic, NicSource, Placement, PoolSpec, Settings,
    VolumeRef,
};

/// What people may write where a text is asked for: markup, quotes, newlines, paths, templates.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "[a-z0-9-]{1,12}",
        2 => prop::sample::select(vec![
            "", " ", "\"", "'/><evil/>", "</name><name>", "]]>", "<![CDATA[x]]>", "&amp;", "&#0;", "a\nb\tc\rd", "../../etc",
            "{{ lookup('pipe') }}", "x;reboot", "\u{fc}\u{1f600}", "--", "%s%n",
        ]).prop_map(str::to_owned),
        1 => "[ -~]{0,20}",
    ]
}

fn cpus() -> impl Strategy<Value = CpuSet> {
    prop::collection::btree_set(0u32..512, 1..6).prop_map(|cpus| cpus.into_iter().collect())
}

fn mac() -> impl Strategy<Value = Mac> {
    any::<[u8; 6]>().prop_map(Mac::new)
}

fn volume_ref() -> impl Strategy<Value = VolumeRef> {
    (text(), text()).prop_map(|(pool, volume)| VolumeRef { pool, volume })
}

fn mark() -> impl Strategy<Value = Mark> {
    (text(), text(), text(), text(), any::<(i64, i64)>(), prop::collection::btree_map(text(), volume_ref(), 0..3))
        .prop_map(|(owner, machine, group, host, (since, serial), disks)| Mark {
            owner,
            machine,
            group,
            host,
            since,
            serial,
            disks,
        })
}

fn settings() -> impl Strategy<Value = Settings> {
    (
        (prop::sample::select(BootTarget::ALL.to_vec()), prop::sample::select(Hold::ALL.to_vec())),
        option::of(firmware()),
        option::of((text(), text())),
        option::of((any::<bool>(), text())),
    )
        .prop_map(|((target, hold), firmware, media, power)| Settings {
            boot: Boot { target, hold },
            firmware,
            media: media.map(|(file, url)| Media { file, url }),
            last_power: power.map(|(on, boot_id)| LastPower { on, boot_id }),
        })
}

fn firmware() -> impl Strategy<Value = Firmware> {
    prop::sample::select(vec![Firmware::Bios, Firmware::Uefi])
}

fn placement() -> impl Strategy<Value = Placement> {
    (
        vec(cpus(), 0..4),
        option::of(cpus()),
        option::of(cpus()),
        option::of((cpus(), any::<bool>())),
        option::of(1u64..2048),
    )
        .prop_map(|(pins, shared, emulator, cells, pages)| Placement {
            pins,
            shared: shared.unwrap_or_default(),
            emulator: emulator.unwrap_or_default(),
            strict: cells.as_ref().is_some_and(|(_, strict)| *strict),
            cells: cells.map(|(cells, _)| cells).unwrap_or_default(),
            hugepages_kib: pages,
        })
}

fn disk() -> impl Strategy<Value = Disk> {
    let source = prop_oneof![
        volume_ref().prop_map(DiskSource::Volume),
        text().prop_map(DiskSource::File),
        Just(DiskSource::Other("block".into()))
    ];
    ("vd[a-p]", source, "qcow2|raw", option::of(text())).prop_map(|(target, source, format, serial)| Disk {
        target,
        source,
        format,
        serial,
    })
}

fn nic() -> impl Strategy<Value = Nic> {
    let source = prop_oneof![text().prop_map(NicSource::Network), text().prop_map(NicSource::Bridge)];
    (text(), mac(), source, option::of(576u32..9000), any::<bool>()).prop_map(|(name, mac, source, mtu, boot)| Nic {
        name,
        mac,
        source,
        mtu,
        boot,
    })
}

prop_compose! {
    fn spec()(
        (uuid, name, mark) in (any::<u128>(), text(), mark()),
        engine in prop::sample::select(vec![Engine::Kvm, Engine::Emulated, Engine::Other("test".into())]),
        chipset in prop::sample::select(vec![Chipset::Q35, Chipset::Other("pc".into()), Chipset::Other(String::new())]),
        firmware in firmware(),
        (memory_kib, cores, threads) in (1u64..1 << 40, 1u32..64, 1u32..3),
        placement in placement(),
        (disks, nics) in (vec(disk(), 0..3), vec(nic(), 0..3)),
        (console_log, vnc) in (option::of(text()), any::<bool>()),
    ) -> DomainSpec {
        DomainSpec {
            uuid: Uuid::from_u128(uuid),
            name,
            mark: Some(mark),
            arch: "x86_64".into(),
            engine,
            chipset,
            firmware,
            memory_kib,
            vcpus: cores * threads,
            threads,
            placement,
            disks,
            nics,
            console_log,
            vnc,
            overlay: None,
        }
    }
}

fn v4(number: u32) -> IpAddr {
    IpAddr::V4(number.into())
}

prop_compose! {
    fn v4_dhcp()(
        range in option::of((any::<u32>(), any::<u32>())),
        fixed in vec((mac(), any::<u32>(), option::of(text())), 0..4),
        unfixed in vec(mac(), 0..3),
        dns in vec(any::<u32>(), 0..3),
        routes in vec((any::<u32>(), 0u8..=32, any::<u32>()), 0..3),
        boot in option::of((text(), option::of(text()))),
    ) -> DhcpSpec {
        let fixed = fixed.into_iter().map(|(mac, ip, name)| DhcpHost { mac, ip: Some(v4(ip)), name });
        let unfixed = unfixed.into_iter().map(|mac| DhcpHost { mac, ip: None, name: None });
        DhcpSpec {
            range: range.map(|(start, end)| (v4(start), v4(end))),
            hosts: fixed.chain(unfixed).collect(),
            dns_servers: dns.into_iter().map(v4).collect(),
            routes: routes.into_iter().map(|(to, bits, by)| (ipnet::IpNet::new(v4(to), bits).unwrap(), v4(by))).collect(),
            boot: boot.map(|(file, server)| NetBoot { file, server }),
        }
    }
}

prop_compose! {
    fn network_spec()(
        (name, bridge) in (text(), text()),
        mark in option::of((text(), any::<i64>())),
        forward in prop::sample::select(vec![Forward::Open, Forward::Other("nat".into()), Forward::Other(String::new())]),
        (mac, mtu, dns) in (option::of(mac()), option::of(576u32..9000), any::<bool>()),
        ip in option::of((any::<u32>(), 0u8..=32, option::of(v4_dhcp()), option::of(text()))),
    ) -> NetworkSpec {
        let (address, dhcp, tftp_root) = match ip {
            Some((ip, prefix, dhcp, tftp)) => (Some(ipnet::IpNet::new(v4(ip), prefix).unwrap()), dhcp, tftp),
            None => (None, None, None),
        };
        NetworkSpec {
            name, bridge, forward, mac, mtu, address, dns, dhcp, tftp_root,
            mark: mark.map(|(owner, serial)| NetworkMark { owner, serial }),
        }
    }
}

proptest! {
    #[test]
    fn a_domain_is_read_back_as_it_was_built(spec in spec(), settings in settings()) {
        let xml = domain(&spec, &settings, None).expect("no control characters");
        prop_assert_eq!(read_domain(&xml), Ok((spec, settings)), "{}", xml);
    }

    #[test]
    fn defining_it_anew_changes_only_what_is_asked_for(before in spec(), after in spec(), settings in settings()) {
        let old = domain(&before, &settings, None).expect("no control characters");
        let xml = domain(&after, &settings, Some(&old)).expect("no control characters");
        prop_assert_eq!(read_domain(&xml), Ok((after, settings)), "{}", xml);
    }

    #[test]
    fn a_network_is_read_back_as_it_was_built(spec in network_spec()) {
        let xml = network(&spec, None).expect("no control characters");
        prop_assert_eq!(read_network(&xml), Ok(spec), "{}", xml);
    }

    #[test]
    fn a_pool_is_read_back_as_it_was_built(name in text(), path in text()) {
        let spec = PoolSpec { name, path };
        prop_assert_eq!(read_pool(&pool(&spec).unwrap()), Ok(spec));
    }

    #[test]
    fn no_xml_makes_a_reader_fall_over(
        tags in vec(prop::sample::select(vec![
            "<domain>", "</domain>", "<network>", "</network>", "<name>x</name>", "<uuid>", "<memory unit='GiB'>99999999999999999</memory>",
            "<vcpu>2</vcpu>", "<cputune>", "<vcpupin vcpu='9999999' cpuset='0-99999999'/>", "<devices>", "<disk>", "<interface>",
            "<ip address='1.2.3.4' prefix='77'/>", "<mac address='x'/>", "</devices>", "<cells>", "<cell id='-1'>",
        ]), 0..12),
    ) {
        let xml = tags.concat();
        let _ = (read_domain(&xml), read_network(&xml), read_host(&xml), read_pool(&xml), read_volume(&xml));
    }
}

#[test]
fn a_v6_network_knows_its_hosts_by_duid() {
    let spec = NetworkSpec {
        name: "six".into(),
        bridge: "br6".into(),
        address: Some("2001:db8::1/64".parse().unwrap()),
        dhcp: Some(DhcpSpec {
            hosts: vec![DhcpHost {
                mac: Mac::new([2, 0, 0, 0, 0, 1]),
                ip: Some("2001:db8::5".parse().unwrap()),
                name: None,
            }],
            dns_servers: vec!["2001:db8::53".parse().unwrap()],
            ..DhcpSpec::default()
        }),
        ..NetworkSpec::default()
    };
    let xml = network(&spec, None).unwrap();
    assert!(xml.contains("<host id=\"00:03:00:01:02:00:00:00:00:01\" ip=\"2001:db8::5\"/>"), "{xml}");
    assert!(xml.contains("value=\"dhcp-option=option6:dns-server,[2001:db8::53]\""), "{xml}");
    assert_eq!(read_network(&xml), Ok(spec));
}

#[test]
fn an_existing_bridge_is_used_and_nothing_else_is_said_of_it() {
    let spec = NetworkSpec {
        name: "n".into(),
        bridge: "br0".into(),
        forward: Forward::HostBridge,
        mark: Some(NetworkMark { owner: "o".into(), serial: 3 }),
        ..NetworkSpec::default()
    };
    let xml = network(&spec, None).unwrap();
    assert!(!xml.contains("<ip") && !xml.contains("stp"), "{xml}");
    assert_eq!(read_network(&xml), Ok(spec));
}

#[test]
fn a_network_defined_anew_keeps_its_uuid() {
    let old = "<network><name>n</name><uuid>dd8fe884-6c02-601e-7551-cca97df1c5df</uuid></network>";
    let xml = network(&NetworkSpec::default(), Some(old)).unwrap();
    assert!(xml.contains("<uuid>dd8fe884-6c02-601e-7551-cca97df1c5df</uuid>"), "{xml}");
}

#[test]
fn a_server_that_answers_nobody_is_one_even_where_libvirt_leaves_its_element_out() {
    let spec = NetworkSpec {
        address: Some("10.0.0.1/24".parse().unwrap()),
        dhcp: Some(DhcpSpec::default()),
        ..NetworkSpec::default()
    };
    let xml = network(&spec, None).unwrap().replace("<dhcp/>", "");
    assert_eq!(read_network(&xml), Ok(NetworkSpec { forward: Forward::Open, ..spec }));
}

#[test]
fn the_drive_of_a_running_guest_is_changed_by_the_same_element() {
    let media = Media { file: "/media/a & b.iso".into(), url: String::new() };
    let spec = DomainSpec { vcpus: 1, mark: Some(Mark::default()), ..DomainSpec::default() };
    let settings = Settings { media: Some(media.clone()), ..Settings::default() };
    let xml = domain(&spec, &settings, None).unwrap();
    assert_eq!(drive_file(&xml), Ok(Some("/media/a & b.iso".into())));
    assert!(drive(Some(&media)).unwrap().contains("<source file=\"/media/a &amp; b.iso\"/>"));
    assert!(!drive(None).unwrap().contains("<source"));
}

#[test]
fn only_known_hosts_are_answered() {
    let spec = NetworkSpec {
        address: Some("10.0.0.1/24".parse().unwrap()),
        dhcp: Some(DhcpSpec::default()),
        ..NetworkSpec::default()
    };
    assert!(network(&spec, None).unwrap().contains("<dnsmasq:option value=\"dhcp-ignore=tag:!known\"/>"));
}

#[test]
fn what_libvirt_chose_stays_when_a_domain_is_defined_anew() {
    let nic = Nic {
        name: "a".into(),
        mac: Mac::new([2, 0, 0, 0, 0, 1]),
        source: NicSource::Network("n".into()),
        mtu: None,
        boot: true,
    };
    let spec = DomainSpec {
        name: "d".into(),
        mark: Some(Mark::default()),
        vcpus: 1,
        nics: vec![nic],
        ..DomainSpec::default()
    };
    let first = domain(&spec, &Settings::default(), None).unwrap();
    let address = "<address type=\"pci\" domain=\"0x0000\" bus=\"0x07\" slot=\"0x00\" function=\"0x0\"/>";
    let chosen = first
        .replace("machine=\"q35\"", "machine=\"pc-q35-7.2\"")
        .replace("<model type=\"virtio\"/>", &format!("<model type=\"virtio\"/>{address}"))
        .replace("<devices>", "<devices><controller type=\"pci\" index=\"7\" model=\"pcie-root-port\"/>");
    let again = domain(&DomainSpec { vcpus: 2, ..spec.clone() }, &Settings::default(), Some(&chosen)).unwrap();
    for kept in [address, "machine=\"pc-q35-7.2\"", "<controller type=\"pci\" index=\"7\" model=\"pcie-root-port\"/>"] {
        assert!(again.contains(kept), "{kept} in {again}");
    }
    let other = DomainSpec { chipset: Chipset::Other("pc".into()), ..spec };
    let other = domain(&other, &Settings::default(), Some(&chosen)).unwrap();
    assert!(!other.contains("pcie-root-port") && !other.contains("pc-q35-7.2"), "another mainboard: {other}");
}

#[rstest]
#[case(BootTarget::None, [1, 2, 0])]
#[case(BootTarget::Hdd, [1, 2, 0])]
#[case(BootTarget::Pxe, [2, 1, 0])]
#[case(BootTarget::UefiHttp, [2, 1, 0])]
#[case(BootTarget::Cd, [2, 3, 1])]
fn the_boot_override_comes_first(#[case] target: BootTarget, #[case] orders: [u32; 3]) {
    let [disk, nic, drive] = orders;
    let spec = DomainSpec {
        vcpus: 1,
        mark: Some(Mark::default()),
        disks: vec![Disk { target: "vda".into(), source: DiskSource::File("f".into()), ..Disk::default() }],
        nics: vec![Nic {
            name: "a".into(),
            mac: Mac::new([2; 6]),
            source: NicSource::Network("n".into()),
            mtu: None,
            boot: true,
        }],
        ..DomainSpec::default()
    };
    let settings = Settings { boot: Boot { target, hold: Hold::Once }, ..Settings::default() };
    let root = parse::parse(&domain(&spec, &settings, None).unwrap()).unwrap();
    let order =
        |device: &Element| device.first("boot").map_or(0, |boot| boot.get("order").unwrap().parse::<u32>().unwrap());
    let devices = root.first("devices").unwrap();
    let disks: Vec<u32> = devices.all("disk").map(order).collect();
    assert_eq!((disks, order(devices.first("interface").unwrap())), (vec![disk, drive], nic));
}

#[test]
fn a_medium_that_somebody_took_out_by_hand_is_out() {
    let spec = DomainSpec { vcpus: 1, mark: Some(Mark::default()), ..DomainSpec::default() };
    let settings = Settings {
        media: Some(Media { file: "/media/a.iso".into(), url: "http://x/a.iso".into() }),
        ..Settings::default()
    };
    let xml = domain(&spec, &settings, None).unwrap().replace("<source file=\"/media/a.iso\"/>", "");
    assert_eq!(read_domain(&xml).unwrap().1, Settings::default());
}

#[test]
fn an_overlay_is_kept_and_laid_again() {
    let overlay = "<domain><pm><suspend-to-mem enabled='no'/></pm></domain>";
    let spec = DomainSpec {
        vcpus: 1,
        mark: Some(Mark::default()),
        threads: 1,
        overlay: Some(overlay.into()),
        ..DomainSpec::default()
    };
    let xml = domain(&spec, &Settings::default(), None).unwrap();
    assert!(xml.contains("<suspend-to-mem enabled=\"no\"/>"), "{xml}");
    assert_eq!(read_domain(&xml).unwrap().0.overlay.as_deref(), Some(overlay));
    let bad = DomainSpec { overlay: Some("<domain><memory/></domain>".into()), ..spec };
    let said = domain(&bad, &Settings::default(), None).unwrap_err();
    assert_eq!(said.to_string(), "xmlOverlay cannot be written: <memory> is not to be overlaid");
    assert!(matches!(said, Error::Unwritable(_)));
}

#[test]
fn a_foreign_domain_is_read_as_far_as_it_matters() {
    let (spec, settings) = read_domain(FOREIGN).unwrap();
    assert_eq!(settings, Settings::default());
    assert_eq!(spec.mark, None);
    assert_eq!((spec.memory_kib, spec.vcpus), (8 << 20, 2));
    assert_eq!(spec.engine, Engine::Other("test".into()));
    assert_eq!(spec.placement.pins, vec![CpuSet::new(), CpuSet::from_iter([7])]);
    assert_eq!(spec.placement.shared.to_string(), "0-1,3");
    assert_eq!(spec.placement.cells.to_string(), "0-1");
    assert!(!spec.placement.strict);
    assert_eq!(spec.disks[1].source, DiskSource::Other("block".into()));
    assert_eq!(spec.nics.len(), 1, "the host device has no address of its own");
    assert_eq!(spec.nics[0].mac.to_string(), "aa:bb:cc:dd:ee:ff");
}

#[rstest]
#[case("<vcpu placement='static' cpuset='0-3,^2'>2</vcpu>", "", "domain test cannot be read: it has no <vcpu>")]
#[case(">2</vcpu>", ">many</vcpu>", "domain test cannot be read: <vcpu>: invalid digit found in string")]
#[case("unit='GiB'", "unit='pages'", "domain test cannot be read: <memory> has the unknown unit \"pages\"")]
#[case(
    "AA:bb:cc:dd:ee:ff",
    "none",
    "domain test cannot be read: <mac> address=\"none\": MAC address \"none\" is invalid: six pairs of hexadecimal digits are asked for, such as 52:54:00:06:00:01"
)]
#[case("6695eb01-", "x", "domain test cannot be read: <uuid>: ")]
#[case("</domain>", "", "domain ? cannot be read: it ends inside <domain>")]
#[case("cpuset='7'", "cpuset='0-9999999'", "domain test cannot be read: <vcpupin> cpuset=\"0-9999999\": ")]
fn a_foreign_domain_that_is_not_what_it_should_be_is_named(#[case] from: &str, #[case] to: &str, #[case] said: &str) {
    let error = read_domain(&FOREIGN.replace(from, to)).unwrap_err().to_string();
    assert!(error.starts_with(said), "{error}");
}

#[test]
fn our_metadata_is_known_by_its_namespace_not_by_its_prefix() {
    let spec = DomainSpec {
        vcpus: 1,
        threads: 1,
        mark: Some(Mark { owner: "o".into(), ..Mark::default() }),
        ..DomainSpec::default()
    };
    let xml =
        domain(&spec, &Settings::default(), None).unwrap().replace("vino:", "v:").replace("xmlns:vino", "xmlns:v");
    assert_eq!(read_domain(&xml).unwrap().0, spec);
    let foreign = xml.replace(DOMAIN_NAMESPACE, "http://example.org/");
    assert_eq!(read_domain(&foreign).unwrap().0.mark, None);
}

#[test]
fn a_stock_network_is_foreign() {
    let spec = read_network(DEFAULT_NETWORK).unwrap();
    assert_eq!((spec.mark, spec.forward), (None, Forward::Other("nat".into())));
    assert_eq!(spec.address, Some("192.168.122.1/24".parse().unwrap()));
}
