//! What every hypervisor does, as cases: the fake passes them, libvirt's test driver does, and so does real libvirt.
//!
//! A case makes what it needs under names of its own and leaves nothing behind. It panics where the hypervisor is not as the
//! trait says.

mod domains;
mod networks;
mod storage;

use std::{future::Future, pin::Pin, sync::Arc};

use ::hypervisor::{DomainSpec, Hypervisor, Mark, Uuid};
use base::Mac;

/// A hypervisor to be judged.
pub struct Lab {
    /// The hypervisor.
    pub hypervisor: Arc<dyn Hypervisor>,
    /// What every domain begins with: what only this hypervisor can say (engine, architecture, mainboard).
    pub blank: DomainSpec,
    /// A directory on its machine where pools may be.
    pub directory: String,
    /// What it can do.
    pub can: Abilities,
    /// Defines a domain with tools of its own.
    pub by_hand: Box<dyn Fn(&str) + Send + Sync>,
}

/// What a hypervisor can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abilities {
    /// All that the trait says.
    All,
    /// All but what libvirt's test driver cannot: change the drive of a running guest or the DHCP hosts of a running network,
    /// keep metadata of networks, make volumes that rest on others, copies, and larger ones.
    Least,
}

/// A case under way.
pub type Running<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// A case.
#[derive(Clone, Copy)]
pub struct Case {
    /// What it says, as a sentence with underscores.
    pub name: &'static str,
    /// Runs it.
    pub run: for<'a> fn(&'a Lab) -> Running<'a>,
}

macro_rules! cases {
    ($($module:ident: $($name:ident),+ $(,)?;)+) => {
        /// All cases.
        pub const CASES: &[Case] = &[$($(Case { name: stringify!($name), run: |lab| Box::pin($module::$name(lab)) }),+),+];
    };
}

cases! {
    domains:
        a_domain_is_as_it_was_asked_for,
        defining_it_again_changes_nothing,
        a_name_that_another_one_has_is_refused,
        whatever_its_texts_contain_it_is_found_again,
        what_xml_cannot_carry_is_refused_and_nothing_is_made,
        what_the_bmc_has_set_stays_when_it_is_defined_anew,
        its_mark_changes_and_nothing_else,
        power_goes_on_and_off,
        what_is_already_so_is_not_done_again,
        a_restart_of_a_machine_that_is_off_does_nothing,
        a_restart_takes_what_is_defined,
        an_override_that_holds_once_is_used_up_by_a_start,
        a_running_domain_is_not_undefined,
        what_is_not_there_is_said_so,
        media_go_in_and_out,
        media_of_a_running_guest_go_in_and_out,
        foreign_domains_are_listed_and_unmarked,
        what_happens_is_told;
    networks:
        a_network_is_as_it_was_asked_for,
        it_starts_stops_and_goes,
        dhcp_hosts_change_while_it_runs,
        its_mark_is_kept;
    storage:
        a_pool_is_as_it_was_asked_for,
        volumes_come_and_go,
        a_volume_that_is_there_is_not_made_again,
        a_name_that_leaves_the_pool_is_refused,
        a_volume_grows_and_never_shrinks,
        a_copy_has_what_it_was_copied_from,
        a_volume_on_another_stores_the_difference;
}

impl Lab {
    fn can_all(&self) -> bool {
        self.can == Abilities::All
    }

    /// The domain of a case, with a UUID and a name of its own.
    fn domain(&self, case: &str) -> DomainSpec {
        DomainSpec {
            uuid: id(case),
            name: format!("case-{case}"),
            mark: Some(Mark {
                owner: "owner".to_owned(),
                machine: "machine".to_owned(),
                group: "worker".to_owned(),
                host: "host".to_owned(),
                since: 1,
                serial: 1,
                disks: [].into(),
            }),
            memory_kib: 64 << 10,
            vcpus: 1,
            threads: 1,
            ..self.blank.clone()
        }
    }
}

/// A UUID that a case has for itself: its name, mixed until it looks like one.
fn id(case: &str) -> Uuid {
    let mixed = case.bytes().fold(0xcbf2_9ce4_8422_2325_u128, |hash, byte| {
        (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
    });
    uuid::Builder::from_random_bytes(mixed.to_be_bytes()).into_uuid()
}

/// A MAC address of a case.
fn mac(last: u8) -> Mac {
    Mac::new([0x02, 0x5a, 0, 0, 0, last])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hypervisor::{FakeHypervisor, Shape};

    #[tokio::test]
    async fn the_hypervisor_in_memory_passes_every_case() {
        for case in CASES {
            let fake = FakeHypervisor::on(Shape::cells(1).host());
            let by_hand = fake.clone();
            let lab = Lab {
                hypervisor: Arc::new(fake),
                blank: DomainSpec { arch: "x86_64".to_owned(), ..DomainSpec::default() },
                directory: "/pools".to_owned(),
                can: Abilities::All,
                by_hand: Box::new(move |xml| by_hand.define_by_hand(xml)),
            };
            println!("{}", case.name);
            (case.run)(&lab).await;
            assert!(lab.hypervisor.domains().await.unwrap().found.is_empty(), "{} leaves domains", case.name);
            assert!(lab.hypervisor.networks().await.unwrap().found.is_empty(), "{} leaves networks", case.name);
            assert!(lab.hypervisor.pools().await.unwrap().found.is_empty(), "{} leaves pools", case.name);
        }
    }
}
