//! The laws of claims, as sentences.

pub(crate) mod build;
mod chaos;
mod conflict;
mod established;
mod gone;
mod network;
mod new;
mod people;
mod release;
