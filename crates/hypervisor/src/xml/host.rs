//! Reads what a hypervisor says of its machine (`virConnectGetCapabilities`).

use std::collections::BTreeMap;

use super::{At, Element, Unreadable, parse::parse};
use crate::{
    error::Kind,
    host::{Acceleration, Cell, Cpu, Host},
};

/// The machine that capabilities XML describes. Whether guests really run on the processor, it cannot say
/// ([`Acceleration::Unknown`]).
pub fn read_host(xml: &str) -> Result<Host, Unreadable> {
    let root = parse(xml).map_err(|why| Unreadable { kind: Kind::Host, name: "capabilities".to_owned(), why })?;
    let at = At { kind: Kind::Host, name: "capabilities".to_owned() };
    let mut cells = BTreeMap::new();
    for cell in root.at("host/topology/cells").into_iter().flat_map(|cells| cells.all("cell")) {
        let id: u32 = at.required(cell, "id")?;
        if cells.insert(id, read_cell(&at, cell)?).is_some() {
            return Err(at.wrong(format!("there are two cells {id}")));
        }
    }
    if cells.is_empty() {
        return Err(at.wrong("there is no <cell>: the processors are not known"));
    }
    Ok(Host {
        arch: root.at("host/cpu/arch").map(|arch| arch.text.clone()).unwrap_or_default(),
        cells,
        acceleration: Acceleration::Unknown,
        boot_id: String::new(),
    })
}

fn read_cell(at: &At, cell: &Element) -> Result<Cell, Unreadable> {
    let memory_kib = match cell.first("memory") {
        Some(memory) => at.bytes(memory, "KiB")? >> 10,
        None => 0,
    };
    let mut pages = BTreeMap::new();
    for page in cell.all("pages") {
        let size = Element { text: page.get("size").unwrap_or_default().to_owned(), ..page.clone() };
        let count = page.text.trim().parse().map_err(|error| at.wrong(format!("<pages>: {error}")))?;
        pages.insert(at.bytes(&size, "KiB")? >> 10, count);
    }
    let mut cpus = BTreeMap::new();
    for cpu in cell.first("cpus").into_iter().flat_map(|cpus| cpus.all("cpu")) {
        // One that is switched off has a number and nothing else.
        let Some(siblings) = at.attribute(cpu, "siblings")? else { continue };
        let number = |attribute: &str| Ok(at.attribute(cpu, attribute)?.unwrap_or_default());
        let (socket, core) = (number("socket_id")?, number("core_id")?);
        cpus.insert(at.required(cpu, "id")?, Cpu { socket, core, siblings });
    }
    Ok(Cell { memory_kib, pages, cpus })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::read_host;
    use crate::xml::samples::CAPABILITIES;

    #[test]
    fn capabilities_are_read_with_siblings_huge_pages_holes_and_what_is_switched_off() {
        let host = read_host(CAPABILITIES).unwrap();
        assert_eq!(host.arch, "x86_64");
        assert_eq!(host.cells.keys().copied().collect::<Vec<_>>(), [0, 2, 3]);
        assert_eq!(host.cpus().to_string(), "0-4");
        assert_eq!(host.cells[&0].pages, BTreeMap::from([(4, 2_097_152), (1 << 20, 8)]));
        let cores: Vec<String> = host.cells[&0].cores().iter().map(ToString::to_string).collect();
        assert_eq!(cores, ["0,4", "1"]);
        assert!(host.cells[&3].cpus.is_empty());
        assert_eq!(host.cell_of(3), Some(2));
        assert_eq!(host.cell_of(5), None, "it is switched off");
    }

    #[test]
    fn capabilities_without_processors_are_named() {
        let said = read_host("<capabilities><host/></capabilities>").unwrap_err().to_string();
        assert_eq!(said, "host capabilities cannot be read: there is no <cell>: the processors are not known");
    }
}
