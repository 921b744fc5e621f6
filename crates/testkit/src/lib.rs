//! What the tests stand on: an in-memory API server with fault injection, a fleet builder, a clock.
