//! XML that an owner lays over a generated domain: what it may change, and nothing else.
//!
//! An overlay is `<domain>` with some of the elements below. One of the same name is replaced, others are added. It is data
//! of whoever may write the specification, not of who may administer the machine: so nothing that reaches files, devices or
//! programs of the host is among them, and nothing that is planned (processors, memory, disks, network cards).
//!
//! | element | what happens |
//! |---|---|
//! | `cpu`, `features`, `os` (`bootmenu`, `smbios`) | attributes and children are laid over ours, one by one |
//! | `clock`, `pm`, `iothreads`, `title`, `description`, `sysinfo` (SMBIOS) | replaced |
//! | `devices`: `controller` | replaced by type and index, or added |
//! | `devices`: `memballoon`, `watchdog`, `iommu`, `tpm` (emulator), `panic` | replaced |
//! | `devices`: `input`, `sound`, `video` | added |

use super::{Element, Unwritable, parse::parse};

/// Where an overlay is in what people write.
const FIELD: &str = "xmlOverlay";

fn refused(why: String) -> Unwritable {
    Unwritable { field: FIELD.to_owned(), why }
}

/// Whether a text is an overlay: well-formed, and changing nothing that overlays may not change.
pub fn check(overlay: &str) -> Result<(), Unwritable> {
    lay(&mut Element::new("domain").child(Element::new("devices")), overlay)
}

/// Lays `overlay` over a generated domain.
pub(super) fn lay(domain: &mut Element, overlay: &str) -> Result<(), Unwritable> {
    let over = parse(overlay).map_err(refused)?;
    if over.name != "domain" || !over.attributes.is_empty() {
        return Err(refused("its root is to be <domain>, without attributes".to_owned()));
    }
    for element in over.children {
        match element.name.as_str() {
            "cpu" => {
                if let Some(planned) =
                    element.children.iter().find(|child| ["topology", "numa"].contains(&&*child.name))
                {
                    return Err(refused(format!("<cpu><{}> is planned, not overlaid", planned.name)));
                }
                merge(slot(domain, "cpu"), element);
            }
            "features" => merge(slot(domain, "features"), element),
            "os" => {
                let foreign = element.children.iter().find(|child| !["bootmenu", "smbios"].contains(&&*child.name));
                if let Some(foreign) = foreign {
                    return Err(refused(format!("<os><{}> is not to be overlaid", foreign.name)));
                }
                if !element.attributes.is_empty() {
                    return Err(refused("the firmware is not to be overlaid: <os> has attributes".to_owned()));
                }
                merge(slot(domain, "os"), element);
            }
            "sysinfo" if element.get("type") != Some("smbios") => {
                return Err(refused("<sysinfo> is to be of type smbios".to_owned()));
            }
            "clock" | "pm" | "iothreads" | "title" | "description" | "sysinfo" => {
                let name = element.name.clone();
                *slot(domain, &name) = element;
            }
            "devices" => {
                let devices = slot(domain, "devices");
                for device in element.children {
                    lay_device(devices, device)?;
                }
            }
            name => return Err(refused(format!("<{name}> is not to be overlaid"))),
        }
    }
    Ok(())
}

fn lay_device(devices: &mut Element, device: Element) -> Result<(), Unwritable> {
    let same: Box<dyn Fn(&Element) -> bool> = match device.name.as_str() {
        "controller" => {
            let key = |element: &Element| ["type", "index"].map(|name| element.get(name).map(str::to_owned));
            let mine = key(&device);
            Box::new(move |other| other.name == "controller" && key(other) == mine)
        }
        "tpm" if device.at("backend").is_none_or(|backend| backend.get("type") != Some("emulator")) => {
            return Err(refused("<tpm> is to have an emulator as its backend".to_owned()));
        }
        "tpm" if device.at("backend/source").is_some() => {
            return Err(refused("<tpm> is not to name files of the host".to_owned()));
        }
        "memballoon" | "watchdog" | "iommu" | "tpm" | "panic" => {
            let name = device.name.clone();
            Box::new(move |other| other.name == name)
        }
        "input" if device.first("source").is_some() => {
            return Err(refused("<input> is not to name devices of the host".to_owned()));
        }
        "input" | "sound" | "video" => Box::new(|_| false),
        name => return Err(refused(format!("<devices><{name}> is not to be overlaid"))),
    };
    match devices.children.iter_mut().find(|other| same(other)) {
        Some(place) => *place = device,
        None => devices.children.push(device),
    }
    Ok(())
}

