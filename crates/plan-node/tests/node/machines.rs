//! Machines and their disks: made, kept, lost, removed.

use api::vinonode::{Image, ImageUse, NodeDisk, NodeVm};
use hypervisor::{Domain, DomainSpec, LastPower, PowerState};
use plan_node::{Step, after, at_next_start};
use testkit::hypervisor::Shape;

use crate::fixture::{
    absent, bare, but_dhcp, carried_out, cpus, destroys, disk, domain, planned, reasons, stop, switch_on, uuid, vm,
    with,
};

#[test]
fn the_first_plan_makes_everything_in_its_order() {
    let seen = bare(&Shape::cells(1));
    assert_eq!(
        planned(&with(1, [vm(0)]), &seen).to_string(),
        "~ rules for 1 networks\n\
         + pool vino-default at /var/lib/libvirt/vino-pool\n\
         ~ pool vino-default starts\n\
         + marker machine-1 in pool vino-default\n\
         + network management on bridge vm-infra at 192.168.2.10/20\n\
         ~ network management starts\n\
         + volume vino-default/worker-0-root-51170000-0000-4000-8000-000000000000 of 10240 MiB\n\
         + vm worker-0: 1 CPUs on 0, 1024 MiB of cell 0\n"
    );
}

#[test]
fn what_was_carried_out_is_not_planned_again() {
    let spec = with(1, [vm(0), vm(1)]);
    let seen = carried_out(&spec, bare(&Shape::cells(1)));
    assert_eq!(planned(&spec, &seen).to_string(), "");
}

#[test]
fn a_new_serial_is_remembered_by_every_machine() {
    let seen = carried_out(&with(1, [vm(0)]), bare(&Shape::cells(1)));
    let plan = planned(&with(2, [vm(0)]), &seen);
    assert_eq!(plan.to_string(), format!("~ vm {} is marked with serial 2\n", uuid(0)));
}

#[test]
fn a_vino_node_that_is_older_than_what_was_seen_changes_nothing() {
    let seen = carried_out(&with(5, [vm(0)]), bare(&Shape::cells(1)));
    let plan = planned(&with(4, [absent(vm(0)), vm(1)]), &seen);
    assert!(plan.steps.is_empty());
    assert_eq!(reasons(&plan), ["SerialOlder"]);
    let remembered = plan_node::Seen { serial: 9, ..bare(&Shape::cells(1)) };
    assert_eq!(reasons(&planned(&with(4, [vm(1)]), &remembered)), ["SerialOlder"]);
}

#[test]
fn a_vino_node_of_another_machine_changes_nothing() {
    let seen = plan_node::Seen { machine: "machine-2".into(), ..bare(&Shape::cells(1)) };
    let plan = planned(&with(1, [vm(0)]), &seen);
    assert!(plan.steps.is_empty());
    assert_eq!(reasons(&plan), ["OtherMachine"]);
}

#[test]
fn an_empty_vino_node_changes_nothing() {
    let seen = carried_out(&with(1, [vm(0)]), bare(&Shape::cells(1)));
    let mut empty = with(2, []);
    (empty.networks, empty.pools) = (vec![], vec![]);
    let plan = planned(&empty, &seen);
    assert!(plan.steps.is_empty());
    assert_eq!(reasons(&plan), ["Empty"]);
}

#[test]
fn a_machine_without_an_entry_stays() {
    let seen = carried_out(&with(1, [vm(0), vm(1)]), bare(&Shape::cells(1)));
    let plan = planned(&with(2, [vm(1)]), &seen);
    assert!(!plan.steps.iter().any(destroys), "{plan}");
}

#[test]
fn a_machine_whose_entry_says_absent_goes_with_its_disks() {
    let mut seen = carried_out(&with(1, [vm(0)]), bare(&Shape::cells(1)));
    switch_on(&mut seen, uuid(0));
    let gone = with(2, [absent(vm(0))]);
    let plan = planned(&gone, &seen);
    let said = plan.to_string();
    assert!(
        said.contains(
            "~ vm worker-0 stops\n- vm worker-0\n- volume vino-default/worker-0-root-51170000-0000-4000-8000-000000000000\n"
        ),
        "{said}"
    );
    let seen = after(seen, &plan);
    assert!(seen.domains.is_empty() && seen.volumes["vino-default"].is_empty());
    assert_eq!(planned(&gone, &seen).to_string(), "");
}

