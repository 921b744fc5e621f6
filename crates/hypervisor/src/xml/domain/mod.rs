//! Domain XML: what a virtual machine is made of, in the words of libvirt.

mod devices;
mod read;
mod write;

pub use devices::{drive_element as drive, drive_file};
pub use read::read_domain;
pub use write::domain;
