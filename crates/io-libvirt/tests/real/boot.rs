//! The smallest things that boot: they write a word to the serial port, and then wait.

/// What fits into a boot sector: 21 bytes of code for a PC in real mode, then the word.
fn sector(word: &str) -> Vec<u8> {
    let code: [u8; 21] = [
        0x31, 0xc0, // xor ax, ax
        0x8e, 0xd8, // mov ds, ax
        0xbe, 0x15, 0x7c, // mov si, the word
        0xba, 0xf8, 0x03, // mov dx, the serial port
        0xac, // next: lodsb
        0x84, 0xc0, // test al, al
        0x74, 0x03, // jz done
        0xee, // out dx, al
        0xeb, 0xf8, // jmp next
        0xf4, // done: hlt
        0xeb, 0xfd, // jmp done
    ];
    let mut sector = code.to_vec();
    sector.extend(word.bytes().chain([0]));
    sector.resize(510, 0);
    sector.extend([0x55, 0xaa]);
    sector
}

/// A disk of 1 MiB that boots.
pub fn disk(word: &str) -> Vec<u8> {
    let mut disk = sector(word);
    disk.resize(1 << 20, 0);
    disk
}

/// A CD that boots: ISO 9660 with El Torito, no emulation.
pub fn cd(word: &str) -> Vec<u8> {
    const SECTOR: usize = 2048;
    let mut cd = vec![0; 64 * SECTOR];
    let mut put = |sector: usize, at: usize, bytes: &[u8]| {
        let start = sector * SECTOR + at;
        cd[start..start + bytes.len()].copy_from_slice(bytes);
    };
    put(16, 0, b"\x01CD001\x01");
    put(16, 80, &64u32.to_le_bytes());
    put(16, 84, &64u32.to_be_bytes());
    put(17, 0, b"\x00CD001\x01EL TORITO SPECIFICATION");
    put(17, 71, &19u32.to_le_bytes());
    put(18, 0, b"\xffCD001\x01");
    // Validation entry: its sixteen words add up to 0.
    put(19, 0, &[1, 0, 0, 0]);
    put(19, 28, &[0xaa, 0x55, 0x55, 0xaa]);
    // Bootable, no emulation, four sectors of 512 bytes, from sector 20.
    put(19, 32, &[0x88, 0, 0, 0, 0, 0, 4, 0]);
    put(19, 40, &20u32.to_le_bytes());
    put(20, 0, &sector(word));
    cd
}