#[test]
fn an_agent_that_died_between_domain_and_disk_removes_the_disk() {
    let mut seen = carried_out(&with(1, [vm(0)]), bare(&Shape::cells(1)));
    seen.domains.clear();
    let plan = planned(&with(2, [absent(vm(0))]), &seen);
    let said: Vec<String> = but_dhcp(&plan).iter().map(ToString::to_string).collect();
    assert_eq!(said, ["- volume vino-default/worker-0-root-51170000-0000-4000-8000-000000000000"]);
}

#[test]
fn a_disk_that_others_use_stays_when_its_machine_goes() {
    let mut seen = carried_out(&with(1, [vm(0)]), bare(&Shape::cells(1)));
    let mut borrower = seen.domains[&uuid(0)].clone();
    borrower.spec = DomainSpec { uuid: uuid(9), name: "borrower".into(), mark: None, ..borrower.spec };
    seen.domains.insert(uuid(9), borrower);
    let plan = planned(&with(2, [absent(vm(0))]), &seen);
    assert!(!plan.steps.iter().any(|step| matches!(step, Step::DeleteVolume(_))), "{plan}");
}

#[test]
fn a_disk_that_is_missing_is_lost_and_not_made_again() {
    let spec = with(1, [vm(0)]);
    let mut seen = carried_out(&spec, bare(&Shape::cells(1)));
    seen.volumes.get_mut("vino-default").expect("the pool").clear();
    domain(&mut seen, uuid(0)).settings.last_power = Some(LastPower { on: true, boot_id: "an earlier one".into() });
    let plan = planned(&spec, &seen);
    assert!(plan.steps.is_empty(), "neither made nor started: {plan}");
    assert_eq!(reasons(&plan), ["DiskLost"]);
}

#[test]
fn a_disk_that_the_status_remembers_is_not_made_again_though_the_domain_is_gone_too() {
    let spec = with(1, [vm(0)]);
    let mut seen = carried_out(&spec, bare(&Shape::cells(1)));
    seen.domains.clear();
    seen.volumes.get_mut("vino-default").expect("the pool").clear();
    seen.recorded.insert(uuid(0), ["root".to_owned()].into());
    let plan = planned(&spec, &seen);
    assert!(plan.steps.is_empty(), "{plan}");
    assert_eq!(reasons(&plan), ["DiskLost"]);
}

#[test]
fn a_disk_of_its_own_that_lies_there_is_taken_as_it_is() {
    let spec = with(1, [vm(0)]);
    let mut seen = carried_out(&spec, bare(&Shape::cells(1)));
    let whole = seen.clone();
    seen.domains.clear();
    let plan = planned(&spec, &seen);
    assert!(!plan.steps.iter().any(|step| matches!(step, Step::CreateVolume(_))), "{plan}");
    assert_eq!(after(seen, &plan).domains, whole.domains);
}

#[test]
fn a_volume_of_somebody_else_is_not_touched() {
    let mine = NodeVm { disks: vec![NodeDisk { volume: "worker-0".into(), ..disk(0, "root") }], ..vm(0) };
    let mut seen = carried_out(&with(1, []), bare(&Shape::cells(1)));
    let volumes = seen.volumes.get_mut("vino-default").expect("the pool");
    volumes.insert("worker-0".into(), hypervisor::Volume { name: "worker-0".into(), ..Default::default() });
    let plan = planned(&with(1, [mine.clone()]), &seen);
    assert_eq!((but_dhcp(&plan), reasons(&plan)), (vec![], vec!["Foreign".to_owned()]));
    assert_eq!(planned(&with(1, [absent(mine)]), &seen).to_string(), "");
}

#[test]
fn a_file_system_that_is_not_mounted_changes_nothing() {
    let spec = with(1, [vm(0)]);
    let seen = carried_out(&spec, bare(&Shape::cells(1)));
    for marker in [None, Some("machine-2".to_owned())] {
        let mut unmounted = plan_node::Seen { marker, ..seen.clone() };
        unmounted.volumes.get_mut("vino-default").expect("the pool").clear();
        let plan = planned(&with(2, [absent(vm(0)), vm(1)]), &unmounted);
        assert!(plan.steps.is_empty(), "{plan}");
        assert_eq!(reasons(&plan), ["PoolNotMounted"]);
    }
}

