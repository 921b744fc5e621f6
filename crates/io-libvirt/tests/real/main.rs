//! The cases of every hypervisor on real libvirt and QEMU, and what only real guests can show.
#![cfg(feature = "real-libvirt")]

mod boot;
mod daemon;

use std::{fs, sync::Arc, time::Duration};

use daemon::Daemon;
use futures::StreamExt;
use hypervisor::{
    Acceleration, Boot, BootTarget, Change, Disk, DiskSource, DomainSpec, Effect, Event, Firmware, Hold, Hypervisor,
    Mark, Media, NetworkMark, NetworkSpec, PoolSpec, PowerAction, PowerState, Uuid, VolumeFormat, VolumeRef,
    VolumeSource, VolumeSpec,
};
use io_libvirt::Libvirt;
use testkit::hypervisor::conformance::{Abilities, CASES, Lab};

fn emulated(uri: &str) -> Libvirt {
    Libvirt::new(uri, "boot-1").with_acceleration(Acceleration::Emulated { why: "a test".to_owned() })
}

fn lab(daemon: &Daemon) -> Lab {
    let directory = daemon.path().join("cases");
    fs::create_dir_all(&directory).expect("a directory");
    for name in ["one.iso", "two.iso"] {
        fs::write(directory.join(name), boot::cd(name)).expect("a file");
    }
    let uri = daemon.uri();
    Lab {
        hypervisor: Arc::new(emulated(&uri)),
        blank: DomainSpec { arch: "x86_64".to_owned(), ..DomainSpec::default() },
        directory: directory.display().to_string(),
        can: Abilities::All,
        by_hand: Box::new(move |xml| {
            let connect = virt::connect::Connect::open(Some(&uri)).expect("it answers");
            virt::domain::Domain::define_xml(&connect, xml).expect("it can be defined");
        }),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn real_libvirt_passes_every_case() {
    let daemon = Daemon::start();
    let lab = lab(&daemon);
    for case in CASES {
        println!("{}", case.name);
        (case.run)(&lab).await;
    }
    assert!(lab.hypervisor.domains().await.expect("a list").found.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn whether_kvm_works_is_found_out_by_a_guest_that_runs() {
    let daemon = Daemon::start();
    let libvirt = Libvirt::new(&daemon.uri(), "boot-1");
    let host = libvirt.host().await.expect("a host");
    assert!(!host.cpus().is_empty());
    assert_ne!(host.acceleration, Acceleration::Unknown);
    println!("{:?}", host.acceleration);
    assert!(libvirt.domains().await.expect("a list").found.is_empty(), "no trial guest is left");
}

/// A machine with a disk that boots and says a word.
async fn machine(daemon: &Daemon, libvirt: &Libvirt) -> DomainSpec {
    let pool = PoolSpec { name: "disks".to_owned(), path: daemon.path().join("disks").display().to_string() };
    libvirt.define_pool(&pool).await.expect("a pool");
    libvirt.start_pool(&pool.name).await.expect("it starts");
    let image = daemon.path().join("image");
    fs::write(&image, boot::disk("from-the-disk")).expect("a file");
    let volume = |name: &str, format, source| VolumeSpec {
        pool: pool.name.clone(),
        name: name.to_owned(),
        format,
        capacity: 4 << 20,
        sparse: true,
        source,
    };
    let uploaded = volume("image", VolumeFormat::Raw, VolumeSource::File(image));
    libvirt.create_volume(&uploaded).await.expect("an image");
    let disk = volume("disk", VolumeFormat::Qcow2, VolumeSource::CopyOf("image".to_owned()));
    libvirt.create_volume(&disk).await.expect("a copy of it");
    let spec = DomainSpec {
        uuid: Uuid::from_u128(0x5117_0000_0000_4000_8000_0000_0000_0001),
        name: "machine".to_owned(),
        mark: Some(Mark::default()),
        arch: "x86_64".to_owned(),
        memory_kib: 64 << 10,
        vcpus: 1,
        threads: 1,
        disks: vec![Disk {
            target: "vda".to_owned(),
            source: DiskSource::Volume(VolumeRef { pool: pool.name.clone(), volume: "disk".to_owned() }),
            format: "qcow2".to_owned(),
            serial: Some("machine-root".to_owned()),
        }],
        console_log: Some(daemon.path().join("console.log").display().to_string()),
        ..DomainSpec::default()
    };
    libvirt.define_domain(&spec).await.expect("a machine");
    spec
}

/// Waits until the console has said this so many times.
async fn says(daemon: &Daemon, word: &str, times: usize) {
    let said = || fs::read_to_string(daemon.path().join("console.log")).unwrap_or_default();
    let waiting = async {
        while said().matches(word).count() < times {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let limit = Duration::from_mins(2);
    tokio::time::timeout(limit, waiting).await.unwrap_or_else(|_| panic!("{word} {times} times, not in {:?}", said()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_boots_its_disk_and_an_inserted_medium_when_it_is_told_to() {
    let daemon = Daemon::start();
    let libvirt = emulated(&daemon.uri());
    let spec = machine(&daemon, &libvirt).await;
    libvirt.power(spec.uuid, PowerAction::On).await.expect("it starts");
    says(&daemon, "from-the-disk", 1).await;

    let iso = daemon.path().join("medium.iso");
    fs::write(&iso, boot::cd("from-the-medium")).expect("a file");
    let media = Media { file: iso.display().to_string(), url: "http://example.org/medium.iso".to_owned() };
    libvirt.insert_media(spec.uuid, &media).await.expect("it goes in while it runs");
    libvirt.power(spec.uuid, PowerAction::ForceRestart).await.expect("it restarts");
    says(&daemon, "from-the-disk", 2).await;

    libvirt.set_boot(spec.uuid, Boot { target: BootTarget::Cd, hold: Hold::Once }).await.expect("an override");
    libvirt.power(spec.uuid, PowerAction::ForceRestart).await.expect("it restarts");
    says(&daemon, "from-the-medium", 1).await;
    libvirt.power(spec.uuid, PowerAction::ForceRestart).await.expect("it restarts");
    says(&daemon, "from-the-disk", 3).await;

    assert_eq!(libvirt.power(spec.uuid, PowerAction::Nmi).await, Ok(Effect::Done));
    assert_eq!(libvirt.eject_media(spec.uuid).await, Ok(Effect::Done));
    let stats = libvirt.stats().await.expect("statistics");
    assert!(stats[&spec.uuid].cpu_ns > 0 && stats[&spec.uuid].read_bytes > 0, "{stats:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_grows_under_its_guest() {
    let daemon = Daemon::start();
    let libvirt = emulated(&daemon.uri());
    let spec = machine(&daemon, &libvirt).await;
    libvirt.power(spec.uuid, PowerAction::On).await.expect("it starts");
    for (asked, has) in [(16 << 20, 16 << 20), (1 << 20, 16 << 20)] {
        libvirt.grow_disk(spec.uuid, "vda", asked).await.expect("it grows, or stays");
        let volumes = libvirt.volumes("disks").await.expect("a list").found;
        let disk = volumes.iter().find(|volume| volume.name == "disk").expect("it is there");
        assert_eq!(disk.capacity, has);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_uefi_has_stored_goes_with_its_machine() {
    let daemon = Daemon::start();
    let libvirt = emulated(&daemon.uri());
    let spec = machine(&daemon, &libvirt).await;
    libvirt.set_firmware(spec.uuid, Some(Firmware::Uefi)).await.expect("UEFI");
    libvirt.power(spec.uuid, PowerAction::On).await.expect("it starts");
    let stored = || fs::read_dir(daemon.inside("/var/lib/libvirt/qemu/nvram")).map_or(0, Iterator::count);
    assert_eq!(stored(), 1);
    libvirt.power(spec.uuid, PowerAction::ForceOff).await.expect("it stops");
    let found = libvirt.domain(spec.uuid).await.expect("it is there");
    assert_eq!(
        (found.spec, found.settings.firmware),
        (spec.clone(), Some(Firmware::Uefi)),
        "what libvirt added is not ours"
    );
    libvirt.undefine_domain(spec.uuid).await.expect("it goes");
    assert_eq!(stored(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn guests_outlive_a_libvirtd_that_is_killed_and_the_connection_is_made_anew() {
    let mut daemon = Daemon::start();
    let libvirt = emulated(&daemon.uri());
    let spec = machine(&daemon, &libvirt).await;
    libvirt.power(spec.uuid, PowerAction::On).await.expect("it starts");
    says(&daemon, "from-the-disk", 1).await;
    let mut events = libvirt.events();

    daemon.kill();
    let gone = async {
        loop {
            match libvirt.domain(spec.uuid).await {
                Ok(_) => tokio::time::sleep(Duration::from_millis(50)).await,
                Err(error) => return error,
            }
        }
    };
    let error = tokio::time::timeout(Duration::from_secs(30), gone).await.expect("it is noticed");
    assert!(error.is_transient(), "{error}");

    daemon.come_back();
    let found = libvirt.domain(spec.uuid).await.expect("a new connection");
    assert_eq!((found.state, found.spec), (PowerState::On, spec.clone()));
    assert_eq!(events.next().await, Some(Event::Resync));

    // Answered only when libvirtd has its guest back: one that dies before that, it tells nobody of.
    libvirt.grow_disk(spec.uuid, "vda", 0).await.expect("nothing to do");
    libvirt.power(spec.uuid, PowerAction::ForceOff).await.expect("it stops");
    let stopped = Event::Domain { uuid: spec.uuid, change: Change::Stopped };
    let heard = async { while events.next().await.as_ref() != Some(&stopped) {} };
    tokio::time::timeout(Duration::from_secs(30), heard).await.expect("events of the new connection");
}

#[tokio::test(flavor = "multi_thread")]
async fn half_a_volume_is_none_and_is_cleared_away() {
    let daemon = Daemon::start();
    let libvirt = emulated(&daemon.uri());
    machine(&daemon, &libvirt).await;
    // What an agent leaves behind that dies while it makes a volume.
    fs::write(daemon.path().join("disks/half"), "half").expect("a file");
    fs::write(daemon.path().join("disks/half.being-made"), "").expect("a file");
    let names = |volumes: Vec<hypervisor::Volume>| volumes.into_iter().map(|volume| volume.name).collect::<Vec<_>>();
    assert_eq!(names(libvirt.volumes("disks").await.expect("a list").found), ["disk", "image"]);
    let half = VolumeSpec {
        pool: "disks".to_owned(),
        name: "half".to_owned(),
        capacity: 2 << 20,
        sparse: true,
        ..VolumeSpec::default()
    };
    libvirt.create_volume(&half).await.expect("it is made whole");
    assert_eq!(names(libvirt.volumes("disks").await.expect("a list").found), ["disk", "half", "image"]);
    assert!(!daemon.path().join("disks/half.being-made").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dhcp_server_answers_those_it_knows_and_no_rule_of_libvirt_is_made() {
    let daemon = Daemon::start();
    let libvirt = emulated(&daemon.uri());
    let host = hypervisor::DhcpHost {
        mac: "02:5a:00:00:00:01".parse().expect("a MAC"),
        ip: Some("10.253.0.10".parse().expect("an address")),
        name: None,
    };
    let spec = NetworkSpec {
        name: "known".to_owned(),
        mark: Some(NetworkMark { owner: "o".to_owned(), serial: 1 }),
        bridge: "known0".to_owned(),
        mac: Some("02:5a:00:00:01:01".parse().expect("a MAC")),
        address: Some("10.253.0.1/24".parse().expect("an address")),
        dhcp: Some(hypervisor::DhcpSpec {
            hosts: vec![host],
            routes: vec![("0.0.0.0/0".parse().expect("a CIDR"), "10.253.0.1".parse().expect("an address"))],
            ..Default::default()
        }),
        ..NetworkSpec::default()
    };
    libvirt.define_network(&spec).await.expect("a network");
    libvirt.start_network("known").await.expect("it starts");
    let conf = fs::read_to_string(daemon.inside("/var/lib/libvirt/dnsmasq/known.conf")).expect("dnsmasq's file");
    assert!(conf.contains("dhcp-ignore=tag:!known"), "{conf}");
    assert!(conf.contains("dhcp-range=10.253.0.1,static"), "{conf}");
    assert!(conf.contains("dhcp-option=option:classless-static-route,0.0.0.0/0,10.253.0.1"), "{conf}");
    let network = libvirt.networks().await.expect("a list").found.remove(0);
    assert_eq!((network.spec, network.running), (spec.clone(), Some(spec)));
}
