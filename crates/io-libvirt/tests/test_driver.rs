//! The cases of every hypervisor, on libvirt's test driver: it needs no daemon and forgets everything with its connection.

use std::sync::Arc;

use hypervisor::{Acceleration, Chipset, DomainSpec, Engine, Hypervisor};
use io_libvirt::Libvirt;
use testkit::hypervisor::conformance::{Abilities, CASES, Lab};

/// One world for each URI: a file of its own per test, so that no test sees what another did.
fn lab() -> Lab {
    let libvirt = Libvirt::new("test:///default", "boot-1").with_acceleration(Acceleration::Unknown);
    Lab {
        hypervisor: Arc::new(libvirt),
        blank: DomainSpec {
            arch: "i686".to_owned(),
            engine: Engine::Other("test".to_owned()),
            chipset: Chipset::Other(String::new()),
            ..DomainSpec::default()
        },
        directory: "/case-pools".to_owned(),
        can: Abilities::Least,
        by_hand: Box::new(|xml| {
            let connect =
                virt::connect::Connect::open(Some("test:///default")).expect("the test driver is always there");
            virt::domain::Domain::define_xml(&connect, xml).expect("it can be defined");
        }),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_test_driver_passes_every_case() {
    let lab = lab();
    for case in CASES {
        println!("{}", case.name);
        (case.run)(&lab).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_machine_of_the_test_driver_is_read() {
    let host = lab().hypervisor.host().await.expect("its capabilities");
    assert_eq!(host.cells.len(), 2);
    assert_eq!(host.cpus().to_string(), "0-15");
    assert_eq!(host.boot_id, "boot-1");
}

#[tokio::test(flavor = "multi_thread")]
async fn its_stock_domain_is_foreign() {
    let domains = lab().hypervisor.domains().await.expect("a list");
    let test = domains.found.iter().find(|domain| domain.spec.name == "test").expect("it is always there");
    assert_eq!((test.spec.mark.as_ref(), test.spec.memory_kib), (None, 8 << 20));
    assert!(domains.unreadable.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_that_is_not_there_is_said_so() {
    let nobody = Libvirt::new("qemu:///system?socket=/nonexistent/libvirt-sock", "");
    let error = nobody.domains().await.expect_err("nobody is there");
    assert!(error.is_transient() && error.reason() == "HypervisorUnreachable", "{error}");
}
