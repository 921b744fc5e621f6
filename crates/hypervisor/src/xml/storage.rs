//! XML of storage pools and volumes.

use super::{At, Element, Unreadable, Unwritable, parse::parse, write::write};
use crate::{
    error::Kind,
    storage::{PoolSpec, Volume, VolumeFormat, VolumeSource, VolumeSpec},
};

/// The definition of a pool.
pub fn pool(spec: &PoolSpec) -> Result<String, Unwritable> {
    let PoolSpec { name, path } = spec;
    // Guests' disks are nobody's to list but the hypervisor's.
    let permissions = Element::new("permissions").child(Element::new("mode").text("0711"));
    write(
        &Element::new("pool")
            .with("type", "dir")
            .child(Element::new("name").text(name))
            .child(Element::new("target").child(Element::new("path").text(path)).child(permissions)),
    )
}

/// What a definition of a pool says.
pub fn read_pool(xml: &str) -> Result<PoolSpec, Unreadable> {
    let root = parse(xml).map_err(|why| Unreadable { kind: Kind::Pool, name: "?".to_owned(), why })?;
    let at = At::new(Kind::Pool, &root);
    let name = root.first("name").ok_or_else(|| at.wrong("it has no <name>"))?.text.clone();
    let dir = root.get("type") == Some("dir");
    let path = root.at("target/path").filter(|_| dir).map(|path| path.text.clone()).unwrap_or_default();
    Ok(PoolSpec { name, path })
}

/// The definition of a volume. `backing` is the path and the format of what [`VolumeSource::On`] names.
pub fn volume(spec: &VolumeSpec, backing: Option<(&str, VolumeFormat)>) -> Result<String, Unwritable> {
    let VolumeSpec { pool: _, name, format, capacity, sparse, source } = spec;
    if name.is_empty() || name.contains('/') || name == "." || name == ".." {
        return Err(Unwritable { field: "volume name".to_owned(), why: format!("{name:?} is no file name") });
    }
    if matches!(source, VolumeSource::On(_)) && *format != VolumeFormat::Qcow2 {
        return Err(Unwritable { field: format!("volume {name}"), why: "a raw volume has no backing file".to_owned() });
    }
    let allocation = if *sparse || backing.is_some() { 0 } else { *capacity };
    write(
        &Element::new("volume")
            .child(Element::new("name").text(name))
            .child(Element::new("capacity").with("unit", "bytes").text(capacity))
            .child(Element::new("allocation").with("unit", "bytes").text(allocation))
            .child(
                Element::new("target")
                    .child(Element::new("format").with("type", format.name()))
                    .child(Element::new("permissions").child(Element::new("mode").text("0600"))),
            )
            .children(backing.map(|(path, format)| {
                Element::new("backingStore")
                    .child(Element::new("path").text(path))
                    .child(Element::new("format").with("type", format.name()))
            })),
    )
}

/// What a definition of a volume says.
pub fn read_volume(xml: &str) -> Result<Volume, Unreadable> {
    let root = parse(xml).map_err(|why| Unreadable { kind: Kind::Volume, name: "?".to_owned(), why })?;
    let at = At::new(Kind::Volume, &root);
    let size = |name: &str| root.first(name).map(|size| at.bytes(size, "bytes")).transpose();
    Ok(Volume {
        name: root.first("name").ok_or_else(|| at.wrong("it has no <name>"))?.text.clone(),
        path: root.at("target/path").map(|path| path.text.clone()).unwrap_or_default(),
        format: match root.at("target/format").and_then(|format| format.get("type")) {
            Some("qcow2") => Some(VolumeFormat::Qcow2),
            Some("raw") => Some(VolumeFormat::Raw),
            _ => None,
        },
        capacity: size("capacity")?.ok_or_else(|| at.wrong("it has no <capacity>"))?,
        allocation: size("allocation")?.unwrap_or_default(),
        backing: root.at("backingStore/path").map(|path| path.text.clone()).filter(|path| !path.is_empty()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[test]
    fn a_volume_says_its_size_and_what_it_rests_on() {
        let spec = VolumeSpec {
            pool: "p".into(),
            name: "d".into(),
            format: VolumeFormat::Qcow2,
            capacity: 1 << 30,
            sparse: true,
            source: VolumeSource::On("image".into()),
        };
        let xml = volume(&spec, Some(("/p/image", VolumeFormat::Raw))).unwrap();
        let read = read_volume(&xml).unwrap();
        assert_eq!(
            read,
            Volume {
                name: "d".into(),
                path: String::new(),
                format: Some(VolumeFormat::Qcow2),
                capacity: 1 << 30,
                allocation: 0,
                backing: Some("/p/image".into())
            }
        );
    }

    #[rstest]
    #[case("", VolumeFormat::Qcow2)]
    #[case("../../etc/passwd", VolumeFormat::Qcow2)]
    #[case("..", VolumeFormat::Raw)]
    #[case("raw-on-something", VolumeFormat::Raw)]
    fn volumes_that_cannot_be_are_refused(#[case] name: &str, #[case] format: VolumeFormat) {
        let spec =
            VolumeSpec { name: name.into(), format, source: VolumeSource::On("i".into()), ..VolumeSpec::default() };
        assert!(volume(&spec, None).is_err());
    }
}
