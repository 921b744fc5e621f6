//! Base64 as Go's `StdEncoding` reads and writes it: line breaks are skipped, and errors name the offending byte.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub(super) fn encode(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let at = |i: usize| u32::from(group.get(i).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for i in 0..4 {
            let six = (bits >> (18 - 6 * i)) & 63;
            out.push(if i <= group.len() { char::from(ALPHABET[six as usize]) } else { '=' });
        }
    }
    out
}

/// The decoded bytes, or the message of Go's `CorruptInputError`.
pub(super) fn decode(text: &str) -> Result<Vec<u8>, String> {
    let corrupt = |at: usize| format!("illegal base64 data at input byte {at}");
    let mut input = text.bytes().enumerate().filter(|(_, byte)| !matches!(byte, b'\r' | b'\n'));
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    loop {
        let mut bits = 0_u32;
        let mut have = 0;
        while have < 4 {
            match input.next() {
                None if have == 0 => return Ok(out),
                // A group that breaks off is blamed on its first character.
                None => return Err(corrupt(text.len() - have)),
                Some((at, b'=')) => {
                    let bytes = padded(text, at, have, &mut input)?;
                    let group = (bits << (6 * (4 - have))).to_be_bytes();
                    out.extend_from_slice(&group[1..=bytes]);
                    return Ok(out);
                }
                Some((at, byte)) => {
                    let six = ALPHABET.iter().position(|letter| *letter == byte).ok_or_else(|| corrupt(at))?;
                    bits = bits << 6 | u32::try_from(six).map_err(|_| corrupt(at))?;
                    have += 1;
                }
            }
        }
        out.extend_from_slice(&bits.to_be_bytes()[1..]);
    }
}

/// Checks the padding that starts at `at` after `have` characters of a group; gives the group's bytes.
fn padded(text: &str, at: usize, have: usize, rest: &mut impl Iterator<Item = (usize, u8)>) -> Result<usize, String> {
    let corrupt = |at: usize| Err(format!("illegal base64 data at input byte {at}"));
    if have < 2 {
        return corrupt(at);
    }
    if have == 2 {
        match rest.next() {
            Some((_, b'=')) => {}
            // Go blames the byte before the one that should have been padding.
            Some((next, _)) => return corrupt(next - 1),
            None => return corrupt(text.len()),
        }
    }
    match rest.next() {
        Some((next, _)) => corrupt(next),
        None => Ok(have - 1),
    }
}
