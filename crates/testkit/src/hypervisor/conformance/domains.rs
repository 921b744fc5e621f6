//! Cases about domains.

use std::time::Duration;

use ::hypervisor::{
    Boot, BootTarget, Change, Domain, DomainSpec, Effect, Error, Event, Firmware, Hold, Kind, Mark, Media, PowerAction,
    PowerState, Settings, VolumeRef,
};
use futures::StreamExt;

use super::{Lab, id};

/// Defines it; gives it back as it then is.
async fn defined(lab: &Lab, spec: &DomainSpec) -> Domain {
    lab.hypervisor.define_domain(spec).await.expect("it can be defined");
    lab.hypervisor.domain(spec.uuid).await.expect("it is there")
}

async fn gone(lab: &Lab, spec: &DomainSpec) {
    lab.hypervisor.power(spec.uuid, PowerAction::ForceOff).await.expect("it can be forced off");
    lab.hypervisor.undefine_domain(spec.uuid).await.expect("it can be undefined");
    let error = lab.hypervisor.domain(spec.uuid).await.expect_err("it is gone");
    assert!(error.is_not_found(), "{error}");
}

async fn state(lab: &Lab, spec: &DomainSpec) -> PowerState {
    lab.hypervisor.domain(spec.uuid).await.expect("it is there").state
}

async fn settings(lab: &Lab, spec: &DomainSpec) -> Settings {
    lab.hypervisor.domain(spec.uuid).await.expect("it is there").settings
}

pub(super) async fn a_domain_is_as_it_was_asked_for(lab: &Lab) {
    let spec = DomainSpec {
        vcpus: 2,
        threads: 2,
        console_log: Some(format!("{}/console.log", lab.directory)),
        ..lab.domain("asked-for")
    };
    let found = defined(lab, &spec).await;
    assert_eq!(found.spec, spec);
    assert_eq!(found.settings, Settings::default());
    assert_eq!((found.state, found.running, found.persistent), (PowerState::Off, None, true));
    let listed = lab.hypervisor.domains().await.expect("a list").found;
    assert!(listed.iter().any(|domain| domain.spec == spec));
    gone(lab, &spec).await;
}

pub(super) async fn defining_it_again_changes_nothing(lab: &Lab) {
    let spec = lab.domain("again");
    let first = defined(lab, &spec).await;
    assert_eq!(defined(lab, &spec).await, first);
    gone(lab, &spec).await;
}

pub(super) async fn a_name_that_another_one_has_is_refused(lab: &Lab) {
    let spec = lab.domain("taken");
    defined(lab, &spec).await;
    let other = DomainSpec { uuid: id("taken-other"), ..spec.clone() };
    let error = lab.hypervisor.define_domain(&other).await.expect_err("the name is taken");
    assert_eq!(error, Error::Exists { kind: Kind::Domain, name: spec.name.clone() });
    gone(lab, &spec).await;
}

pub(super) async fn whatever_its_texts_contain_it_is_found_again(lab: &Lab) {
    for (at, hostile) in
        ["\"'><evil/>", "</name>", "{{ x }}; reboot", "a & b", "../../etc", "\u{fc}mlaut"].iter().enumerate()
    {
        let mut spec = lab.domain(&format!("hostile-{at}"));
        let mark = spec.mark.as_mut().expect("ours");
        (*hostile).clone_into(&mut mark.group);
        (*hostile).clone_into(&mut mark.host);
        mark.disks =
            [((*hostile).to_owned(), VolumeRef { pool: (*hostile).to_owned(), volume: (*hostile).to_owned() })].into();
        assert_eq!(defined(lab, &spec).await.spec, spec);
        gone(lab, &spec).await;
    }
}

pub(super) async fn what_xml_cannot_carry_is_refused_and_nothing_is_made(lab: &Lab) {
    for bad in ["a\u{0}b", "a\u{1}b"] {
        let spec = DomainSpec { name: bad.to_owned(), ..lab.domain("control") };
        let error = lab.hypervisor.define_domain(&spec).await.expect_err("no XML can say that");
        assert!(matches!(error, Error::Unwritable(_)), "{error}");
        assert!(lab.hypervisor.domain(spec.uuid).await.expect_err("nothing was made").is_not_found());
    }
}

pub(super) async fn what_the_bmc_has_set_stays_when_it_is_defined_anew(lab: &Lab) {
    let spec = lab.domain("settings");
    defined(lab, &spec).await;
    let boot = Boot { target: BootTarget::Cd, hold: Hold::Continuous };
    lab.hypervisor.set_boot(spec.uuid, boot).await.expect("a boot override");
    lab.hypervisor.set_firmware(spec.uuid, Some(Firmware::Uefi)).await.expect("a firmware");
    let larger = DomainSpec { memory_kib: 128 << 10, ..spec.clone() };
    let found = defined(lab, &larger).await;
    assert_eq!(found.spec, larger);
    assert_eq!(found.settings, Settings { boot, firmware: Some(Firmware::Uefi), ..Settings::default() });
    assert_eq!(found.firmware(), Firmware::Uefi);
    lab.hypervisor.set_firmware(spec.uuid, None).await.expect("its own firmware");
    assert_eq!(lab.hypervisor.domain(spec.uuid).await.expect("it is there").firmware(), Firmware::Bios);
    gone(lab, &spec).await;
}

