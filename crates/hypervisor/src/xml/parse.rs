//! Reads XML text into a tree, within limits: no document types, no entities of others, no bottomless nesting.

use quick_xml::{
    Reader, XmlVersion,
    escape::resolve_predefined_entity,
    events::{BytesStart, Event},
};

use super::Element;

/// Far more than any definition has; what is larger was not written by a hypervisor.
const MAX_BYTES: usize = 8 << 20;
/// libvirt's own XML nests less than ten deep.
const MAX_DEPTH: usize = 64;

/// The root element of a text, or what is wrong with the text.
pub(crate) fn parse(text: &str) -> Result<Element, String> {
    if text.len() > MAX_BYTES {
        return Err(format!("it is larger than {MAX_BYTES} bytes"));
    }
    let mut reader = Reader::from_str(text);
    let mut open: Vec<Element> = Vec::new();
    let mut root: Option<Element> = None;
    loop {
        let at = reader.buffer_position();
        let broken = |why: String| format!("it is not well-formed XML at byte {at}: {why}");
        let event = reader.read_event().map_err(|error| broken(error.to_string()))?;
        let closed = match event {
            Event::Start(start) => {
                if root.is_some() {
                    return Err(broken("something follows the root element".to_owned()));
                }
                if open.len() >= MAX_DEPTH {
                    return Err(format!("its elements are nested more than {MAX_DEPTH} deep"));
                }
                open.push(element(&start).map_err(broken)?);
                None
            }
            Event::Empty(start) if root.is_none() => Some(element(&start).map_err(broken)?),
            Event::Empty(_) => return Err(broken("something follows the root element".to_owned())),
            Event::End(_) => {
                let mut element = open.pop().ok_or_else(|| broken("an element ends that never began".to_owned()))?;
                if !element.children.is_empty() {
                    // Between elements there is only the layout.
                    element.text = element.text.trim().to_owned();
                }
                Some(element)
            }
            Event::Text(text) => {
                add(&mut open, &text.xml10_content()).map_err(broken)?;
                None
            }
            Event::CData(text) => {
                add(&mut open, &text.xml10_content()).map_err(broken)?;
                None
            }
            Event::GeneralRef(reference) => {
                let resolved = match reference.resolve_char_ref().map_err(|error| broken(error.to_string()))? {
                    Some(c) => c.to_string(),
                    None => resolve_predefined_entity(&reference)
                        .ok_or_else(|| broken(format!("the entity {:?} is not known", &*reference)))?
                        .to_owned(),
                };
                add(&mut open, &resolved).map_err(broken)?;
                None
            }
            Event::DocType(_) => return Err(broken("a document type is not read".to_owned())),
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) => None,
            Event::Eof => break,
        };
        if let Some(element) = closed {
            match open.last_mut() {
                Some(parent) => parent.children.push(element),
                None => root = Some(element),
            }
        }
    }
    if let Some(element) = open.last() {
        return Err(format!("it ends inside <{}>", element.name));
    }
    root.ok_or_else(|| "it has no element".to_owned())
}

fn element(start: &BytesStart<'_>) -> Result<Element, String> {
    let mut element = Element::new(start.name().0);
    for attribute in start.attributes() {
        let attribute = attribute.map_err(|error| error.to_string())?;
        let value = attribute.normalized_value(XmlVersion::Implicit1_0).map_err(|error| error.to_string())?;
        element.attributes.push((attribute.key.0.to_owned(), value.into_owned()));
    }
    Ok(element)
}

fn add(open: &mut [Element], text: &str) -> Result<(), String> {
    match open.last_mut() {
        Some(element) => element.text.push_str(text),
        None if text.trim().is_empty() => {}
        None => return Err("there is text outside of the root element".to_owned()),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xml::write::write;
    use proptest::prelude::*;
    use rstest::rstest;

    /// Any text that XML can carry.
    fn carried() -> impl Strategy<Value = String> {
        prop::collection::vec(
            any::<char>().prop_filter(
                "legal in XML",
                |c| !matches!(c, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}'),
            ),
            0..20,
        )
        .prop_map(|chars| chars.into_iter().collect())
    }

    proptest! {
        #[test]
        fn whatever_a_text_contains_it_is_read_back(text in carried(), value in carried()) {
            let written = Element::new("a").with("b", &value).child(Element::new("c").text(&text));
            let xml = write(&written).expect("legal characters");
            prop_assert_eq!(parse(&xml), Ok(written), "{}", xml);
        }

        #[test]
        fn no_text_makes_it_fall_over(text in "[<>/&;a-z\"'=! \\[\\]?#x0-9-]{0,60}") {
            let _ = parse(&text);
        }
    }

    #[rstest]
    #[case("\" onload=\"x", "<a b=\"&quot; onload=&quot;x\"/>")]
    #[case("</domain><domain>", "<a b=\"&lt;/domain&gt;&lt;domain&gt;\"/>")]
    #[case("a\nb\tc", "<a b=\"a&#10;b&#9;c\"/>")]
    fn hostile_values_are_escaped(#[case] value: &str, #[case] xml: &str) {
        assert_eq!(write(&Element::new("a").with("b", value)).as_deref(), Ok(xml));
    }

    #[test]
    fn what_xml_cannot_carry_is_refused_by_name() {
        let error = write(&Element::new("disk").with("serial", "a\u{1}b")).unwrap_err();
        assert_eq!(error.to_string(), "disk serial cannot be written: XML has no character U+0001");
    }

    #[rstest]
    #[case("", "it has no element")]
    #[case("text", "it is not well-formed XML at byte 0: there is text outside of the root element")]
    #[case("<a><b></a>", "it is not well-formed XML at byte 6")]
    #[case("<a>", "it ends inside <a>")]
    #[case("<a/><b/>", "it is not well-formed XML at byte 4: something follows the root element")]
    #[case("<!DOCTYPE a [<!ENTITY x \"y\">]><a>&x;</a>", "a document type is not read")]
    #[case("<a>&lol;</a>", "the entity \"lol\" is not known")]
    fn what_is_no_xml_is_named(#[case] text: &str, #[case] why: &str) {
        let said = parse(text).unwrap_err();
        assert!(said.contains(why), "{said}");
    }

    #[test]
    fn bottomless_nesting_is_refused() {
        let deep = "<a>".repeat(100_000);
        assert_eq!(parse(&deep), Err("its elements are nested more than 64 deep".to_owned()));
    }
}