#[test]
fn a_foreign_domain_of_that_name_is_not_touched() {
    let mut seen = bare(&Shape::cells(1));
    let foreign = Domain {
        spec: DomainSpec { uuid: uuid(77), name: "worker-0".into(), vcpus: 1, ..DomainSpec::default() },
        persistent: true,
        ..Domain::default()
    };
    seen.domains.insert(uuid(77), foreign.clone());
    let plan = planned(&with(1, [vm(0), vm(1)]), &seen);
    assert_eq!(reasons(&plan), ["Foreign"]);
    let seen = after(seen, &plan);
    assert_eq!(seen.domains[&uuid(77)], foreign);
    assert!(seen.domains.contains_key(&uuid(1)) && !seen.domains.contains_key(&uuid(0)), "the other one is made");
    let plan = planned(&with(2, [absent(vm(0)), vm(1)]), &seen);
    assert!(!plan.steps.iter().any(destroys), "{plan}");
}

#[test]
fn a_domain_with_our_uuid_and_without_our_mark_is_foreign() {
    let mut seen = carried_out(&with(1, [vm(0)]), bare(&Shape::cells(1)));
    domain(&mut seen, uuid(0)).spec.mark = None;
    seen.marker = Some("machine-1".into());
    for entry in [vm(0), absent(vm(0))] {
        let plan = planned(&with(2, [entry]), &seen);
        assert_eq!((but_dhcp(&plan), reasons(&plan)), (vec![], vec!["Foreign".to_owned()]));
    }
}

#[test]
fn a_name_is_used_again_only_after_the_old_machine_is_gone() {
    let seen = carried_out(&with(1, [vm(0)]), bare(&Shape::cells(1)));
    let anew = NodeVm { name: "worker-0".into(), ..vm(1) };
    let plan = planned(&with(2, [anew.clone()]), &seen);
    assert_eq!(reasons(&plan), ["Foreign"]);
    let plan = planned(&with(2, [absent(vm(0)), anew]), &seen);
    assert_eq!(reasons(&plan), [""; 0]);
    assert_eq!(after(seen, &plan).domains.keys().copied().collect::<Vec<_>>(), [uuid(1)]);
}

#[test]
fn an_entry_that_makes_no_sense_stops_only_itself() {
    let bad = NodeVm { xml_overlay: Some("<domain><memory/></domain>".into()), ..vm(0) };
    let plan = planned(&with(1, [bad, vm(1)]), &bare(&Shape::cells(1)));
    assert_eq!(reasons(&plan), ["SpecInvalid"]);
    assert!(plan.to_string().contains("! vm worker-0: xmlOverlay cannot be written: <memory> is not to be overlaid"));
    assert!(plan.to_string().contains("+ vm worker-1"));
}

#[test]
fn a_resize_takes_effect_at_the_next_start_and_says_so() {
    let mut seen = carried_out(&with(1, [vm(0)]), bare(&Shape::cells(1)));
    switch_on(&mut seen, uuid(0));
    let larger = NodeVm { memory_mib: 2048, ..cpus(2, vm(0)) };
    let mut seen = carried_out(&with(2, [larger.clone()]), seen);
    let found = domain(&mut seen, uuid(0));
    assert_eq!(found.running.as_ref().map(|running| running.vcpus), Some(1));
    assert_eq!(at_next_start(found), ["vcpus 1 to 2", "memory 1024 MiB to 2048 MiB", "cpus 0 to 0-1"]);
    assert_eq!(planned(&with(2, [larger]), &seen).to_string(), "", "nothing more until then");
    stop(&mut seen, uuid(0));
    switch_on(&mut seen, uuid(0));
    assert_eq!(at_next_start(domain(&mut seen, uuid(0))), Vec::<String>::new());
}

#[test]
fn guests_come_back_after_a_power_cut_as_they_were() {
    let spec = with(1, [vm(0), vm(1), vm(2)]);
    let mut seen = carried_out(&spec, bare(&Shape::cells(1)));
    switch_on(&mut seen, uuid(0));
    switch_on(&mut seen, uuid(1));
    stop(&mut seen, uuid(1));
    let plan = planned(&spec, &seen);
    assert_eq!(plan.to_string(), format!("~ vm {} is noted as off\n", uuid(1)), "its guest shut down");
    let mut seen = after(seen, &plan);
    stop(&mut seen, uuid(0));
    seen.host.boot_id = "boot-2".into();
    let plan = planned(&spec, &seen);
    assert_eq!(plan.to_string(), "~ vm worker-0 starts again\n");
    let seen = after(seen, &plan);
    assert_eq!(seen.domains[&uuid(0)].state, PowerState::On);
    assert_eq!(planned(&spec, &seen).to_string(), "");
}

