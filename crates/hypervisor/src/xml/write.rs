//! Writes a tree as XML text.

use quick_xml::{
    Writer,
    events::{BytesEnd, BytesStart, BytesText, Event, attributes::Attribute},
    name::QName,
};

use super::{Element, Unwritable};

/// The text of an element and everything in it, indented.
pub(crate) fn write(root: &Element) -> Result<String, Unwritable> {
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 2);
    put(&mut writer, root)?;
    Ok(String::from_utf8(writer.into_inner()).expect("what was written of strings is UTF-8"))
}

fn put(writer: &mut Writer<Vec<u8>>, element: &Element) -> Result<(), Unwritable> {
    let mut start = BytesStart::new(element.name.as_str());
    for (name, value) in &element.attributes {
        let field = || format!("{} {name}", element.name);
        start.push_attribute(Attribute { key: QName(name), value: escaped(value, true, field)?.into() });
    }
    if element.children.is_empty() && element.text.is_empty() {
        return emit(writer, Event::Empty(start));
    }
    emit(writer, Event::Start(start))?;
    if !element.text.is_empty() {
        let text = escaped(&element.text, false, || element.name.clone())?;
        emit(writer, Event::Text(BytesText::from_escaped(text)))?;
    }
    for child in &element.children {
        put(writer, child)?;
    }
    emit(writer, Event::End(BytesEnd::new(element.name.as_str())))
}

fn emit(writer: &mut Writer<Vec<u8>>, event: Event<'_>) -> Result<(), Unwritable> {
    writer
        .write_event(event)
        .map_err(|error| Unwritable { field: "XML".to_owned(), why: format!("it cannot be kept: {error}") })
}

/// The text with everything escaped that a parser would take for markup or normalise away.
fn escaped(text: &str, attribute: bool, field: impl Fn() -> String) -> Result<String, Unwritable> {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            // A parser turns a carriage return into a line feed, and in attributes each of these into a space.
            '\r' => out.push_str("&#13;"),
            '\n' if attribute => out.push_str("&#10;"),
            '\t' if attribute => out.push_str("&#9;"),
            '\t' | '\n' => out.push(c),
            // XML 1.0 section 2.2: no escape makes these legal.
            '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => {
                return Err(Unwritable { field: field(), why: format!("XML has no character U+{:04X}", u32::from(c)) });
            }
            _ => out.push(c),
        }
    }
    Ok(out)
}