pub(super) async fn its_mark_changes_and_nothing_else(lab: &Lab) {
    let spec = lab.domain("mark");
    let before = defined(lab, &spec).await;
    let mark = Mark { serial: 7, owner: "other".to_owned(), ..spec.mark.clone().expect("ours") };
    lab.hypervisor.mark_domain(spec.uuid, &mark).await.expect("a mark");
    let after = lab.hypervisor.domain(spec.uuid).await.expect("it is there");
    assert_eq!(after, Domain { spec: DomainSpec { mark: Some(mark), ..spec.clone() }, ..before });
    gone(lab, &spec).await;
}

pub(super) async fn power_goes_on_and_off(lab: &Lab) {
    let spec = lab.domain("power");
    defined(lab, &spec).await;
    assert_eq!(lab.hypervisor.power(spec.uuid, PowerAction::On).await, Ok(Effect::Done));
    let found = lab.hypervisor.domain(spec.uuid).await.expect("it is there");
    assert_eq!(found.state, PowerState::On);
    assert!(found.running.is_some_and(|running| running.uuid == spec.uuid));
    assert!(found.settings.last_power.is_some_and(|last| last.on));
    assert_eq!(lab.hypervisor.power(spec.uuid, PowerAction::ForceOff).await, Ok(Effect::Done));
    assert_eq!(state(lab, &spec).await, PowerState::Off);
    assert!(settings(lab, &spec).await.last_power.is_some_and(|last| !last.on));
    lab.hypervisor.note_power(spec.uuid, true).await.expect("a note");
    assert!(settings(lab, &spec).await.last_power.is_some_and(|last| last.on));
    assert_eq!(lab.hypervisor.power(spec.uuid, PowerAction::PushPowerButton).await, Ok(Effect::Done));
    assert_eq!(state(lab, &spec).await, PowerState::On);
    gone(lab, &spec).await;
}

pub(super) async fn what_is_already_so_is_not_done_again(lab: &Lab) {
    let spec = lab.domain("already");
    defined(lab, &spec).await;
    assert_eq!(lab.hypervisor.power(spec.uuid, PowerAction::ForceOff).await, Ok(Effect::Nothing));
    lab.hypervisor.power(spec.uuid, PowerAction::On).await.expect("it starts");
    assert_eq!(lab.hypervisor.power(spec.uuid, PowerAction::On).await, Ok(Effect::Nothing));
    gone(lab, &spec).await;
}

pub(super) async fn a_restart_of_a_machine_that_is_off_does_nothing(lab: &Lab) {
    let spec = lab.domain("off");
    defined(lab, &spec).await;
    for action in
        [PowerAction::ForceRestart, PowerAction::GracefulRestart, PowerAction::GracefulShutdown, PowerAction::Nmi]
    {
        assert_eq!(lab.hypervisor.power(spec.uuid, action).await, Ok(Effect::Nothing), "{action}");
    }
    assert_eq!(state(lab, &spec).await, PowerState::Off);
    gone(lab, &spec).await;
}

pub(super) async fn a_restart_takes_what_is_defined(lab: &Lab) {
    let spec = lab.domain("restart");
    defined(lab, &spec).await;
    lab.hypervisor.power(spec.uuid, PowerAction::On).await.expect("it starts");
    let larger = DomainSpec { vcpus: 2, ..spec.clone() };
    let pending = defined(lab, &larger).await;
    assert_eq!(pending.spec.vcpus, 2);
    assert_eq!(pending.running.map(|running| running.vcpus), Some(1), "until its next start");
    assert_eq!(lab.hypervisor.power(spec.uuid, PowerAction::ForceRestart).await, Ok(Effect::Done));
    let found = lab.hypervisor.domain(spec.uuid).await.expect("it is there");
    assert_eq!((found.state, found.running.map(|running| running.vcpus)), (PowerState::On, Some(2)));
    gone(lab, &spec).await;
}

pub(super) async fn an_override_that_holds_once_is_used_up_by_a_start(lab: &Lab) {
    let spec = lab.domain("once");
    defined(lab, &spec).await;
    let once = Boot { target: BootTarget::Pxe, hold: Hold::Once };
    let always = Boot { hold: Hold::Continuous, ..once };
    for (boot, left) in [(once, Boot::default()), (always, always)] {
        lab.hypervisor.set_boot(spec.uuid, boot).await.expect("a boot override");
        assert_eq!(settings(lab, &spec).await.boot, boot);
        lab.hypervisor.power(spec.uuid, PowerAction::On).await.expect("it starts");
        assert_eq!(settings(lab, &spec).await.boot, left);
        lab.hypervisor.power(spec.uuid, PowerAction::ForceOff).await.expect("it stops");
    }
    gone(lab, &spec).await;
}