#[test]
fn a_machine_without_an_entry_comes_back_as_well() {
    let mut seen = carried_out(&with(1, [vm(0), vm(1)]), bare(&Shape::cells(1)));
    switch_on(&mut seen, uuid(0));
    stop(&mut seen, uuid(0));
    seen.host.boot_id = "boot-2".into();
    assert!(planned(&with(1, [vm(1)]), &seen).to_string().contains("~ vm worker-0 starts again\n"));
}

#[test]
fn disks_grow_and_further_ones_are_made_where_they_were_asked_for() {
    let mut seen = carried_out(&with(1, [vm(0)]), bare(&Shape::cells(1)));
    let larger = NodeDisk { size_bytes: 20 << 30, ..disk(0, "root") };
    let grown = NodeVm { disks: vec![larger, disk(0, "data")], ..vm(0) };
    let said = planned(&with(1, [grown.clone()]), &seen).to_string();
    assert!(
        said.contains("~ volume vino-default/worker-0-root-51170000-0000-4000-8000-000000000000 grows to 20480 MiB\n"),
        "{said}"
    );
    assert!(said.contains("+ volume vino-default/worker-0-data-"), "{said}");
    switch_on(&mut seen, uuid(0));
    let plan = planned(&with(1, [grown.clone()]), &seen);
    assert!(plan.to_string().contains("grows to 20480 MiB under its guest (vda)\n"), "{plan}");
    let seen = after(seen, &plan);
    assert_eq!(planned(&with(1, [grown]), &seen).to_string(), "");
    assert_eq!(
        seen.domains[&uuid(0)].spec.disks.iter().map(|disk| disk.target.as_str()).collect::<Vec<_>>(),
        ["vda", "vdb"]
    );
    let smaller = NodeVm { disks: vec![NodeDisk { size_bytes: 1 << 30, ..disk(0, "root") }], ..vm(0) };
    let said = planned(&with(1, [smaller]), &seen).to_string();
    assert!(
        !said.contains("grows") && !said.contains("- volume"),
        "never smaller, and not removed with its entry: {said}"
    );
}

#[test]
fn an_image_is_fetched_once_for_all_its_disks_and_cleared_when_none_needs_it() {
    for usage in [ImageUse::Copy, ImageUse::Backing] {
        let image = Image { url: "http://images.example.org/a.qcow2".into(), sha256: None, usage: Some(usage) };
        let from_image = |number| NodeVm {
            disks: vec![NodeDisk { image: Some(image.clone()), ..disk(number, "root") }],
            ..vm(number)
        };
        let spec = with(1, [from_image(0), from_image(1)]);
        let plan = planned(&spec, &bare(&Shape::cells(1)));
        let said = plan.to_string();
        assert_eq!(said.matches("from http://images.example.org/a.qcow2").count(), 1, "{said}");
        let how = if usage == ImageUse::Copy { ", a copy of slipway-image-" } else { ", on slipway-image-" };
        assert_eq!(said.matches(how).count(), 2, "{said}");
        let seen = after(bare(&Shape::cells(1)), &plan);
        assert_eq!(planned(&spec, &seen).to_string(), "");
        let one = planned(&with(1, [absent(from_image(0)), from_image(1)]), &seen);
        assert!(!one.to_string().contains("- volume vino-default/slipway-image-"), "{one}");
        let none = planned(&with(1, [absent(from_image(0)), absent(from_image(1))]), &seen);
        assert!(none.to_string().contains("- volume vino-default/slipway-image-"), "{none}");
    }
}

#[test]
fn console_logs_stay_in_their_directory() {
    let hostile = NodeVm { name: "../../etc/x".into(), ..vm(0) };
    let seen = carried_out(&with(1, [hostile]), bare(&Shape::cells(1)));
    let log = seen.domains[&uuid(0)].spec.console_log.clone().expect("a log");
    assert_eq!(log, format!("/var/log/guests/______etc_x-{}.log", uuid(0)));
}
