//! Types with laws and no I/O: keys, names, addresses, port ranges, reasons and conditions.
