//! Read models of kinds that others own: only the fields we read or write.
