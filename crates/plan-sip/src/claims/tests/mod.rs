//! The laws of claims, as sentences.

pub(crate) mod build;
mod conflict;
mod established;
mod gone;
mod new;
mod people;
mod release;
