//! Go text/template with the sprig functions that users of these operators have in their templates.
