//! What a node does with a VinoNode: stories, machines of many shapes, and laws.

mod cores;
mod fixture;
mod laws;
mod machines;
mod networks;