/// The child of that name, made if it is missing.
fn slot<'a>(parent: &'a mut Element, name: &str) -> &'a mut Element {
    let at = parent.children.iter().position(|child| child.name == name).unwrap_or_else(|| {
        parent.children.push(Element::new(name));
        parent.children.len() - 1
    });
    &mut parent.children[at]
}

/// Lays attributes and children over those of the same name.
fn merge(below: &mut Element, over: Element) {
    for (name, value) in over.attributes {
        match below.attributes.iter_mut().find(|(other, _)| *other == name) {
            Some(place) => place.1 = value,
            None => below.attributes.push((name, value)),
        }
    }
    for child in over.children {
        // A CPU has many <feature>, each with a name of its own.
        let key = (child.name.clone(), child.get("name").map(str::to_owned));
        let same = |other: &&mut Element| (other.name.clone(), other.get("name").map(str::to_owned)) == key;
        match below.children.iter_mut().find(same) {
            Some(place) => *place = child,
            None => below.children.push(child),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xml::write::write;
    use rstest::rstest;

    #[rstest]
    #[case("<domain><memory>1</memory></domain>", "<memory> is not to be overlaid")]
    #[case("<domain><uuid>x</uuid></domain>", "<uuid> is not to be overlaid")]
    #[case("<domain><cpu><topology/></cpu></domain>", "<cpu><topology> is planned, not overlaid")]
    #[case("<domain><os><loader>/etc/shadow</loader></os></domain>", "<os><loader> is not to be overlaid")]
    #[case("<domain><os firmware='efi'/></domain>", "the firmware is not to be overlaid: <os> has attributes")]
    #[case("<domain><devices><hostdev/></devices></domain>", "<devices><hostdev> is not to be overlaid")]
    #[case("<domain><devices><filesystem/></devices></domain>", "<devices><filesystem> is not to be overlaid")]
    #[case(
        "<domain><devices><emulator>/bin/sh</emulator></devices></domain>",
        "<devices><emulator> is not to be overlaid"
    )]
    #[case(
        "<domain><devices><tpm><backend type='passthrough'/></tpm></devices></domain>",
        "<tpm> is to have an emulator as its backend"
    )]
    #[case("<domain xmlns:qemu='q'><qemu:commandline/></domain>", "its root is to be <domain>, without attributes")]
    #[case("<domain><qemu:commandline xmlns:qemu='q'/></domain>", "<qemu:commandline> is not to be overlaid")]
    #[case("<domain><sysinfo type='fwcfg'/></domain>", "<sysinfo> is to be of type smbios")]
    #[case(
        "{{ lookup('pipe', 'id') }}",
        "it is not well-formed XML at byte 0: there is text outside of the root element"
    )]
    fn what_reaches_the_host_or_is_planned_is_refused(#[case] overlay: &str, #[case] why: &str) {
        assert_eq!(check(overlay), Err(refused(why.to_owned())));
    }

    #[test]
    fn elements_are_replaced_by_name_and_key_and_others_added() {
        let mut domain = parse(
            "<domain><cpu mode='maximum'><feature name='a' policy='require'/></cpu><devices><controller type='usb' index='0'/></devices></domain>",
        )
        .unwrap();
        let over = "<domain><cpu mode='custom'><feature name='b' policy='disable'/></cpu><pm/><devices>\
                    <controller type='usb' index='0' model='qemu-xhci'/><watchdog model='i6300esb'/></devices></domain>";
        assert_eq!(lay(&mut domain, over), Ok(()));
        let text = write(&domain).unwrap();
        for line in [
            "<cpu mode=\"custom\">",
            "<feature name=\"a\" policy=\"require\"/>",
            "<feature name=\"b\" policy=\"disable\"/>",
            "<controller type=\"usb\" index=\"0\" model=\"qemu-xhci\"/>",
            "<watchdog model=\"i6300esb\"/>",
            "<pm/>",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
        assert!(!text.contains("index=\"0\"/>"), "{text}");
    }
}
