//! Says what of the local stack runs.

use crate::process;

/// One line per service.
pub fn print() {
    let names = process::recorded();
    if names.is_empty() {
        println!("the local stack is not up: `make up` starts it");
    }
    for name in names {
        match process::running(&name) {
            Some(pid) => println!("{name:<26} runs, pid {pid}"),
            None => println!("{name:<26} is dead: `make up` starts it anew"),
        }
    }
}
