//! Holds the namespaces of a pod: sleeps until it is killed.

fn main() {
    loop {
        std::thread::park();
    }
}