pub(super) async fn a_running_domain_is_not_undefined(lab: &Lab) {
    let spec = lab.domain("running");
    defined(lab, &spec).await;
    lab.hypervisor.power(spec.uuid, PowerAction::On).await.expect("it starts");
    let error = lab.hypervisor.undefine_domain(spec.uuid).await.expect_err("it runs");
    assert!(matches!(error, Error::WrongState { kind: Kind::Domain, .. }), "{error}");
    assert_eq!(state(lab, &spec).await, PowerState::On);
    gone(lab, &spec).await;
}

pub(super) async fn what_is_not_there_is_said_so(lab: &Lab) {
    let nobody = id("nobody");
    let hypervisor = &lab.hypervisor;
    for (call, error) in [
        ("domain", hypervisor.domain(nobody).await.expect_err("nobody")),
        ("power", hypervisor.power(nobody, PowerAction::On).await.expect_err("nobody")),
        ("set_boot", hypervisor.set_boot(nobody, Boot::default()).await.expect_err("nobody")),
        ("undefine_domain", hypervisor.undefine_domain(nobody).await.expect_err("nobody")),
        ("start_network", hypervisor.start_network("case-nobody").await.expect_err("nobody")),
        ("volumes", hypervisor.volumes("case-nobody").await.expect_err("nobody")),
    ] {
        assert!(error.is_not_found(), "{call}: {error}");
    }
}

pub(super) async fn media_go_in_and_out(lab: &Lab) {
    let spec = lab.domain("media");
    defined(lab, &spec).await;
    let media = Media { file: format!("{}/a & b.iso", lab.directory), url: "http://example.org/a?b=1&c=\"".to_owned() };
    lab.hypervisor.insert_media(spec.uuid, &media).await.expect("it goes in");
    assert_eq!(settings(lab, &spec).await.media, Some(media));
    assert_eq!(lab.hypervisor.eject_media(spec.uuid).await, Ok(Effect::Done));
    assert_eq!(settings(lab, &spec).await.media, None);
    assert_eq!(lab.hypervisor.eject_media(spec.uuid).await, Ok(Effect::Nothing));
    gone(lab, &spec).await;
}

pub(super) async fn media_of_a_running_guest_go_in_and_out(lab: &Lab) {
    if !lab.can_all() {
        return;
    }
    let spec = lab.domain("live-media");
    defined(lab, &spec).await;
    lab.hypervisor.power(spec.uuid, PowerAction::On).await.expect("it starts");
    for name in ["one.iso", "two.iso"] {
        let media = Media { file: format!("{}/{name}", lab.directory), url: format!("http://example.org/{name}") };
        lab.hypervisor.insert_media(spec.uuid, &media).await.expect("it goes in");
        assert_eq!(settings(lab, &spec).await.media, Some(media));
    }
    assert_eq!(lab.hypervisor.eject_media(spec.uuid).await, Ok(Effect::Done));
    assert_eq!(settings(lab, &spec).await.media, None);
    assert_eq!(state(lab, &spec).await, PowerState::On);
    gone(lab, &spec).await;
}

pub(super) async fn foreign_domains_are_listed_and_unmarked(lab: &Lab) {
    let spec = DomainSpec { mark: None, ..lab.domain("foreign") };
    let xml = ::hypervisor::xml::domain(&spec, &Settings::default(), None).expect("plain texts");
    (lab.by_hand)(&xml);
    let found = lab.hypervisor.domain(spec.uuid).await.expect("it is there");
    assert_eq!((found.spec.mark, found.spec.name), (None, spec.name.clone()));
    gone(lab, &spec).await;
}

pub(super) async fn what_happens_is_told(lab: &Lab) {
    let mut events = lab.hypervisor.events();
    let spec = lab.domain("events");
    defined(lab, &spec).await;
    lab.hypervisor.power(spec.uuid, PowerAction::On).await.expect("it starts");
    gone(lab, &spec).await;
    let mut waits = vec![Change::Defined, Change::Started, Change::Stopped, Change::Undefined];
    while let Some(next) = waits.first().copied() {
        let heard = tokio::time::timeout(Duration::from_secs(20), events.next()).await;
        match heard.unwrap_or_else(|_| panic!("nobody told of {next:?}")).expect("events do not end") {
            Event::Domain { uuid, change } if uuid == spec.uuid && change == next => drop(waits.remove(0)),
            Event::Domain { .. } | Event::Resync => {}
        }
    }
}
