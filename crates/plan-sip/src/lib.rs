//! Decides what SIP does. Pure: no clock, no I/O, no randomness.
